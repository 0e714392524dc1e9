"""What each runtime runs: a table, and nothing else. The rewriter knows no runtime but by its rows.

A `Kernel` is one row: an operator with the cells of it that a runtime has a kernel for, what that kernel does
wrong, what to do with it, and where all this is known from. The rows of a target are tried in their order and
the first that fits decides; a node that none fits is expanded into standard operators.
"""

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

_ORT = "onnxruntime 1.32, measured (lucid-onnx bench)"
_ORT_KERNELS = "onnxruntime docs/OperatorKernels.md"
_ORT_WRONG = ("non-finite", "far", "infinite pixels", "reflected ties")
_FLOATS = ("float32", "float64")
_UNGUARDED = ("non-finite", "far", "infinite pixels", "reflected ties")


def _onnxruntime_cpu(opsets: tuple[int, int | None], dtypes: tuple[str, ...]) -> tuple[Kernel, ...]:
    """Rows of onnxruntime's CPU kernel, which is the same at every opset but for dtypes and spelling."""

    def row(form: str, modes: tuple[str, ...], source: str, **more: Any) -> Kernel:
        return Kernel("GridSample", opsets, source, modes=modes, dtypes=dtypes, form=form, wrong=_ORT_WRONG, **more)

    plan = "its plan of the sampling is shared by the channels only for zeros without align_corners"
    return (
        row("canonical", ("bilinear",), f"{_ORT}; core/providers/cpu/tensor/grid_sample.cc", ranks=(4,), slow=plan),
        row(
            "keep",
            ("bilinear",),
            f"{_ORT}: up to 5 channels are faster in the kernel",
            ranks=(5,),
            padding_modes=("zeros", "border"),
            channels=(0, 5),
        ),
        row("expand", ("nearest", "bilinear"), _ORT, slow="coordinates are computed anew for every channel"),
        row(
            "keep",
            ("bicubic",),
            f"{_ORT}: up to 10 channels are faster in the kernel",
            ranks=(4,),
            padding_modes=("zeros", "border"),
            channels=(0, 10),
        ),
        row(
            "canonical",
            ("bicubic",),
            f"{_ORT}: up to 7 channels are faster in the kernel",
            ranks=(4,),
            padding_modes=("reflection",),
            channels=(0, 7),
            slow="every tap is reflected on its own",
        ),
        row("expand", ("bicubic",), _ORT, ranks=(4,), slow="16 taps a channel, each with its checks"),
    )


_ROWS = (
    Target(
        "onnxruntime-cpu",
        "onnxruntime, CPUExecutionProvider",
        (
            *_onnxruntime_cpu((16, 19), ("float32",)),
            *_onnxruntime_cpu((20, None), _FLOATS),
            Kernel(
                "AffineGrid",
                (20, None),
                f"{_ORT}; core/providers/cpu/tensor/affine_grid.cc",
                dtypes=_FLOATS,
                wrong=("axis of one pixel",),
            ),
        ),
    ),
    Target(
        "onnxruntime-cuda",
        "onnxruntime, CUDAExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                f"{_ORT_KERNELS}; contrib_ops/cuda/grid_sample.cc: 5-D fails at run time",
                ranks=(4,),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (20, None),
                f"{_ORT_KERNELS}; pull request 27201 (2026); older builds hand the node to the CPU",
                ranks=(4,),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (20, None),
                "onnxruntime pull request 27201 (2026); older builds fail at run time",
                ranks=(5,),
                modes=("bilinear", "nearest"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-directml",
        "onnxruntime, DmlExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime DmlGridSample.h: the dtype of the image is taken for that of the grid, too",
                ranks=(4,),
                modes=("bilinear", "nearest"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime grid_sample.hlsl: cubic with border clips the coordinate before it takes the weights",
                ranks=(4,),
                modes=("bicubic",),
                padding_modes=("zeros", "reflection"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-webgpu",
        "onnxruntime, WebGpuExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime core/providers/webgpu/tensor/grid_sample.cc; pull request 28264 (2026)",
                ranks=(4,),
                dtypes=("float32", "float16"),
                grid="any",
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-coreml",
        "onnxruntime, CoreMLExecutionProvider, ML Program",
        (
            Kernel(
                "GridSample",
                (16, None),
                "onnxruntime gridsample_op_builder.cc; coreml_supported_mlprogram_ops.md",
                ranks=(4,),
                modes=("bilinear",),
                padding_modes=("zeros", "border"),
                dtypes=("float32", "float16"),
                wrong=("non-finite", "far", "infinite pixels"),
                slow="not on the GPU nor the Neural Engine (coremltools issue 1875)",
            ),
            Kernel(
                "GridSample",
                (16, None),
                "onnxruntime gridsample_op_builder.cc: reflection only with align_corners",
                ranks=(4,),
                modes=("bilinear",),
                padding_modes=("reflection",),
                align_corners=(True,),
                dtypes=("float32", "float16"),
                wrong=("non-finite", "far", "infinite pixels"),
            ),
        ),
    ),
    Target(
        "onnxruntime-qnn",
        "onnxruntime, QNNExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime core/providers/qnn/builder/opbuilder/simple_op_builder.cc; border needs QNN 2.30, "
                "reflection 2.32 (its tests)",
                ranks=(4,),
                modes=("bilinear", "nearest"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "tensorrt",
        "TensorRT 8.5 and later, by its ONNX parser",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnx-tensorrt docs/operators.md, onnxOpImporters.cpp; from opset 20 on linear and cubic are read as "
                "nearest (TensorRT issue 4646), 5-D is refused (issue 4618)",
                ranks=(4,),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
        newest_opset=24,
    ),
    Target(
        "openvino",
        "OpenVINO 2022.2 and later, by its ONNX frontend",
        (
            Kernel(
                "GridSample",
                (16, None),
                "openvino frontend grid_sample.cpp; before pull request 36070 (2026) only the spelling of opset 16 is "
                "read (issue 33531); 5-D is refused (issue 37770)",
                ranks=(4,),
                grid="any",
                wrong=_UNGUARDED,
                slow="the default bfloat16 of its CPU plugin costs half a pixel at a width of 1024; hint float32",
            ),
            Kernel(
                "AffineGrid",
                (20, None),
                "openvino frontend affine_grid.cpp, supported_ops.md",
                wrong=("axis of one pixel",),
            ),
        ),
    ),
    Target("portable", "any runtime: only operators of opset 13 to 16, neither GridSample nor AffineGrid"),
)

TARGETS = {target.name: target for target in _ROWS}
"""Every target by name."""
