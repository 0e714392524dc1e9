"""One line of the table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lucid_onnx.conformance.tolerance import Verdict


@dataclass(frozen=True)
class CellRow:
    """The cell that a row is about; its shape by its name."""

    shape: str
    grid: str
    mode: str
    padding_mode: str
    align_corners: bool

    @property
    def way(self) -> str:
        """The way to sample, in words."""
        return f"{self.mode}, {self.padding_mode}{', corners' if self.align_corners else ''}"

    @property
    def name(self) -> str:
        """The cell in words."""
        corners = ", corners" if self.align_corners else ""
        return f"{self.shape} {self.grid} {self.mode} {self.padding_mode}{corners}"


@dataclass(frozen=True)
class Row(CellRow):
    """What was measured of one cell.

    Parameters
    ----------
    shape, grid, mode, padding_mode, align_corners
        The cell; the shape by its name.
    form, guarded_form : str
        What lowering did, with `assume_finite` and without: an action of its report. "kept" also where what it
        did came to the node itself.
    kernel, lowered, guarded : float
        Medians, in milliseconds: of onnxruntime's GridSample, and of what lowering made of it with
        `assume_finite` and without. Models that are the same are timed once.
    pytorch : float, optional
        The same of ``torch.nn.functional.grid_sample``, where it is installed.
    lowered_verdict, guarded_verdict : Verdict
        Errors on a sample of the result, and their bounds.
    memory : float, optional
        Memory that a run of the lowered model takes, as a multiple of the kernel's, where that was measured.
    """

    form: str
    guarded_form: str
    kernel: float
    lowered: float
    guarded: float
    pytorch: float | None
    lowered_verdict: Verdict
    guarded_verdict: Verdict
    memory: float | None = None

    @property
    def speedup(self) -> float:
        """How many times faster than the kernel the lowered model is."""
        return self.kernel / self.lowered

    @property
    def guard_cost(self) -> float:
        """Time with the guards as a multiple of that without."""
        return self.guarded / self.lowered

    @property
    def of_pytorch(self) -> float | None:
        """Time of the lowered model as a multiple of PyTorch's."""
        return None if self.pytorch is None else self.lowered / self.pytorch

    @property
    def ok(self) -> bool:
        """Whether both lowered models are within the tolerance."""
        return self.lowered_verdict.ok and self.guarded_verdict.ok

    def as_dict(self) -> dict[str, Any]:
        """The row for JSON, its ratios included."""
        ratios = {
            "kernel/lowered": self.speedup,
            "guarded/lowered": self.guard_cost,
            "lowered/pytorch": self.of_pytorch,
        }
        return {**asdict(self), **ratios, "ok": self.ok}
