"""Types and shapes of the values of a model, inferred for the time of the rewriting and then taken away again."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir
from onnx_ir.passes import common as passes

from lucid_onnx.lowering.nodes import constant_of, is_sampling, scopes, walk
from lucid_onnx.operators.building import Value

_DECLARED = "lucid_onnx declared"
"""Under this key a value remembers what was said of it; what stands in for a value takes that over."""


@contextmanager
def types_of_now(model: ir.Model) -> Iterator[None]:
    """A block at the end of which every value says of itself what it said before, no more."""
    for value in _values(model):
        value.meta[_DECLARED] = (value.type, None if value.shape is None else value.shape.copy())
    try:
        yield
    finally:
        for value in _values(model):
            declared = value.meta.pop(_DECLARED, None)
            if declared is not None:
                value.type, value.shape = declared
            elif value.producer() is not None and not value.is_graph_output():
                value.type, value.shape = None, None


def infer(model: ir.Model) -> None:
    """Infer types and shapes, in place, as far as ONNX can; and through samplings that it cannot.

    What shapes are computed from is only followed where that may tell one that is not known: ONNX follows vectors of
    any length, those of indices and of a million coordinates among them, number by number.
    """
    follow = False
    while True:
        with _quiet():
            passes.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=follow)(model)
        inferred = [_infer_sampling(node) for node in walk(model.graph) if is_sampling(node)]
        if not any(inferred):
            if follow or not any(_may_be_computed(node) for scope in scopes(model) for node in walk(scope)):
                return
            follow = True


def _may_be_computed(node: ir.Node) -> bool:
    """Whether a node makes a shape that is not known, and reads numbers that it may be computed from."""
    is_known = all(value.shape is not None and value.shape.is_static() for value in node.outputs)
    return not is_known and any(value is not None and _may_be_lengths(value) for value in node.inputs)


def _may_be_lengths(value: Value) -> bool:
    """Whether a value is a number or a short vector, and no constant."""
    shape = value.shape
    is_short = shape is not None and len(shape) < 2 and shape.is_static() and math.prod(shape.numpy()) <= _MOST_LENGTHS
    return is_short and constant_of(value) is None


_MOST_LENGTHS = 64
"""Numbers in a vector that may be a shape."""


@contextmanager
def _quiet() -> Iterator[None]:
    """A block in which onnx_ir does not log that ONNX's inference gave up: what is then unknown is said by name."""
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _infer_sampling(node: ir.Node) -> bool:
    """Type and shape of a node that ONNX's inference gives up on: a volume before opset 20, an external size."""
    output = node.outputs[0] if node.outputs else None
    if output is None or len(node.inputs) < 2 or (output.shape is not None and output.dtype is not None):
        return False
    image, points = node.inputs[:2]
    if image is None or points is None or image.dtype is None or image.shape is None:
        return False
    if node.op_type == "AffineGrid":
        shape = _grid_shape(image.shape, points)
    else:
        shape = None if points.shape is None else [*image.shape[:2], *points.shape[1:-1]]
    if shape is None or len(shape) < 3:
        return False
    output.type, output.shape = ir.TensorType(image.dtype), ir.Shape(shape)
    return True


def _grid_shape(theta: ir.Shape, size: Value) -> list[int | ir.SymbolicDim] | None:
    """Shape of the grid that AffineGrid makes, as far as it is known."""
    axes = theta[1] if len(theta) == 3 else None
    if not isinstance(axes, int):
        return None
    constant = constant_of(size)
    spatial = [ir.SymbolicDim(None)] * axes if constant is None else [int(n) for n in constant.numpy()[2:]]
    return [theta[0], *spatial, axes]


def _values(model: ir.Model) -> Iterator[Value]:
    for scope in scopes(model):
        for graph in [scope, *scope.subgraphs()]:
            yield from graph.inputs
            if isinstance(graph, ir.Graph):
                yield from graph.initializers.values()
        for node in walk(scope):
            yield from node.outputs
