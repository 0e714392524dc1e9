"""Sampling an image at a grid of coordinates, its gradients, and the autograd node.

Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015; ``torch.nn.functional.grid_sample``, whose
faults `lucid_onnx.reference.pytorch_faults` lists; ONNX GridSample, opset 16 to 22.

Mirrored by `lucid_onnx.operators.grid_sample`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lucid_onnx.reference import interpolation
from lucid_onnx.reference.coordinates import unnormalize, unnormalize_slope
from lucid_onnx.reference.schema import (
    AmpPolicy,
    Array,
    OpSchema,
    as_array,
    as_flag,
    autocast,
    check_grad_out,
    check_grid_sample,
    check_volume_mode,
    compute_dtype,
)

SCHEMA = OpSchema("grid_sample", 1, AmpPolicy.Promote, real_valued=True)


def grid_sample(
    x: npt.ArrayLike,
    grid: npt.ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """Sample the image `x` at the normalised coordinates `grid`.

    Parameters
    ----------
    x : array
        (N, C, H, W) or (N, C, D, H, W). Integers are promoted to float32.
    grid : array
        (N, Ho, Wo, 2) or (N, Do, Ho, Wo, 3), last axis (x, y) or (x, y, z), normalised: -1 and 1 are the
        ends of an axis. It may differ from `x` in dtype: a float32 grid suits a float16 image. Integers are
        promoted to float32.
    mode : {"bilinear", "nearest", "bicubic"}
        "bilinear" is trilinear for a 5-D image, "bicubic" (Keys, a = -0.75) is for 4-D images only, and
        "nearest" rounds half to even.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels (True) or their outer edges. None means
        False.

    Returns
    -------
    Array
        (N, C, Ho, Wo) or (N, C, Do, Ho, Wo), of `x`'s dtype. The arithmetic runs in the wider of the two
        dtypes and at least in float32. An empty batch, no channels or an empty grid give an empty result.

    Raises
    ------
    ArgumentError
        A `ValueError`: an unknown mode or padding_mode, bicubic with a 5-D image, shapes that do not fit,
        or an image without pixels where there is something to sample.
    DtypeError
        A `TypeError`: a complex or other dtype that has no place here.

    Examples
    --------
    >>> image = np.array([[[[1.0, 2.0, 3.0, 4.0]]]])
    >>> points = np.array([[[[-0.5, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]]])
    >>> grid_sample(image, points).ravel().tolist()
    [1.5, 2.5, 2.0, 0.0]
    >>> grid_sample(image, points, padding_mode="border").ravel().tolist()
    [1.5, 2.5, 4.0, 4.0]
    """
    x = as_array(x, "grid_sample", "x")
    check_volume_mode(x.ndim, mode, "grid_sample")
    return grid_sample_nd(x, grid, mode, padding_mode, align_corners)


def grid_sample_nd(
    x: npt.ArrayLike,
    grid: npt.ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """`grid_sample` with cubic interpolation of volumes, which ONNX's GridSample defines and PyTorch does not.

    Parameters, result and errors are those of `grid_sample`, but for mode "bicubic" with a 5-D image: the
    product of three cubic interpolations.

    Examples
    --------
    >>> volume = np.arange(27.0).reshape(1, 1, 3, 3, 3)
    >>> grid_sample_nd(volume, np.zeros((1, 1, 1, 1, 3)), mode="bicubic").item()
    13.0
    """
    with np.errstate(all="ignore"):
        plan = _Plan(x, grid, mode, padding_mode, align_corners, "grid_sample")
        image, (index, _) = plan.table(), plan.read()
        y = np.zeros((image.shape[0], index.shape[1]), plan.dtype)
        for k in range(len(index)):
            pixels = image.take(index[k], axis=1)
            y += pixels if plan.weight is None else pixels * plan.weight[k]
        return _to_images(y, plan.grid.shape[:-1]).astype(plan.x_dtype, copy=False)


def grid_sample_backward(
    grad_out: npt.ArrayLike,
    x: npt.ArrayLike,
    grid: npt.ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> tuple[Array, Array]:
    """Gradients of `grid_sample` with respect to the image and to the grid.

    Parameters
    ----------
    grad_out : array
        Gradient with respect to the output, of its shape.
    x, grid, mode, padding_mode, align_corners
        As in the forward call.

    Returns
    -------
    grad_x : Array
        Of the shape and dtype of `x` (float32 for integers): the adjoint of the sampling.
    grad_grid : Array
        Of the shape and dtype of `grid`: per normalised unit. 0 for "nearest", and along an axis whose
        coordinate was clipped, which a coordinate on the border counts as. NaN, on every axis, for a point
        whose value is NaN because its coordinate is not finite; such a point adds nothing to `grad_x`.

    Raises
    ------
    ArgumentError, DtypeError
        As `grid_sample`; also if `grad_out` is not shaped like the output.

    Examples
    --------
    >>> image = np.array([[[[1.0, 2.0, 3.0, 4.0]]]])
    >>> points = np.array([[[[-0.5, 0.0]]]])
    >>> grad_x, grad_grid = grid_sample_backward(np.ones((1, 1, 1, 1)), image, points)
    >>> grad_x.ravel().tolist(), grad_grid.ravel().tolist()
    ([0.5, 0.5, 0.0, 0.0], [2.0, -0.75])
    """
    x = as_array(x, "grid_sample_backward", "x")
    check_volume_mode(x.ndim, mode, "grid_sample_backward")
    return grid_sample_nd_backward(grad_out, x, grid, mode, padding_mode, align_corners)


def grid_sample_nd_backward(
    grad_out: npt.ArrayLike,
    x: npt.ArrayLike,
    grid: npt.ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> tuple[Array, Array]:
    """Gradients of `grid_sample_nd`: those of `grid_sample`, and of cubic interpolation of volumes.

    Examples
    --------
    >>> volume = np.arange(27.0).reshape(1, 1, 3, 3, 3)
    >>> center, one = np.zeros((1, 1, 1, 1, 3)), np.ones((1, 1, 1, 1, 1))
    >>> grad_x, grad_grid = grid_sample_nd_backward(one, volume, center, mode="bicubic")
    >>> grad_x.sum().item(), grad_grid.shape
    (1.0, (1, 1, 1, 1, 3))
    """
    grad_out = as_array(grad_out, "grid_sample_backward", "grad_out")
    SCHEMA.input_dtype(grad_out.dtype, "grad_out", "grid_sample_backward")
    with np.errstate(all="ignore"):
        plan = _Plan(x, grid, mode, padding_mode, align_corners, "grid_sample_backward")
        check_grad_out(plan.x.shape, plan.grid.shape, grad_out.shape)
        grad_y = _to_channels(grad_out.astype(plan.dtype, copy=False))
        image, (index, inside) = plan.table(), plan.read()
        grad_image = np.zeros(image.shape, plan.dtype)
        dots = np.zeros(index.shape, plan.dtype)
        for k in range(len(index)):
            update = grad_y if plan.weight is None else grad_y * plan.weight[k]
            _scatter_add(grad_image, index[k], update)
            if mode != "nearest":
                dots[k] = (image.take(index[k], axis=1) * grad_y).sum(axis=0)
        grad_x = _to_images(grad_image[:, :-1], (plan.x.shape[0], *plan.sizes))
        if mode == "nearest":
            grad_grid = np.zeros(plan.grid.shape, plan.dtype)
        else:
            # A tap that is not read adds nothing, not even where grad_out is infinite.
            grad_grid = plan.grad_grid(np.where(inside, dots, 0))
        return grad_x.astype(plan.x_dtype, copy=False), grad_grid.astype(plan.grid_dtype, copy=False)


class _Plan:
    """Checked arguments of one call, and what the forward and the backward have in common.

    The pixels of all images of the batch lie on one axis, and the P points of all grids on another.
    """

    def __init__(
        self,
        x: npt.ArrayLike,
        grid: npt.ArrayLike,
        mode: str,
        padding_mode: str,
        align_corners: bool | None,
        operator: str,
    ) -> None:
        x, grid = as_array(x, operator, "x"), as_array(grid, operator, "grid")
        check_grid_sample(x.shape, grid.shape, mode, padding_mode, operator)
        self.x_dtype = SCHEMA.input_dtype(x.dtype, "x", operator)
        self.grid_dtype = SCHEMA.input_dtype(grid.dtype, "grid", operator)
        self.dtype = compute_dtype(self.x_dtype, self.grid_dtype)
        self.x = x.astype(self.x_dtype, copy=False).astype(self.dtype, copy=False)
        self.grid = grid.astype(self.grid_dtype, copy=False).astype(self.dtype, copy=False)
        self.sizes = x.shape[2:]
        self._align_corners = as_flag(align_corners, operator)
        self._how = (mode, padding_mode, self._align_corners, x.ndim)
        planes = self.grid.reshape(-1, len(self.sizes)).T[::-1, None]
        self.pixels = [unnormalize(g, n, self._align_corners) for g, n in zip(planes, self.sizes, strict=True)]
        self.taps = [interpolation.taps(p, n, *self._how) for p, n in zip(self.pixels, self.sizes, strict=True)]
        self.weight = None if mode == "nearest" else interpolation.corners(self.weights(), mode)

    def weights(self) -> list[Array]:
        """Weights (T, P) along each axis; none for nearest."""
        return [tap.weight for tap in self.taps if tap.weight is not None]

    def table(self) -> Array:
        """Pixels of the batch, (C, N*H*W + 1); the last one is zero and stands for all that is not read."""
        pixels = _to_channels(self.x)
        return np.concatenate([pixels, np.zeros((pixels.shape[0], 1), self.dtype)], axis=1)

    def read(self) -> tuple[Array, Array]:
        """Columns (K, P) of `table` that the points read, and whether these are pixels of the image."""
        count = math.prod(self.sizes)
        per_image = math.prod(self.grid.shape[1:-1])
        point = np.arange(len(self.x) * per_image, dtype=np.int64)
        offset = point // max(per_image, 1) * count
        index, inside = interpolation.flat_index(self.taps, self.sizes, offset, self._how[0])
        return np.where(inside, index, count * len(self.x)), inside

    def grad_grid(self, dots: Array) -> Array:
        """Gradient with respect to the grid, from grad_out times each pixel that was read, (K, P)."""
        planes = []
        for axis, size in enumerate(self.sizes):
            factors = self.weights()
            factors[axis] = interpolation.slopes(self.pixels[axis], size, *self._how)
            along = (interpolation.corners(factors, self._how[0]) * dots).sum(axis=0)
            planes.append(along * unnormalize_slope(size, self._align_corners))
        return np.stack(planes[::-1], axis=-1).reshape(self.grid.shape)


class GridSampleBackward:
    """Autograd node of `grid_sample`: what the backward pass has to know.

    Attributes
    ----------
    mode_, padding_mode_, align_corners_ : str, str, bool
        Arguments of the forward call.
    input_shape_, grid_shape_ : tuple of int
        Shapes of the image and of the grid, which are those of their gradients.
    saved_inputs_ : tuple of Array
        The image and the grid, as `autocast` had them.

    Examples
    --------
    >>> image, grid = np.ones((1, 1, 2, 2)), np.zeros((1, 1, 1, 2))
    >>> y, node = GridSampleBackward.forward(image, grid, "bilinear", "zeros", False)
    >>> grad_x, grad_grid = node.apply(np.ones_like(y))
    >>> grad_x.ravel().tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    schema_v1 = SCHEMA

    def __init__(self, x: Array, grid: Array, mode: str, padding_mode: str, align_corners: bool) -> None:
        self.mode_ = mode
        self.padding_mode_ = padding_mode
        self.align_corners_ = align_corners
        self.input_shape_ = x.shape
        self.grid_shape_ = grid.shape
        self.saved_inputs_ = (
            x.astype(SCHEMA.input_dtype(x.dtype, "x"), copy=False),
            grid.astype(SCHEMA.input_dtype(grid.dtype, "grid"), copy=False),
        )
        with autocast(None):
            self._dtypes = (SCHEMA.input_dtype(x.dtype, "x"), SCHEMA.input_dtype(grid.dtype, "grid"))

    @classmethod
    def forward(
        cls,
        x: npt.ArrayLike,
        grid: npt.ArrayLike,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool | None = None,
    ) -> tuple[Array, GridSampleBackward]:
        """Samples of `x` at `grid`, and the node."""
        x, grid = as_array(x, "grid_sample", "x"), as_array(grid, "grid_sample", "grid")
        y = grid_sample(x, grid, mode, padding_mode, align_corners)
        return y, cls(x, grid, mode, padding_mode, bool(align_corners))

    def apply(self, grad_out: npt.ArrayLike) -> tuple[Array, Array]:
        """Gradients with respect to the image and the grid, of their shapes and (if floating) dtypes."""
        x, grid = self.saved_inputs_
        how = self.mode_, self.padding_mode_
        with autocast(None):
            grad_x, grad_grid = grid_sample_backward(grad_out, x, grid, *how, self.align_corners_)
        return grad_x.astype(self._dtypes[0], copy=False), grad_grid.astype(self._dtypes[1], copy=False)


def _to_channels(images: Array) -> Array:
    """(N, C, …) as (C, N*…)."""
    moved = np.moveaxis(images, 1, 0)
    return moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))


def _to_images(channels: Array, batch_and_spatial: tuple[int, ...]) -> Array:
    """Inverse of `_to_channels`, for any number of axes behind the channels."""
    return np.moveaxis(channels.reshape(channels.shape[0], *batch_and_spatial), 0, 1)


def _scatter_add(table: Array, index: Array, updates: Array) -> None:
    """Add `updates` (C, P) to the columns `index` (P,) of `table` (C, M), in the order of the points."""
    rows = np.arange(table.shape[0], dtype=np.int64)[:, None] * table.shape[1]
    np.add.at(table.reshape(-1), (rows + index).reshape(-1), updates.reshape(-1))
