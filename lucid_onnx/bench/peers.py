"""What is measured beside this package, where it is installed: PyTorch, and onnx-ad."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import onnx

from lucid_onnx.bench.cases import Cell
from lucid_onnx.reference.schema import ONNX_MODES, Array

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def pytorch_on(threads: int) -> Iterator[None]:
    """PyTorch, if it is installed, on that many threads; afterwards on as many as before."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def pytorch_forward(x: Array, grid: Array, cell: Cell) -> Callable[[], object] | None:
    """PyTorch's sampling of a cell; None where it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    image, points = torch.from_numpy(x), torch.from_numpy(grid)

    def call() -> object:
        with torch.inference_mode():
            return _grid_sample(image, points, cell)

    return call


def pytorch_gradient(x: Array, grid: Array, grad_out: Array, cell: Cell) -> Callable[[], Sequence[torch.Tensor]] | None:
    """PyTorch's sampling of a cell and its gradients with respect to image and grid; None as before."""
    try:
        import torch
    except ImportError:
        return None
    image, points = (torch.from_numpy(array).requires_grad_() for array in (x, grid))
    upstream = torch.from_numpy(grad_out)

    def call() -> Sequence[torch.Tensor]:
        y = _grid_sample(image, points, cell)
        return y, *torch.autograd.grad(y, (image, points), upstream)

    return call


def onnx_ad_gradient(model: onnx.ModelProto) -> tuple[onnx.ModelProto | None, str]:
    """What onnx-ad makes of a model, with the number of upstream gradients as a last axis; or None, and why.

    Examples
    --------
    >>> from lucid_onnx.bench.cases import SHAPES, kernel_model
    >>> model, why = onnx_ad_gradient(kernel_model(Cell(SHAPES["F"], "uniform", "linear", "zeros", False)))
    >>> (model is None) == bool(why)
    True
    """
    try:
        import onnx_ad  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None, "onnx-ad is not installed: pip install onnx-ad==0.3.0"
    try:
        return onnx_ad.reverse(model, layout="onnx"), ""
    except onnx_ad.UnsupportedOperator as error:
        return None, f"onnx-ad refuses: {error}"


def _grid_sample(image: torch.Tensor, grid: torch.Tensor, cell: Cell) -> torch.Tensor:
    from torch.nn.functional import grid_sample

    return grid_sample(image, grid, ONNX_MODES[cell.mode], cell.padding_mode, cell.align_corners)
