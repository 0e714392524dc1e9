"""One operator as an ONNX model: a conformance case, a benchmark, a building block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder

from lucid_onnx.operators.affine_grid import affine_grid, affine_grid_backward
from lucid_onnx.operators.building import (
    Builder,
    Value,
    calling_model,
    check_opset,
    checked,
    clean,
    declare_outputs,
    new_model,
    to_function,
)
from lucid_onnx.operators.grid_sample import grid_sample, grid_sample_backward
from lucid_onnx.operators.signature import Dimension, TensorSpec, resolve_shapes
from lucid_onnx.reference.schema import (
    ONNX_MODES,
    SPATIAL_AXES,
    as_flag,
    check_choice,
    check_modes,
    check_rank,
    float_dtype,
)

OPERATORS = ("GridSample", "GridSampleGrad", "AffineGrid", "AffineGridGrad")
"""Operators that `operator_model` builds."""

TARGETS = (
    "onnxruntime-cpu",
    "onnxruntime-cuda",
    "onnxruntime-directml",
    "onnxruntime-webgpu",
    "onnxruntime-coreml",
    "onnxruntime-qnn",
    "tensorrt",
    "openvino",
    "portable",
)
"""Names of the runtimes that a model can be built for."""

DOMAIN = "lucid_onnx"
"""Domain of the model-local functions."""

Body: TypeAlias = Callable[..., list[Value]]


def operator_model(
    operator: str,
    rank: int = 4,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
    dtype: str = "float32",
    opset: int = 20,
    target: str = "onnxruntime-cpu",
    shapes: Mapping[str, Sequence[Dimension]] | None = None,
    grid_dtype: str | None = None,
    as_function: bool = False,
) -> onnx.ModelProto:
    """One operator, or its gradient, as an ONNX model of standard operators.

    Parameters
    ----------
    operator : {"GridSample", "GridSampleGrad", "AffineGrid", "AffineGridGrad"}
        Inputs and outputs are ``X, grid -> Y``; ``dY, X, grid -> dX, dgrid``; ``theta, size -> grid``; and
        ``dgrid, size -> dtheta``.
    rank : {4, 5}
        Rank of the image: (N, C, H, W) or (N, C, D, H, W).
    mode : {"bilinear", "nearest", "bicubic"}
        Or "linear" and "cubic", as ONNX calls them from opset 20 on. Cubic may be 5-D. Of no effect on
        AffineGrid, as is `padding_mode`.
    padding_mode : {"zeros", "border", "reflection"}
        What lies outside the image.
    align_corners : bool, optional
        Whether -1 and 1 are the centres of the outermost pixels; None means False.
    dtype : {"float32", "float64", "float16", "bfloat16"}
        Dtype of X, Y and theta. Half precision computes in float32 and is rounded once.
    opset : int
        From 16 up to the newest that the installed onnx knows.
    target : str
        Name of the runtime the model is for, one of `TARGETS`. The graph holds neither GridSample nor
        AffineGrid and is the same for all of them.
    shapes : mapping of str to sequence, optional
        Shape of an input by its name; a string is a symbolic dimension, None one without a name. What is
        not given is symbolic: X is (N, C, D, H, W), the grid (N, Do, Ho, Wo, 3), a grid of AffineGrid
        (N, D, H, W, 3), without D in 2-D; dimensions of one name are one dimension.
    grid_dtype : str, optional
        Dtype of the grid and of its gradient, by default `dtype`. "float32" with a half-precision image is
        the advised form.
    as_function : bool
        Whether the graph becomes a model-local function of the domain "lucid_onnx", so that one node stands
        for the operator.

    Returns
    -------
    onnx.ModelProto
        Checked, with shapes inferred.

    Raises
    ------
    ArgumentError
        A `ValueError`: a value that is not one of those above, or shapes that do not fit.
    UnsupportedError
        A `NotImplementedError`: an opset that has no such model.

    Examples
    --------
    >>> model = operator_model("GridSample", shapes={"X": (1, 3, "H", "W")})
    >>> [value.name for value in model.graph.input], [value.name for value in model.graph.output]
    (['X', 'grid'], ['Y'])
    >>> model = operator_model("AffineGrid", rank=5, as_function=True)
    >>> [(node.domain, node.op_type) for node in model.graph.node]
    [('lucid_onnx', 'AffineGrid')]
    """
    check_choice("operator_model", "target", target, TARGETS)
    graph = _graph(operator, rank, mode, padding_mode, align_corners, dtype, grid_dtype, opset, shapes)
    return checked(calling_model(to_function(graph, DOMAIN, operator)) if as_function else new_model(graph))


def operator_function(
    operator: str,
    rank: int = 4,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
    dtype: str = "float32",
    opset: int = 20,
    grid_dtype: str | None = None,
    name: str | None = None,
) -> ir.Function:
    """One operator, or its gradient, as a model-local function, for a model that calls several.

    Parameters
    ----------
    operator, rank, mode, padding_mode, align_corners, dtype, opset, grid_dtype
        As in `operator_model`.
    name : str, optional
        Name of the function in the domain "lucid_onnx", by default that of the operator.

    Examples
    --------
    >>> function = operator_function("GridSample", padding_mode="border", name="sample_border")
    >>> [value.name for value in function.inputs]
    ['X', 'grid']
    """
    graph = _graph(operator, rank, mode, padding_mode, align_corners, dtype, grid_dtype, opset, None)
    return to_function(graph, DOMAIN, operator if name is None else name)


def _graph(
    operator: str,
    rank: int,
    mode: str,
    padding_mode: str,
    align_corners: bool | None,
    dtype: str,
    grid_dtype: str | None,
    opset: int,
    shapes: Mapping[str, Sequence[Dimension]] | None,
) -> ir.Graph:
    """Checked arguments to a finished graph."""
    check_choice("operator_model", "operator", operator, OPERATORS)
    check_rank("operator_model", rank)
    mode = next((name for name, onnx_name in ONNX_MODES.items() if mode == onnx_name), mode)
    check_modes("operator_model", mode, padding_mode)
    opset = check_opset("operator_model", opset)
    corners = as_flag(align_corners, "operator_model")
    image = _element_type(dtype, "dtype")
    grid = image if grid_dtype is None else _element_type(grid_dtype, "grid_dtype")
    inputs, outputs = resolve_shapes(*_signature(operator, rank, image, grid), shapes or {})
    graph = ir.Graph([spec.value() for spec in inputs], [], nodes=[], opset_imports={"": opset}, name=operator)
    op = GraphBuilder(graph).op
    body = _body(operator, rank, mode, padding_mode, corners)
    declare_outputs(op, graph, body(op, *graph.inputs), outputs)
    return clean(new_model(graph)).graph


def _element_type(dtype: str, argument: str) -> ir.DataType:
    return ir.DataType.from_numpy(float_dtype(dtype, "operator_model", argument))


def _signature(
    operator: str, rank: int, image: ir.DataType, grid: ir.DataType
) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of an operator with all dimensions symbolic."""
    axes: tuple[Dimension, ...] = SPATIAL_AXES[rank]
    points: tuple[Dimension, ...] = tuple(f"{axis}o" for axis in axes)
    d = len(axes)
    if operator in ("AffineGrid", "AffineGridGrad"):
        theta = ("N", d, d + 1)
        lattice = ("N", *axes, d)
        size = TensorSpec("size", ir.DataType.INT64, (rank,))
        if operator == "AffineGrid":
            return [TensorSpec("theta", image, theta), size], [TensorSpec("grid", grid, lattice)]
        return [TensorSpec("dgrid", grid, lattice), size], [TensorSpec("dtheta", image, theta)]
    x, y = ("N", "C", *axes), ("N", "C", *points)
    sampled = [TensorSpec("X", image, x), TensorSpec("grid", grid, ("N", *points, d))]
    if operator == "GridSample":
        return sampled, [TensorSpec("Y", image, y)]
    gradients = [TensorSpec("dX", image, x), TensorSpec("dgrid", grid, ("N", *points, d))]
    return [TensorSpec("dY", image, y), *sampled], gradients


def _body(operator: str, rank: int, mode: str, padding_mode: str, align_corners: bool) -> Body:
    """Function that builds the nodes of an operator from its inputs."""

    def forward(op: Builder, x: Value, grid: Value) -> list[Value]:
        return [grid_sample(op, x, grid, mode, padding_mode, align_corners)]

    def backward(op: Builder, grad_out: Value, x: Value, grid: Value) -> list[Value]:
        return list(grid_sample_backward(op, grad_out, x, grid, mode, padding_mode, align_corners))

    def affine(op: Builder, theta: Value, size: Value) -> list[Value]:
        return [affine_grid(op, theta, size, align_corners, rank)]

    def affine_backward(op: Builder, grad_grid: Value, size: Value) -> list[Value]:
        return [affine_grid_backward(op, grad_grid, size, align_corners, rank)]

    bodies: dict[str, Body] = {
        "GridSample": forward,
        "GridSampleGrad": backward,
        "AffineGrid": affine,
        "AffineGridGrad": affine_backward,
    }
    return bodies[operator]
