"""The two operators that this package is about. Their gradients are those of `operators`, built once for like nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.inline import inline
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.lowering.nodes import Sampling, constant_of, known_dimensions, read
from lucid_onnx.operators.affine_grid import affine_grid_backward
from lucid_onnx.operators.building import Drawing, Value, cast, compute_dtype, dtype_of
from lucid_onnx.operators.finishing import clean, new_model
from lucid_onnx.operators.grid_sample import grid_sample_backward

Shape = tuple[int | None, ...]


@rule("GridSample")
def grid_sample(call: Call, g: Value) -> Gradients:
    """y_p = Σ_k w_k(u_p) x[k], so that dx[k] = Σ_p w_k(u_p) g_p and du_p = Σ_k w_k'(u_p) x[k] g_p."""
    sampling = read(call.node)
    dtype = compute_dtype(sampling.dtype, sampling.grid_dtype)
    image, grid = cast(call.op, call.x, dtype), cast(call.op, call.input(1), dtype)
    wanted = tuple(call.wants(k) for k in (0, 1))
    shapes = (known_dimensions(g, sampling.rank), sampling.shape, known_dimensions(grid, sampling.rank))
    how = (sampling.mode, sampling.padding_mode, sampling.align_corners)
    graph = _grid_sample_grad(dtype, shapes, how, wanted, call.opset)
    found = iter(inline(call.op, graph, [cast(call.op, g, dtype), image, grid]))
    return [next(found) if is_wanted else None for is_wanted in wanted]


@rule("AffineGrid")
def affine_grid(call: Call, g: Value) -> Gradients:
    """grid_p = theta (x_p, y_p, 1), so that dtheta = Σ_p g_p (x_p, y_p, 1)'."""
    sampling, size = read(call.node), call.input(1)
    constant = constant_of(size)
    known = None if constant is None else tuple(int(n) for n in constant.numpy())
    graph = _affine_grid_grad(
        dtype_of(g, "a gradient"), known_dimensions(g, sampling.rank), known, sampling, call.opset
    )
    return inline(call.op, graph, [g] if known else [g, size])


@lru_cache(maxsize=64)
def _grid_sample_grad(
    dtype: ir.DataType, shapes: Sequence[Shape], how: tuple[str, str, bool], wanted: tuple[bool, ...], opset: int
) -> ir.Graph:
    """The gradients that are wanted, on the upstream gradient, the image and the grid. It is shared."""
    builder = _builder("GridSample", opset)
    names = ("grad_out", "x", "grid")
    grad_out, x, grid = (builder.input(name, dtype, shape) for name, shape in zip(names, shapes, strict=True))
    gradients = grid_sample_backward(builder.op, grad_out, x, grid, *how)
    return _finished(builder, [gradient for gradient, is_wanted in zip(gradients, wanted, strict=True) if is_wanted])


@lru_cache(maxsize=64)
def _affine_grid_grad(dtype: ir.DataType, shape: Shape, size: Shape | None, sampling: Sampling, opset: int) -> ir.Graph:
    """The gradient of theta on that of the grid and, unless it is constant, the size. It is shared."""
    builder = _builder("AffineGrid", opset)
    grad_grid = builder.input("grad_grid", dtype, shape)
    if size is None:
        sizes = builder.input("size", ir.DataType.INT64, (sampling.rank,))
    else:
        sizes = builder.op.Constant(value_ints=list(size))
    return _finished(
        builder, [affine_grid_backward(builder.op, grad_grid, sizes, sampling.align_corners, sampling.rank)]
    )


def _builder(name: str, opset: int) -> Drawing:
    return Drawing(ir.Graph([], [], nodes=[], opset_imports={"": opset}, name=name))


def _finished(builder: Drawing, results: Sequence[Value]) -> ir.Graph:
    builder.graph.outputs.extend(results)
    return clean(new_model(builder.graph)).graph
