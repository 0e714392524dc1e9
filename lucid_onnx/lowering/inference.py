"""Types and shapes of the values of a model, inferred for the time of the rewriting and then taken away again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir
from onnx_ir.passes import common as passes

from lucid_onnx.lowering.nodes import is_sampling, scopes, walk
from lucid_onnx.operators.building import Value


@contextmanager
def types_of_now(model: ir.Model) -> Iterator[None]:
    """A block at the end of which every value says of itself what it said before, no more."""
    before = {value: (value.type, value.shape) for value in _values(model)}
    kept = {value: None if shape is None else shape.copy() for value, (_, shape) in before.items()}
    try:
        yield
    finally:
        for value in _values(model):
            if value in before:
                value.type, value.shape = before[value][0], kept[value]
            elif value.producer() is not None and not value.is_graph_output():
                value.type, value.shape = None, None


def infer(model: ir.Model) -> None:
    """Infer types and shapes, in place, as far as ONNX can; and through samplings that it cannot."""
    while True:
        passes.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
        inferred = [_infer_sampling(node) for node in walk(model.graph) if is_sampling(node)]
        if not any(inferred):
            return


def _infer_sampling(node: ir.Node) -> bool:
    """Type and shape of a GridSample that ONNX's inference refuses, such as a volume before opset 20."""
    output = node.outputs[0]
    if node.op_type != "GridSample" or (output.shape is not None and output.dtype is not None):
        return False
    x, grid = node.inputs[:2]
    if x is None or grid is None or x.shape is None or grid.shape is None or x.dtype is None:
        return False
    if len(x.shape) < 3 or len(grid.shape) != len(x.shape):
        return False
    output.type = ir.TensorType(x.dtype)
    output.shape = ir.Shape([*x.shape[:2], *grid.shape[1:-1]])
    return True


def _values(model: ir.Model) -> Iterator[Value]:
    for scope in scopes(model):
        for graph in [scope, *scope.subgraphs()]:
            yield from graph.inputs
            if isinstance(graph, ir.Graph):
                yield from graph.initializers.values()
        for node in walk(scope):
            yield from node.outputs
