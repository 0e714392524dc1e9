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
    float_dtype_of,
    known_shape,
    named,
    reshape,
    typed,
)
from lucid_onnx.operators.coordinates import lattice
from lucid_onnx.reference.schema import as_flag, check_grad_grid, check_rank, check_theta


def affine_grid(op: Builder, theta: Value, size: Value, align_corners: bool | None = None, rank: int = 4) -> Value:
    """Normalised coordinates at which an affine map samples an image of shape `size`.

    Parameters
    ----------
    op
        The builder.
    theta : Value
        (N, 2, 3) or (N, 3, 4), of a floating dtype; any dimension may be symbolic.
    size : Value
        (4,) or (5,) of int64: N, C, H, W or N, C, D, H, W.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels; None means False.
    rank : {4, 5}
        The length of `size`.

    Returns
    -------
    Value
        (N, H, W, 2) or (N, D, H, W, 3), last axis (x, y) or (x, y, z); of theta's dtype, but float32 for a
        theta of half precision: in a graph the coordinates stay wide, and a cast of them is written out.

    Raises
    ------
    ArgumentError
        Another rank, or a theta that does not fit it.
    DtypeError
        A theta of no floating dtype.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> theta = builder.input("theta", ir.DataType.FLOAT, ["N", 2, 3])
    >>> grid = affine_grid(builder.op, theta, builder.op.Constant(value_ints=[1, 1, 4, 5]))
    >>> grid.producer().op_type
    'Reshape'
    """
    rank = check_rank("affine_grid", rank)
    check_theta(known_shape(theta, "theta"), [None] * rank)
    corners = as_flag(align_corners, "affine_grid")
    dtype = compute_dtype(float_dtype_of(theta, "affine_grid", "theta"))
    op = typed(op, dtype)
    wide = cast(op, theta, dtype)
    points = base_points(op, size, corners, dtype, rank)
    # The product is transposed, not its factors: onnxruntime up to 1.28 fuses a transposed factor into a
    # FusedMatMul that refuses an empty batch and float64.
    grid = op.Transpose(op.MatMul(wide, points), perm=[0, 2, 1])
    return reshape(op, grid, dims(op, theta, 0, 1), _sizes(op, size, 2, rank), [rank - 2])


def affine_grid_backward(
    op: Builder, grad_grid: Value, size: Value, align_corners: bool | None = None, rank: int = 4
) -> Value:
    """Gradient of `affine_grid` with respect to theta.

    Parameters
    ----------
    op
        The builder.
    grad_grid : Value
        Gradient with respect to the grid: (N, H, W, 2) or (N, D, H, W, 3), of a floating dtype.
    size, align_corners, rank
        As in the forward call.

    Returns
    -------
    Value
        (N, 2, 3) or (N, 3, 4), of at least float32. The points are summed by a reduction and not by a MatMul,
        whose order depends on the number of threads.

    Raises
    ------
    ArgumentError
        Another rank, or a gradient that does not fit it.
    DtypeError
        A gradient of no floating dtype.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> grad_grid = builder.input("grad_grid", ir.DataType.FLOAT, ["N", 4, 5, 2])
    >>> affine_grid_backward(builder.op, grad_grid, builder.op.Constant(value_ints=[1, 1, 4, 5])).dtype
    FLOAT
    """
    rank = check_rank("affine_grid_backward", rank)
    check_grad_grid(known_shape(grad_grid, "grad_grid"), [None] * rank)
    corners = as_flag(align_corners, "affine_grid_backward")
    dtype = compute_dtype(float_dtype_of(grad_grid, "affine_grid_backward", "grad_grid"))
    op = typed(op, dtype)
    wide = cast(op, grad_grid, dtype)
    points = base_points(op, size, corners, dtype, rank)
    flat = reshape(op, wide, dims(op, grad_grid, 0, 1), op.Shape(points, start=1, end=2), [rank - 2])
    planes = op.Unsqueeze(op.Transpose(flat, perm=[0, 2, 1]), [2])
    # Not axis -1: onnxruntime before 1.32 does not reduce an empty tensor along a negative axis.
    return op.ReduceSum(op.Mul(planes, points), [3], keepdims=0)


def base_points(op: Builder, size: Value, align_corners: bool, dtype: ir.DataType, rank: int) -> Value:
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
