"""What a row of the table of targets says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from lucid_onnx.reference.schema import MODES, PADDING_MODES

FAULTS = {
    "non-finite": "NaN, infinite or overflowing coordinates do not land where they should",
    "far": "coordinates beyond some 2^23 pixels do not land where they should",
    "infinite pixels": "a pixel that is infinite spoils results that do not depend on it",
    "reflected ties": "nearest rounds before it reflects: 2 for 3 at a tie beyond the image",
    "axis of one pixel": "align_corners puts the only pixel of an axis at -1 or 1 instead of 0, or gives another shape",
}
"""What a kernel may do wrong, by the names that a row gives. Each has its guard in `kernels`."""

FINITE_FAULTS = ("reflected ties", "axis of one pixel")
"""Those that also occur where everything is finite and near."""

FORMS = {
    "keep": "the node is kept, its coordinates guarded where the kernel is wrong",
    "canonical": "the grid is brought to a canonical form, so that the node is kept in the cell that is fastest",
    "expand": "the node is expanded into standard operators, because they are faster",
}
"""What may be done with a node that has a kernel."""

GRIDS = {
    "same": "of the dtype of the image",
    "any": "of any floating dtype",
}
"""What the grid may be beside an image."""


@dataclass(frozen=True)
class Kernel:
    """A row of the table.

    Parameters
    ----------
    op : {"GridSample", "AffineGrid"}
        The operator.
    opsets : tuple of int
        Oldest and newest opset of a model whose node the kernel takes; None for no newest. It also decides on
        the spelling: "bilinear" and "bicubic" before opset 20, "linear" and "cubic" from there on.
    source : str
        Where this is known from: documentation, source file, issue, or "measured" with a version.
    ranks : tuple of int
        Ranks of the image.
    modes, padding_modes : tuple of str
        As in `grid_sample`.
    align_corners : tuple of bool
        Both by default.
    dtypes : tuple of str
        Dtypes of the image, or of theta. A half-precision image beside none of its own is cast to float32.
    grid : str
        One of `GRIDS`.
    channels : tuple of int, optional
        Fewest and most channels, where the row is one of speed. An unknown number fits only the row without.
    form : str
        One of `FORMS`.
    wrong : tuple of str
        Names of `FAULTS`.
    slow : str
        What of it is slow, in words.

    Examples
    --------
    >>> kernel = Kernel("GridSample", (16, 19), "documentation", ranks=(4,))
    >>> kernel.spelling, kernel.modes
    ('bilinear', ('bilinear', 'nearest', 'bicubic'))
    """

    op: str
    opsets: tuple[int, int | None]
    source: str
    ranks: tuple[int, ...] = (4, 5)
    modes: tuple[str, ...] = MODES
    padding_modes: tuple[str, ...] = PADDING_MODES
    align_corners: tuple[bool, ...] = (False, True)
    dtypes: tuple[str, ...] = ("float32",)
    grid: str = "same"
    channels: tuple[int, int | None] | None = None
    form: str = "keep"
    wrong: tuple[str, ...] = ()
    slow: str = ""

    @property
    def spelling(self) -> str:
        """How the linear mode is spelled in the opsets of the row."""
        oldest, newest = self.opsets
        if self.op == "AffineGrid":
            return ""
        if newest is not None and newest < RENAMED:
            return "bilinear"
        return "linear" if oldest >= RENAMED else "bilinear, from 20 on linear"

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON."""
        return {**{field.name: getattr(self, field.name) for field in fields(self)}, "spelling": self.spelling}

    def as_row(self) -> tuple[str, ...]:
        """The row for a terminal, under `COLUMNS`."""
        sampled = self.op == "GridSample"
        corners = " ".join(str(int(corner)) for corner in self.align_corners)
        channels = "" if self.channels is None else f"; {_from_to(self.channels)} channels"
        return (
            self.op,
            _from_to(self.opsets),
            self.spelling,
            " ".join(f"{rank}-D" for rank in self.ranks),
            " ".join(self.modes) if sampled else "",
            " ".join(self.padding_modes) if sampled else "",
            corners,
            " ".join(self.dtypes) + ("; any grid" if self.grid == "any" else ""),
            self.form + channels,
            ", ".join((*self.wrong, *([f"slow: {self.slow}"] if self.slow else []))),
        )


COLUMNS = (
    "operator",
    "opsets",
    "spelling",
    "rank",
    "modes",
    "padding",
    "align_corners",
    "dtypes",
    "form",
    "wrong or slow",
)
"""What `Kernel.as_row` gives."""


def _from_to(span: tuple[int, int | None]) -> str:
    """A range in words."""
    first, last = span
    return f"{first}+" if last is None else str(first) if first == last else f"{first}-{last}"


@dataclass(frozen=True)
class Target:
    """A runtime.

    Parameters
    ----------
    name : str
        By which `lower` knows it.
    about : str
        One line on it.
    kernels : tuple of Kernel
        Rows, in the order in which they are tried.
    newest_opset : int, optional
        The newest opset of a model that it reads at all.
    """

    name: str
    about: str
    kernels: tuple[Kernel, ...] = ()
    newest_opset: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The table for JSON."""
        kernels = [kernel.as_dict() for kernel in self.kernels]
        return {"name": self.name, "about": self.about, "newest_opset": self.newest_opset, "kernels": kernels}

    def rows(self, op: str) -> Iterator[Kernel]:
        """The rows of one operator."""
        return (kernel for kernel in self.kernels if kernel.op == op)


RENAMED = 20
"""The opset from which on the modes are called linear and cubic."""
