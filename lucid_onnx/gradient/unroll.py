"""Loops of few iterations, whose number is known, written out one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from lucid_onnx.gradient.embed import Embedding
from lucid_onnx.gradient.names import Names
from lucid_onnx.lowering.nodes import constant_of
from lucid_onnx.operators.building import Value

MOST_ITERATIONS = 64
"""How many iterations are written out; more would make a model slow to load."""


def unroll(model: ir.Model, *nodes: ir.Node) -> None:
    """Write out Loop and Scan nodes of which `obstacle` says nothing, in place.

    The outputs of a node keep their names; what is new is named after the node and the iteration. Loops inside are
    copied as they are.
    """
    names = Names(model)
    for node in nodes:
        (_unroll_loop if node.op_type == "Loop" else _unroll_scan)(node, names)


def is_loop(node: ir.Node) -> bool:
    """Whether a node is ONNX's Loop or Scan."""
    return node.domain == "" and node.op_type in ("Loop", "Scan")


def obstacle(node: ir.Node) -> str | None:
    """Why a Loop or Scan is not unrolled; None where it is."""
    iterations = _iterations(node)
    if isinstance(iterations, str):
        return iterations
    if iterations > MOST_ITERATIONS:
        return f"it runs {iterations} times, and {MOST_ITERATIONS} are unrolled at most"
    if iterations == 0 and any(value.name and value.shape is None for value in _collected(node)):
        return "it runs 0 times, and the rank of what it collects is not known"
    return None


def _iterations(node: ir.Node) -> int | str:
    """How often a node runs, or why that is not known."""
    if node.op_type == "Scan":
        lengths = [_length(value, axis) for value, axis in _scanned(node)]
        return next((length for length in lengths if length is not None), "the length of what it scans is not known")
    count, condition = (node.inputs[k] if k < len(node.inputs) else None for k in (0, 1))
    goes_on = True if condition is None else _constant(condition)
    if goes_on == 0:
        return 0
    if goes_on is None or not _stays_true(node.attributes["body"].as_graph()):
        return "its condition is not constant"
    number = None if count is None else _constant(count)
    return "its trip count is not constant" if number is None else max(number, 0)


def _constant(value: Value) -> int | None:
    """The one number that a value always has."""
    numbers = _numbers(value)
    return None if numbers is None or numbers.size != 1 else int(numbers.reshape(-1)[0])


def _numbers(value: Value) -> np.ndarray | None:
    """What a value always is, where it is a constant, a shape that is known, or little arithmetic of these."""
    tensor, node = constant_of(value), value.producer()
    if tensor is not None:
        return tensor.numpy()
    if node is None or node.domain != "" or node.op_type not in _COMPUTED:
        return None
    sources = [source for source in node.inputs if source is not None]
    known = {source.name or "": (_any_of_shape if node.op_type == "Shape" else _numbers)(source) for source in sources}
    if any(array is None for array in known.values()):
        return None
    (result,) = ReferenceEvaluator(ir.to_proto(node)).run(None, known)
    return np.asarray(result)


def _any_of_shape(value: Value) -> np.ndarray | None:
    """Some numbers of the shape of a value, which take no memory; None where that is not known."""
    if value.shape is None or not value.shape.is_static():
        return None
    return np.broadcast_to(np.zeros((), bool), value.shape.numpy())


_COMPUTED = ("Shape", "Gather", "Squeeze", "Unsqueeze", "Cast", "Add", "Sub", "Mul", "Div")
"""Operators by which exporters make a trip count of a shape."""


def _stays_true(body: ir.Graph) -> bool:
    """Whether a body hands on the condition that it is given, or true."""
    condition = body.outputs[0]
    while condition not in body.inputs:
        producer = condition.producer()
        if producer is None or producer.domain != "" or producer.op_type != "Identity" or producer.inputs[0] is None:
            return bool(_constant(condition))
        condition = producer.inputs[0]
    return condition is body.inputs[1]


def _unroll_loop(node: ir.Node, names: Names) -> None:
    embedding, body = Embedding(node, names), node.attributes["body"].as_graph()
    iterations = _iterations(node)
    assert isinstance(iterations, int)
    embedding.share(body)
    states = list(node.inputs[2:])
    collected = []
    goes_on = embedding.constant(np.array(True), ir.DataType.BOOL)
    for k in range(iterations):
        inputs = [embedding.constant(np.array(k)), goes_on, *states]
        _, *results = embedding.body(body.clone(allow_outer_scope_values=True), inputs, f"{k}/")
        states = results[: len(states)]
        collected.append(results[len(states) :])
    stacks = [_Stack(value) for value in _collected(node)]
    _finish(embedding, states, stacks, collected)


def _unroll_scan(node: ir.Node, names: Names) -> None:
    embedding, body = Embedding(node, names), node.attributes["body"].as_graph()
    iterations = _iterations(node)
    assert isinstance(iterations, int)
    embedding.share(body)
    scanned = list(_scanned(node))
    states = list(node.inputs[: -len(scanned)])
    backwards = _integers(node, "scan_input_directions", len(scanned))
    collected = []
    for k in range(iterations):
        elements = []
        for (value, axis), is_backward in zip(scanned, backwards, strict=True):
            index = embedding.constant(np.array(iterations - 1 - k if is_backward else k))
            elements.append(embedding.call("Gather", [value, index], axis=axis))
        results = embedding.body(body.clone(allow_outer_scope_values=True), [*states, *elements], f"{k}/")
        states = results[: len(states)]
        collected.append(results[len(states) :])
    outputs = _collected(node)
    axes, reverse = (_integers(node, f"scan_output_{name}", len(outputs)) for name in ("axes", "directions"))
    stacks = [_Stack(*parts) for parts in zip(outputs, axes, map(bool, reverse), strict=True)]
    _finish(embedding, states, stacks, collected)


def _finish(
    embedding: Embedding,
    states: Sequence[Value | None],
    stacks: Sequence[_Stack],
    collected: Sequence[Sequence[Value | None]],
) -> None:
    """Have the last states, and what each iteration gave, be the outputs."""
    rows = (stack.build(embedding, [given[k] for given in collected]) for k, stack in enumerate(stacks))
    embedding.finish([*states, *rows])


@dataclass(frozen=True)
class _Stack:
    """An output that collects a value of each iteration along a new axis, the last first where it is backward."""

    output: Value
    axis: int = 0
    is_backward: bool = False

    def build(self, embedding: Embedding, values: Sequence[Value | None]) -> Value | None:
        if not self.output.name:
            return None
        if not values:
            return self._empty(embedding)
        axes = embedding.constant(np.array([self.axis]))
        rows = [embedding.call("Unsqueeze", [value, axes]) for value in values if value is not None]
        return embedding.call("Concat", rows[::-1] if self.is_backward else rows, axis=self.axis)

    def _empty(self, embedding: Embedding) -> Value:
        assert self.output.shape is not None
        assert self.output.dtype is not None
        shape = [dimension if isinstance(dimension, int) else 0 for dimension in self.output.shape]
        shape[self.axis] = 0
        return embedding.constant(np.zeros(shape, self.output.dtype.numpy()), self.output.dtype)


def _collected(node: ir.Node) -> Sequence[Value]:
    """The outputs that collect a value of each iteration; before them stand the states."""
    others = 2 if node.op_type == "Loop" else node.attributes["num_scan_inputs"].as_int()
    return node.outputs[max(len(node.inputs) - others, 0) :]


def _scanned(node: ir.Node) -> Iterator[tuple[Value, int]]:
    """What a Scan goes along, and along which axis."""
    number = node.attributes["num_scan_inputs"].as_int()
    for value, axis in zip(node.inputs[-number:], _integers(node, "scan_input_axes", number), strict=True):
        assert value is not None
        yield value, axis


def _length(value: Value, axis: int) -> int | None:
    """Length of an axis, where it is known."""
    length = None if value.shape is None else value.shape[axis]
    return length if isinstance(length, int) else None


def _integers(node: ir.Node, name: str, number: int) -> Sequence[int]:
    """An attribute of `number` integers, zeros by default."""
    attribute = node.attributes.get(name)
    return [0] * number if attribute is None else attribute.as_ints()
