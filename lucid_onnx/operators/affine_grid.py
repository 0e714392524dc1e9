"""Sampling grid of an affine map, and its gradient, as ONNX graphs.

Mirrors `lucid_onnx.reference.affine_grid`.
"""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    compute_dtype,
    constant,
    dims,
    dtype_of,
    known_shape,
    named,
    reshape,
)
from lucid_onnx.operators.coordinates import lattice
from lucid_onnx.reference.schema import check_rank, check_theta


def affine_grid(op: Builder, theta: Value, size: Value, align_corners: bool, rank: int) -> Value:
    """Normalised coordinates at which an affine map samples an image of shape `size`.

    Parameters
    ----------
    op
        The builder.
    theta : Value
        (N, 2, 3) or (N, 3, 4), of a floating dtype; half precision computes in float32.
    size : Value
        (4,) or (5,) of int64: N, C, H, W or N, C, D, H, W.
    align_corners : bool
        Whether -1 and 1 are the centres of the outermost pixels.
    rank : int
        4 or 5: the length of `size`.

    Returns
    -------
    Value
        (N, H, W, 2) or (N, D, H, W, 3) of at least float32, last axis (x, y) or (x, y, z).
    """
    check_rank("affine_grid", rank)
    check_theta(known_shape(theta, "theta"), [None] * rank)
    wide = cast(op, theta, compute_dtype(dtype_of(theta, "theta")))
    points = base_points(op, size, align_corners, rank, dtype_of(wide, "theta"))
    # The product is transposed, not its factors: onnxruntime up to 1.28 fuses a transposed factor into a
    # FusedMatMul that refuses an empty batch and float64.
    grid = op.Transpose(op.MatMul(wide, points), perm=[0, 2, 1])
    return reshape(op, grid, dims(op, theta, 0, 1), _sizes(op, size, 2, rank), [rank - 2])


def affine_grid_backward(op: Builder, grad_grid: Value, size: Value, align_corners: bool, rank: int) -> Value:
    """Gradient of `affine_grid` with respect to theta: (N, 2, 3) or (N, 3, 4), of at least float32."""
    wide = cast(op, grad_grid, compute_dtype(dtype_of(grad_grid, "grad_grid")))
    points = base_points(op, size, align_corners, rank, dtype_of(wide, "grad_grid"))
    flat = reshape(op, wide, dims(op, grad_grid, 0, 1), op.Shape(points, start=1, end=2), [rank - 2])
    return op.Transpose(op.MatMul(points, flat), perm=[0, 2, 1])


def base_points(op: Builder, size: Value, align_corners: bool, rank: int, dtype: ir.DataType) -> Value:
    """Homogeneous normalised coordinates, rows x, y, 1 or x, y, z, 1, of the P pixels: (3, P) or (4, P)."""
    spatial = _sizes(op, size, 2, rank)
    planes = []
    for axis, letter in reversed(list(enumerate("zyx"[5 - rank :]))):
        along = lattice(op, _sizes(op, size, 2 + axis, 3 + axis), align_corners, dtype)
        column = op.Unsqueeze(along, [a for a in range(rank - 2) if a != axis])
        planes.append(op.Expand(named(column, f"{letter}_lattice"), spatial))
    ones = op.Expand(constant(op, 1.0, dtype), spatial)
    points = op.Concat(*[op.Reshape(plane, [1, -1]) for plane in [*planes, ones]], axis=0)
    return named(points, "base_points")


def _sizes(op: Builder, size: Value, start: int, end: int) -> Value:
    """Entries `start` to `end` of `size`."""
    return op.Slice(size, [start], [end], [0])
