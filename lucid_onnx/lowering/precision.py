"""Coordinates of half precision, computed in float32 as far back as their arithmetic goes.

float16 knows a coordinate of a 512-pixel image to a quarter of a pixel. So what makes up a grid (casts,
elementwise arithmetic, matrix products, rearrangement) is done again in float32, from where the values leave
the network or come in; the nodes of half precision go where nothing else uses them.
"""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.lowering.nodes import constant_of
from lucid_onnx.lowering.splice import Splicer
from lucid_onnx.operators.building import Value

HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

FIRST = (0,)
ALL = None

VALUES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"), FIRST),
    **dict.fromkeys(("Slice", "Split", "Gather", "Expand", "Tile", "Resize"), FIRST),
    **dict.fromkeys(("ReduceSum", "ReduceMean", "Tanh", "Neg", "Abs"), FIRST),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "Clip", "MatMul", "Concat"), ALL),
    "Pad": (0, 2),
    "Where": (1, 2),
}
"""Operators that make up grids, and which of their inputs hold the values that they move or compute with."""


def holds_values(node: ir.Node, position: int) -> bool:
    """Whether an input of a node holds values that it moves or computes with."""
    positions = VALUES.get(node.op_type, ())
    return positions is ALL or position in positions


class Raiser:
    """Raises grids of one model. What two grids share is raised once."""

    def __init__(self, splicer: Splicer) -> None:
        self._splicer = splicer
        self._raised: dict[Value, Value] = {}

    def raised(self, value: Value) -> Value:
        """`value` in float32, or as it is where it is wide already. It can be read wherever `value` can."""
        if value.dtype not in HALF:
            return value
        known = self._raised.get(value)
        if known is None or _is_gone(known):
            self._raised[value] = known = self._raise(value)
        return known

    def _raise(self, value: Value) -> Value:
        constant = constant_of(value)
        prefix = value.name or "grid"
        if constant is not None and not isinstance(constant, ir.ExternalTensor):
            wide = ir.tensor(constant.numpy().astype("float32"))
            return self._splicer.constant(wide, f"{prefix}_float32")
        producer = value.producer()
        if producer is None or producer.domain != "":
            return self._cast(value)
        if producer.op_type == "Cast":
            source = producer.inputs[0]
            assert source is not None
            if source.dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
                source.shape = value.shape if source.shape is None else source.shape
                return source
            return self._cast(source)
        if any(source is not None and source.dtype is None for source in producer.inputs):
            return self._cast(value)
        if producer.op_type not in VALUES:
            return self._cast(value)
        inputs = [
            self._in_float32(source) if source is not None and holds_values(producer, position) else source
            for position, source in enumerate(producer.inputs)
        ]
        how = (producer.op_type, inputs, f"{prefix}_float32", producer.attributes.values())
        twin = self._splicer.node(*how, outputs=len(producer.outputs))
        assert producer.graph is not None
        producer.graph.insert_after(producer, twin)
        for old, new in zip(producer.outputs, twin.outputs, strict=True):
            self._raised[old] = self._typed(new, old)
        return self._raised[value]

    def _in_float32(self, source: Value) -> Value:
        """An operand of arithmetic: all of it must be of one dtype."""
        wide = self.raised(source)
        if wide.dtype == ir.DataType.DOUBLE:
            return self._cast(wide)
        return wide

    def _cast(self, value: Value) -> Value:
        """A Cast of `value`, behind its producer, or the first node where it comes in."""
        to = ir.AttrInt64("to", int(ir.DataType.FLOAT))
        node = self._splicer.node("Cast", [value], f"{value.name}_float32", [to])
        producer = value.producer()
        if producer is not None:
            assert producer.graph is not None
            producer.graph.insert_after(producer, node)
        else:
            graph = value.graph or self._splicer.scope
            graph.insert_before(graph[0], node)
        return self._typed(node.outputs[0], value)

    @staticmethod
    def _typed(new: Value, like: Value) -> Value:
        new.type, new.shape = ir.TensorType(ir.DataType.FLOAT), like.shape
        return new


def _is_gone(value: Value) -> bool:
    """Whether what made a value has been taken out of its graph again."""
    producer = value.producer()
    return producer is not None and producer.graph is None
