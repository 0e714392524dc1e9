"""One operator as an ONNX model: a conformance case, a benchmark, a building block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx
import onnx_ir as ir

from lucid_onnx.operators.affine_grid import affine_grid, affine_grid_backward
from lucid_onnx.operators.building import Builder, Drawing, Value
from lucid_onnx.operators.finishing import (
    DEFAULT_OPSET,
    calling_model,
    check_opset,
    checked,
    clean,
    declare_outputs,
    new_model,
    to_function,
)
from lucid_onnx.operators.grid_sample import grid_sample, grid_sample_backward
from lucid_onnx.operators.tensors import Dimension, TensorSpec, resolve_shapes
from lucid_onnx.reference.schema import (
    ONNX_MODES,
    SPATIAL_AXES,
    as_flag,
    check_choice,
    check_modes,
    check_rank,
    float_dtype,
)

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


@dataclass(frozen=True)
class Variant:
    """What tells one graph of an operator from another.

    Parameters
    ----------
    rank : int
        Rank of the image.
    mode, padding_mode, align_corners : str, str, bool
        As in `grid_sample`.
    image, grid : onnx_ir.DataType
        Element types of X, Y and theta, and of the grid.
    """

    rank: int
    mode: str
    padding_mode: str
    align_corners: bool
    image: ir.DataType
    grid: ir.DataType

    def tensors(self) -> dict[str, TensorSpec]:
        """Every input and output of the four operators by name, all dimensions symbolic."""
        axes: tuple[Dimension, ...] = SPATIAL_AXES[self.rank]
        points: tuple[Dimension, ...] = tuple(f"{axis}o" for axis in axes)
        d = len(axes)
        x, y, theta = ("N", "C", *axes), ("N", "C", *points), ("N", d, d + 1)
        specs = (
            *(TensorSpec(name, self.image, x) for name in ("X", "dX")),
            *(TensorSpec(name, self.image, y) for name in ("Y", "dY")),
            *(TensorSpec(name, self.image, theta) for name in ("theta", "dtheta")),
            *(TensorSpec(name, self.grid, ("N", *points, d)) for name in ("grid", "dgrid")),
            TensorSpec("size", ir.DataType.INT64, (self.rank,)),
        )
        return {spec.name: spec for spec in specs}


Build: TypeAlias = Callable[..., tuple[Value, ...]]
"""Builder, variant and inputs in; outputs out."""


def _grid_sample(op: Builder, v: Variant, x: Value, grid: Value) -> tuple[Value, ...]:
    return (grid_sample(op, x, grid, v.mode, v.padding_mode, v.align_corners),)


def _grid_sample_grad(op: Builder, v: Variant, grad_out: Value, x: Value, grid: Value) -> tuple[Value, ...]:
    return grid_sample_backward(op, grad_out, x, grid, v.mode, v.padding_mode, v.align_corners)


def _affine_grid(op: Builder, v: Variant, theta: Value, size: Value) -> tuple[Value, ...]:
    return (affine_grid(op, theta, size, v.align_corners, v.rank),)


def _affine_grid_grad(op: Builder, v: Variant, grad_grid: Value, size: Value) -> tuple[Value, ...]:
    return (affine_grid_backward(op, grad_grid, size, v.align_corners, v.rank),)


OPERATORS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Build]] = {
    "GridSample": (("X", "grid"), ("Y",), _grid_sample),
    "GridSampleGrad": (("dY", "X", "grid"), ("dX", "dgrid"), _grid_sample_grad),
    "AffineGrid": (("theta", "size"), ("grid",), _affine_grid),
    "AffineGridGrad": (("dgrid", "size"), ("dtheta",), _affine_grid_grad),
}
"""Operators that `operator_model` builds: names of the inputs and the outputs, and what builds the nodes."""


def operator_model(
    operator: str,
    rank: int = 4,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
    dtype: str = "float32",
    opset: int = DEFAULT_OPSET,
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
        not given is symbolic: X is (N, C, D, H, W), Y (N, C, Do, Ho, Wo), the grid (N, Do, Ho, Wo, 3),
        without D in 2-D; dimensions of one name are one dimension.
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
    DtypeError
        A `TypeError`: a dtype that is none of these, or an argument of another type.
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
    how = (mode, padding_mode, align_corners)
    graph = _graph("operator_model", operator, rank, *how, dtype, grid_dtype, opset, shapes or {})
    return checked(calling_model(to_function(graph, DOMAIN, operator)) if as_function else new_model(graph))


def operator_function(
    operator: str,
    rank: int = 4,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = False,
    dtype: str = "float32",
    opset: int = DEFAULT_OPSET,
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
    how = (mode, padding_mode, align_corners)
    graph = _graph("operator_function", operator, rank, *how, dtype, grid_dtype, opset, {})
    return to_function(graph, DOMAIN, operator if name is None else name)


def _graph(
    caller: str,
    operator: str,
    rank: int,
    mode: str,
    padding_mode: str,
    align_corners: bool | None,
    dtype: str,
    grid_dtype: str | None,
    opset: int,
    shapes: Mapping[str, Sequence[Dimension]],
) -> ir.Graph:
    """Arguments, checked, to a finished graph."""
    check_choice(caller, "operator", operator, tuple(OPERATORS))
    rank = check_rank(caller, rank)
    mode = ONNX_MODES.get(mode, mode) if isinstance(mode, str) else mode
    check_modes(caller, mode, padding_mode)
    image, grid = (
        ir.DataType.from_numpy(float_dtype(given, caller, argument))
        for given, argument in ((dtype, "dtype"), (dtype if grid_dtype is None else grid_dtype, "grid_dtype"))
    )
    variant = Variant(rank, mode, padding_mode, as_flag(align_corners, caller), image, grid)
    input_names, output_names, build = OPERATORS[operator]
    tensors = variant.tensors()
    inputs, outputs = resolve_shapes(
        caller, [tensors[name] for name in input_names], [tensors[name] for name in output_names], shapes
    )
    opsets = {"": check_opset(caller, opset)}
    graph = ir.Graph([spec.value() for spec in inputs], [], nodes=[], opset_imports=opsets, name=operator)
    op = Drawing(graph).op
    declare_outputs(op, graph, build(op, variant, *graph.inputs), outputs)
    return clean(new_model(graph)).graph
