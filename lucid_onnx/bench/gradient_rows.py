"""The lines of the tables of gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from lucid_onnx.bench.rows import CellRow
from lucid_onnx.conformance.tolerance import Verdict

NETWORK_ERROR = 0.01
"""Relative error that a gradient of a network may have.

A network has kinks: a point that passes the centre of a pixel, a maximum that moves to another one. In float32 it is
rounding that decides on which side of a kink some few points are, for PyTorch as for us, and each brings its share into
the gradient. So the tolerance rule judges operators, and a network is only asked for what no wrong rule gives.
"""


def over(one: float | None, other: float | None) -> float | None:
    """A ratio, where both were measured.

    Examples
    --------
    >>> over(3.0, 2.0), over(None, 2.0)
    (1.5, None)
    """
    return None if one is None or other is None else one / other


@dataclass(frozen=True)
class GradientRow(CellRow):
    """Forward and backward of GridSample in one cell.

    Parameters
    ----------
    shape, grid, mode, padding_mode, align_corners
        The cell; the shape by its name.
    ours : float
        Median, in milliseconds, of sampling and both gradients by the model that `gradient` makes.
    pytorch, onnx_ad : float, optional
        The same by PyTorch and by onnx-ad, where they are installed.
    basic : float, optional
        The same of linear sampling with zeros, measured in the same rounds; None for those cells themselves.
    verdicts : mapping of str to Verdict
        For each result its errors on a sample of it, and their bounds.
    memory : float, optional
        Memory that our run takes as a multiple of PyTorch's, where that was measured.
    """

    ours: float
    pytorch: float | None
    onnx_ad: float | None
    basic: float | None
    verdicts: Mapping[str, Verdict]
    memory: float | None = None

    @property
    def of_pytorch(self) -> float | None:
        """Our time as a multiple of PyTorch's."""
        return over(self.ours, self.pytorch)

    @property
    def gain(self) -> float | None:
        """How many times faster than onnx-ad."""
        return over(self.onnx_ad, self.ours)

    @property
    def of_basic(self) -> float | None:
        """Our time as a multiple of that of linear sampling with zeros."""
        return over(self.ours, self.basic)

    @property
    def ok(self) -> bool:
        """Whether all results are within the tolerance."""
        return all(verdict.ok for verdict in self.verdicts.values())

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON, its ratios included."""
        ratios = {"ours/pytorch": self.of_pytorch, "onnx_ad/ours": self.gain, "ours/basic": self.of_basic}
        return {**asdict(self), **ratios, "ok": self.ok}


@dataclass(frozen=True)
class NetworkRow:
    """Forward of a network, and the gradients of all its parameters.

    Parameters
    ----------
    name : str
        Of the network.
    ours, pytorch : float
        Medians, in milliseconds.
    error, pytorch_error : float
        Relative error of the gradient, of ours and of PyTorch's own in float32, against PyTorch's in float64.
    building : float
        Seconds of processor time that `gradient` took.
    memory : float, optional
        As in `GradientRow`.
    """

    name: str
    ours: float
    pytorch: float
    error: float
    pytorch_error: float
    building: float
    memory: float | None = None

    @property
    def shape(self) -> str:
        """The network stands for itself."""
        return self.name

    @property
    def of_pytorch(self) -> float:
        """Our time as a multiple of PyTorch's."""
        return self.ours / self.pytorch

    @property
    def ok(self) -> bool:
        """Whether the gradients are those of PyTorch."""
        return self.error <= NETWORK_ERROR

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON, its ratio included."""
        return {**asdict(self), "ours/pytorch": self.of_pytorch, "ok": self.ok}


@dataclass(frozen=True)
class BuildingRow:
    """How long `gradient` takes.

    Parameters
    ----------
    nodes : int
        Of the model that is differentiated.
    seconds : float
        Of processor time.
    growth : float, optional
        Time a node, as a multiple of that of the first model.
    """

    nodes: int
    seconds: float
    growth: float | None = None

    @property
    def name(self) -> str:
        """The model in words."""
        return f"{self.nodes} nodes"

    @property
    def shape(self) -> str:
        """The model in words."""
        return self.name
