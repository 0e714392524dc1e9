"""From a node and the table of a target to what is done with the node, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.lowering.kernels import Cell, guarded_cell, home_cell
from lucid_onnx.lowering.nodes import Sampling
from lucid_onnx.lowering.rows import FINITE_FAULTS, Kernel, Target


@dataclass(frozen=True)
class Recipe:
    """How the nodes are built that take the place of one.

    Parameters
    ----------
    form : str
        One of `FORMS`.
    dtype : onnx_ir.DataType
        Dtype in which image and grid meet.
    keep_image : bool
        Whether the image goes to the kernel in its own dtype, beside a wider grid.
    guard : bool
        Whether the coordinates of a kernel need a guard.
    extend : bool
        Whether cubic with reflection reads an extended image.
    opset : int
        Opset of the model.
    finite : bool
        Whether coordinates may be taken for finite.
    """

    form: str
    dtype: ir.DataType
    keep_image: bool
    guard: bool
    extend: bool
    opset: int
    finite: bool


@dataclass(frozen=True)
class Decision:
    """What is done with a node.

    Parameters
    ----------
    form : str
        One of `FORMS`.
    kernel : Kernel, optional
        The row that decided; None where no row fits.
    dtype : onnx_ir.DataType
        Dtype in which image and grid meet.
    keep_image : bool
        Whether the image goes to the kernel in its own dtype, beside a wider grid.
    faults : tuple of str
        What the kernel does wrong and the guard makes right.
    """

    form: str
    kernel: Kernel | None
    dtype: ir.DataType
    keep_image: bool = False
    faults: tuple[str, ...] = ()

    @property
    def guard(self) -> bool:
        """Whether coordinates that are not finite need a guard."""
        return any(fault not in FINITE_FAULTS for fault in self.faults)

    def recipe(self, opset: int, finite: bool) -> Recipe:
        """What of this matters for the nodes that are built."""
        extend = self.kernel is not None and self.kernel.form == "canonical"
        return Recipe(self.form, self.dtype, self.keep_image, self.guard, extend, opset, finite)

    def why(self, opset: int) -> str:
        """The reason, in words, why a node of a model at `opset` gets this."""
        if self.kernel is None:
            return f"the target has no kernel for it at opset {opset}"
        reasons = [f"the kernel is wrong for {', '.join(self.faults)}"] if self.faults else []
        if self.form != "keep" and self.kernel.slow:
            reasons.append(f"slow: {self.kernel.slow}")
        return "; ".join(reasons) or ("a kernel that is right" if self.form == "keep" else "faster")


def decide(target: Target, sampling: Sampling, opset: int, finite: bool, known_finite: bool = False) -> Decision:
    """What to do with a node of a model at `opset`.

    Parameters
    ----------
    target : Target
        The table.
    sampling : Sampling
        The node.
    opset : int
        Opset of the rewritten model.
    finite : bool
        Whether coordinates and pixels may be taken for finite, and near.
    known_finite : bool
        Whether the coordinates are constants that are.
    """
    meeting = _meeting_dtype(sampling)
    if 0 in (*sampling.shape[2:], *(sampling.sizes or ())):
        # Valid where nothing is sampled, but kernels refuse it.
        return Decision("expand", None, meeting)
    for kernel in target.rows(sampling.op):
        if not _fits(kernel, sampling, opset):
            continue
        image = _image_dtype(kernel, sampling, meeting)
        if image is None:
            continue
        faults = tuple(_faults(kernel, sampling, finite, known_finite))
        form = _form(kernel, sampling, faults)
        if form is None:
            continue
        met = faults if form == "canonical" or sampling.op == "AffineGrid" else ()
        return Decision(form, kernel, meeting, image != meeting, met)
    return Decision("expand", None, meeting)


def has_kernel(target: Target, sampling: Sampling, opset: int) -> bool:
    """Whether any row of the target takes the node at `opset`."""
    return decide(target, sampling, opset, finite=True).kernel is not None


def cell_of(sampling: Sampling) -> Cell:
    """The cell that a node samples."""
    return Cell(sampling.mode, sampling.padding_mode, sampling.align_corners)


def _meeting_dtype(sampling: Sampling) -> ir.DataType:
    """float64 if image or grid is, or if float32 knows not each of the values or pixels of the image; else float32."""
    wide = (ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.UINT32)
    if any(size is not None and size > 2**24 for size in sampling.shape[2:]):
        return ir.DataType.DOUBLE
    return ir.DataType.DOUBLE if sampling.dtype in wide or sampling.grid_dtype in wide else ir.DataType.FLOAT


def _image_dtype(kernel: Kernel, sampling: Sampling, meeting: ir.DataType) -> ir.DataType | None:
    """Dtype in which the kernel is given the image, or None where it takes neither."""
    if kernel.grid == "any" and sampling.dtype.numpy().name in kernel.dtypes and meeting == ir.DataType.FLOAT:
        return sampling.dtype
    return meeting if meeting.numpy().name in kernel.dtypes else None


def _fits(kernel: Kernel, sampling: Sampling, opset: int) -> bool:
    oldest, newest = kernel.opsets
    if opset < oldest or (newest is not None and opset > newest) or sampling.rank not in kernel.ranks:
        return False
    if sampling.op == "AffineGrid":
        return sampling.align_corners in kernel.align_corners
    if kernel.channels is None:
        return True
    fewest, most = kernel.channels
    channels = sampling.channels
    return channels is not None and channels >= fewest and (most is None or channels <= most)


def _form(kernel: Kernel, sampling: Sampling, faults: Sequence[str]) -> str | None:
    """What the row does with the node, or None where its kernel lacks the cell that it would be called in."""
    if sampling.op == "AffineGrid":
        return "expand" if faults else kernel.form
    cell = cell_of(sampling)
    if _has(kernel, cell):
        if kernel.form == "expand":
            return "expand"
        is_home = kernel.form == "keep" or home_cell(cell) == cell
        return "keep" if is_home and not faults else "canonical"
    # A kernel that lacks the cell may have that which the node is brought home to; rows of speed are no kernels.
    is_kernel = kernel.form == "keep" and kernel.channels is None
    return "canonical" if is_kernel and _has(kernel, guarded_cell(cell)) else None


def _has(kernel: Kernel, cell: Cell) -> bool:
    return (
        cell.mode in kernel.modes
        and cell.padding_mode in kernel.padding_modes
        and cell.align_corners in kernel.align_corners
    )


def _faults(kernel: Kernel, sampling: Sampling, finite: bool, known_finite: bool) -> Iterator[str]:
    """The faults of the kernel that this node would meet."""
    for fault in kernel.wrong:
        if fault == "reflected ties":
            if sampling.mode == "nearest" and sampling.padding_mode == "reflection":
                yield fault
        elif fault == "axis of one pixel":
            if sampling.align_corners and (sampling.sizes is None or 1 in sampling.sizes):
                yield fault
        elif fault == "infinite pixels":
            # Of a tap without weight, which only linear has at the edge, and only with border and reflection.
            if not finite and sampling.mode == "bilinear" and sampling.padding_mode != "zeros":
                yield fault
        elif not (finite or known_finite):
            yield fault
