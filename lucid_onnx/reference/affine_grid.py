"""Sampling grid of an affine map, its gradient, and the autograd node.

Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015; ``torch.nn.functional.affine_grid``;
ONNX AffineGrid, opset 20.

Mirrored by `lucid_onnx.operators.affine_grid`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lucid_onnx.reference.coordinates import lattice
from lucid_onnx.reference.schema import (
    AmpPolicy,
    Array,
    OpSchema,
    as_array,
    as_flag,
    autocast,
    check_grad_grid,
    check_size,
    check_theta,
    compute_dtype,
)

SCHEMA = OpSchema("affine_grid", 1, AmpPolicy.Promote)


def affine_grid(theta: npt.ArrayLike, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """Normalised coordinates at which an affine map samples an image of shape `size`.

    ``grid[n, i, j] = theta[n] @ (x, y, 1)`` where ``(x, y)`` runs over the centres of the pixels.

    Parameters
    ----------
    theta : array
        (N, 2, 3) with a `size` of four, (N, 3, 4) with one of five; a floating dtype. float16 and bfloat16
        are computed in float32 and rounded once.
    size : sequence of int
        (N, C, H, W) or (N, C, D, H, W). C is not used.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels (True) or their outer edges. None means
        False. With True an axis of a single pixel lies at 0.

    Returns
    -------
    Array
        (N, H, W, 2) or (N, D, H, W, 3) of theta's dtype, last axis (x, y) or (x, y, z), normalised.

    Raises
    ------
    ArgumentError
        A `ValueError`: `size` has not four or five entries, one is negative, or `theta` does not fit.
    DtypeError
        A `TypeError`: `theta` is not of a floating dtype.

    Examples
    --------
    >>> identity = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> affine_grid(identity, (1, 1, 2, 2))[0, 0].tolist()
    [[-0.5, -0.5], [0.5, -0.5]]
    >>> affine_grid(identity, (1, 1, 2, 2), align_corners=True)[0, 0].tolist()
    [[-1.0, -1.0], [1.0, -1.0]]
    """
    sizes = check_size(size)
    theta = as_array(theta, "affine_grid", "theta")
    dtype = SCHEMA.input_dtype(theta.dtype, "theta")
    check_theta(theta.shape, sizes)
    corners = as_flag(align_corners, "affine_grid")
    wide = theta.astype(dtype, copy=False).astype(compute_dtype(dtype), copy=False)
    with np.errstate(all="ignore"):
        planes = wide @ base_points(sizes, corners, wide.dtype)
        grid: Array = np.swapaxes(planes, 1, 2).reshape(sizes[0], *sizes[2:], len(sizes) - 2)
        return grid.astype(dtype, copy=False)


def affine_grid_backward(grad_grid: npt.ArrayLike, size: Sequence[int], align_corners: bool | None = None) -> Array:
    """Gradient of `affine_grid` with respect to theta.

    ``grad_theta[n]`` is the sum over the points of ``outer(grad_grid, (x, y, 1))``.

    Parameters
    ----------
    grad_grid : array
        Gradient with respect to the grid: (N, H, W, 2) or (N, D, H, W, 3).
    size : sequence of int
        The `size` of the forward call.
    align_corners : bool, optional
        That of the forward call.

    Returns
    -------
    Array
        (N, 2, 3) or (N, 3, 4), of `grad_grid`'s dtype. It does not depend on theta: the map is linear.

    Raises
    ------
    ArgumentError
        `size` is not valid, or `grad_grid` is not the shape of the grid that it gives.
    DtypeError
        `grad_grid` is not of a floating dtype.

    Examples
    --------
    >>> affine_grid_backward(np.ones((1, 2, 2, 2)), (1, 1, 2, 2))[0].tolist()
    [[0.0, 0.0, 4.0], [0.0, 0.0, 4.0]]
    """
    sizes = check_size(size, "affine_grid_backward")
    grad_grid = as_array(grad_grid, "affine_grid_backward", "grad_grid")
    dtype = SCHEMA.input_dtype(grad_grid.dtype, "grad_grid", "affine_grid_backward")
    check_grad_grid(grad_grid.shape, sizes)
    d = len(sizes) - 2
    points = base_points(sizes, as_flag(align_corners, "affine_grid_backward"), compute_dtype(dtype))
    wide = grad_grid.astype(dtype, copy=False).astype(points.dtype, copy=False)
    with np.errstate(all="ignore"):
        planes = np.swapaxes(wide.reshape(sizes[0], points.shape[1], d), 1, 2)
        grad_theta: Array = (planes[:, :, None] * points).sum(axis=-1).astype(dtype, copy=False)
        return grad_theta


def base_points(size: Sequence[int], align_corners: bool, dtype: np.dtype[Any]) -> Array:
    """Homogeneous normalised coordinates, rows x, y, 1 or x, y, z, 1, of the P pixels: (3, P) or (4, P)."""
    axes = [lattice(n, align_corners, dtype) for n in size[2:]]
    planes = np.meshgrid(*axes, indexing="ij")[::-1]
    points = np.stack([*planes, np.ones(tuple(size[2:]), dtype)])
    return points.reshape(len(axes) + 1, math.prod(size[2:]))


class AffineGridBackward:
    """Autograd node of `affine_grid`: what the backward pass has to know.

    Attributes
    ----------
    align_corners_, N_, H_, W_, D_ : bool, int
        Arguments of the forward call; `D_` is None in 2-D.
    orig_theta_shape_ : tuple of int
        Shape of theta, which is that of its gradient.

    Examples
    --------
    >>> theta = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> grid, node = AffineGridBackward.forward(theta, 1, 2, 2, False)
    >>> node.apply(np.ones_like(grid)).shape == node.orig_theta_shape_
    True
    """

    schema_v1 = SCHEMA

    def __init__(
        self,
        orig_theta_shape: tuple[int, ...],
        orig_theta_dtype: np.dtype[Any],
        size: tuple[int, ...],
        align_corners: bool,
    ) -> None:
        self.align_corners_ = align_corners
        self.N_, self.H_, self.W_ = size[0], size[-2], size[-1]
        self.D_ = size[2] if len(size) == 5 else None
        self.orig_theta_shape_ = orig_theta_shape
        self._size = size
        self._dtype = orig_theta_dtype

    @classmethod
    def forward(
        cls,
        theta: npt.ArrayLike,
        N: int,
        H: int,
        W: int,
        align_corners: bool | None = None,
        D: int | None = None,
    ) -> tuple[Array, AffineGridBackward]:
        """Grid of `theta` over N images of H x W, or D x H x W, pixels; and its node."""
        size = check_size((N, 1, H, W) if D is None else (N, 1, D, H, W))
        theta = as_array(theta, "affine_grid", "theta")
        grid = affine_grid(theta, size, align_corners)
        return grid, cls(theta.shape, theta.dtype, size, bool(align_corners))

    def apply(self, grad_out: npt.ArrayLike) -> Array:
        """Gradient with respect to theta, of theta's shape and dtype."""
        with autocast(None):
            grad_theta = affine_grid_backward(grad_out, self._size, self.align_corners_)
        return grad_theta.astype(self._dtype, copy=False)
