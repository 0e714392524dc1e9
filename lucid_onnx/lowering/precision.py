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

REARRANGEMENT = {
    "Transpose": 1,
    "Reshape": 1,
    "Unsqueeze": 1,
    "Squeeze": 1,
    "Slice": 1,
    "Expand": 1,
    "Flatten": 1,
    "Identity": 1,
    "Gather": 1,
    "Tile": 1,
}
"""Operators that move values, of which only the first input holds them."""

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Neg", "Abs", "Min", "Max", "Clip", "Sum", "Mean", "MatMul", "Tanh", "Concat")
"""Operators all of whose inputs hold values."""


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
        if known is None:
            known = self._raised[value] = self._raise(value)
        return known

    def _raise(self, value: Value) -> Value:
        constant = constant_of(value)
        prefix = value.name or "grid"
        if constant is not None and not isinstance(constant, ir.ExternalTensor):
            wide = ir.tensor(constant.numpy().astype("float32"))
            return self._splicer.constant(wide, f"{prefix}_float32")
        producer = value.producer()
        if producer is None or producer.domain != "" or len(producer.outputs) != 1:
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
        count = REARRANGEMENT.get(producer.op_type, len(producer.inputs) if producer.op_type in ARITHMETIC else 0)
        if not count:
            return self._cast(value)
        inputs = [
            source if source is None or position >= count else self._in_float32(source)
            for position, source in enumerate(producer.inputs)
        ]
        twin = self._splicer.node(producer.op_type, inputs, f"{prefix}_float32", producer.attributes.values())
        assert producer.graph is not None
        producer.graph.insert_after(producer, twin)
        return self._typed(twin.outputs[0], value)

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
