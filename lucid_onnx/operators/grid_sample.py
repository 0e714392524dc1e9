"""Sampling an image at a grid of coordinates, and its gradients, as ONNX graphs of standard operators.

Mirrors `lucid_onnx.reference.grid_sample`.
"""

from __future__ import annotations

from lucid_onnx.operators.backward import Backward
from lucid_onnx.operators.building import Builder, Value, cast, dtype_of
from lucid_onnx.operators.forward import Forward


def grid_sample(
    op: Builder,
    x: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
    assume_finite: bool = False,
) -> Value:
    """Sample the image `x` at the normalised coordinates `grid`. Mirrors ``grid_sample_nd``.

    Parameters
    ----------
    op
        The builder.
    x : Value
        (N, C, H, W) or (N, C, D, H, W), of a floating dtype and of known rank; any dimension may be symbolic.
    grid : Value
        (N, Ho, Wo, 2) or (N, Do, Ho, Wo, 3), of a floating dtype, normalised.
    mode : {"bilinear", "nearest", "bicubic"}
        "bicubic" of a 5-D image is the product of three cubic interpolations, as ONNX defines it.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels; None means False.
    assume_finite : bool
        Whether NaN and infinite coordinates need not land where the reference lets them. That saves a few
        comparisons a point.

    Returns
    -------
    Value
        (N, C, Ho, Wo) or (N, C, Do, Ho, Wo) of `x`'s dtype.

    Raises
    ------
    ArgumentError
        An unknown mode or padding mode, or shapes of which it is known that they do not fit.
    DtypeError
        An image or a grid of no floating dtype.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> x = builder.input("x", ir.DataType.FLOAT, ["N", 3, "H", "W"])
    >>> grid = builder.input("grid", ir.DataType.FLOAT, ["N", 8, 8, 2])
    >>> grid_sample(builder.op, x, grid, padding_mode="border").dtype
    FLOAT
    """
    plan = Forward(op, x, grid, mode, padding_mode, align_corners, assume_finite)
    y = plan.chosen() if mode == "nearest" and not plan.is_large() else plan.gathered()
    return cast(plan.op, y, dtype_of(x, "x"))


def grid_sample_backward(
    op: Builder,
    grad_out: Value,
    x: Value,
    grid: Value,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> tuple[Value, Value]:
    """Gradients of `grid_sample` with respect to the image and to the grid. Mirrors ``grid_sample_nd_backward``.

    Parameters
    ----------
    op
        The builder.
    grad_out : Value
        Gradient with respect to the output, of its shape and of a floating dtype.
    x, grid, mode, padding_mode, align_corners
        As in the forward call.

    Returns
    -------
    grad_x, grad_grid : Value
        Of the shapes and dtypes of `x` and `grid`.

    Raises
    ------
    ArgumentError, DtypeError
        As `grid_sample`; also for a `grad_out` that does not fit.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> from onnxscript import GraphBuilder
    >>> builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports={"": 20}))
    >>> shapes = {"grad_out": ["N", 3, 8, 8], "x": ["N", 3, "H", "W"], "grid": ["N", 8, 8, 2]}
    >>> inputs = [builder.input(name, ir.DataType.FLOAT, shape) for name, shape in shapes.items()]
    >>> [gradient.dtype for gradient in grid_sample_backward(builder.op, *inputs)]
    [FLOAT, FLOAT]
    """
    plan = Backward(op, grad_out, x, grid, mode, padding_mode, align_corners)
    return plan.grad_x(), plan.grad_grid()
