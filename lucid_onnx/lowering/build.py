"""What takes the place of a node: a small graph, built and cleaned on its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import onnx_ir as ir

from lucid_onnx.lowering.decide import Recipe, cell_of
from lucid_onnx.lowering.kernels import homed, plain
from lucid_onnx.lowering.nodes import FLOATS, GUARDED, INPUTS, Sampling
from lucid_onnx.operators.affine_grid import affine_grid
from lucid_onnx.operators.building import Builder, Drawing, Value, cast
from lucid_onnx.operators.finishing import FOLDED, clean, declare_outputs, new_model
from lucid_onnx.operators.grid_sample import grid_sample


@dataclass(frozen=True)
class Operand:
    """An input of the node: its dtype and shape, and its value where that is a constant to fold."""

    dtype: ir.DataType
    shape: tuple[int | None, ...]
    constant: Constant | None = None


@dataclass(frozen=True)
class Constant:
    """A tensor that is told by its content."""

    content: bytes
    dtype: ir.DataType
    shape: tuple[int, ...]

    @classmethod
    def of(cls, tensor: ir.TensorProtocol) -> Constant:
        """The constant that `tensor` holds."""
        return cls(tensor.tobytes(), tensor.dtype, tuple(tensor.shape.numpy()))

    def tensor(self) -> ir.TensorProtocol:
        """The tensor again."""
        array = np.frombuffer(self.content, self.dtype.numpy()).reshape(self.shape)
        return ir.Tensor(array, dtype=self.dtype)


def replacement(sampling: Sampling, recipe: Recipe, operands: tuple[Operand, ...], largest: int = FOLDED) -> ir.Graph:
    """Graph with the inputs and the output of a node, that does what was decided. It is shared: change nothing in it.

    Parameters
    ----------
    sampling, recipe : Sampling, Recipe
        The node, and how to build what takes its place.
    operands : tuple of Operand
        Image and grid, or theta and size. A constant one is no input of the graph.
    largest : int
        Elements up to which what is known is computed beforehand.
    """
    large = any(operand.constant is not None and len(operand.constant.content) > 1024 for operand in operands)
    build = _built if large else _shared
    return build(sampling, recipe, operands, largest)


def _built(sampling: Sampling, recipe: Recipe, operands: tuple[Operand, ...], largest: int) -> ir.Graph:
    graph = ir.Graph([], [], nodes=[], opset_imports={"": recipe.opset}, name=sampling.op)
    values = [_operand(graph, name, operand) for name, operand in zip(INPUTS[sampling.op], operands, strict=True)]
    op = Drawing(graph).op
    make = _affine_grid if sampling.op == "AffineGrid" else _grid_sample
    result = make(op, sampling, recipe, *values)
    if sampling.dtype not in FLOATS and sampling.mode != "nearest":
        result = _as_integers(op, result, sampling.dtype)
    declare_outputs(op, graph, [cast(op, result, sampling.dtype)], ["result"])
    finished = clean(new_model(graph), largest).graph
    if recipe.guard:
        for node in finished:
            if node.op_type == sampling.op:
                node.metadata_props[GUARDED] = "yes"
    return finished


_shared = lru_cache(maxsize=64)(_built)
"""Graphs of nodes that are alike are built once; those that hold large constants are not kept."""


def _operand(graph: ir.Graph, name: str, operand: Operand) -> Value:
    value = ir.Value(name=name, type=ir.TensorType(operand.dtype), shape=ir.Shape(operand.shape))
    if operand.constant is None:
        graph.inputs.append(value)
    else:
        value.const_value = operand.constant.tensor()
        graph.register_initializer(value)
    return value


def _affine_grid(op: Builder, sampling: Sampling, recipe: Recipe, theta: Value, size: Value) -> Value:
    if recipe.form == "expand":
        return affine_grid(op, theta, size, sampling.align_corners, sampling.rank)
    grid: Value = op.AffineGrid(cast(op, theta, recipe.dtype), size, align_corners=int(sampling.align_corners))
    grid.dtype = recipe.dtype
    return grid


def _grid_sample(op: Builder, sampling: Sampling, recipe: Recipe, x: Value, grid: Value) -> Value:
    grid = cast(op, grid, recipe.dtype)
    cell = cell_of(sampling)
    if recipe.form == "expand":
        image = x if x.dtype in FLOATS else cast(op, x, recipe.dtype)
        return grid_sample(op, image, grid, cell.mode, cell.padding_mode, cell.align_corners, recipe.finite)
    image = x if recipe.keep_image else cast(op, x, recipe.dtype)
    if recipe.form == "keep":
        y = plain(op, image, grid, cell, recipe.opset)
    else:
        y = homed(op, image, grid, cell, recipe.opset, recipe.guard, recipe.extend)
    y.dtype = image.dtype or recipe.dtype
    return y


def _as_integers(op: Builder, values: Value, dtype: ir.DataType) -> Value:
    """Interpolated values to the nearest integer that `dtype` has; a cast alone would cut off and wrap around."""
    if dtype == ir.DataType.BOOL:
        return op.Round(values)
    limits = np.iinfo(dtype.numpy())
    return op.Min(op.Max(op.Round(values), float(limits.min)), float(limits.max))
