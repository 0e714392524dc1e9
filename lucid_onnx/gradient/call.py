"""What a rule is given: a node, its values, and how to build."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from lucid_onnx.gradient.shapes import Axes, reduce, shape_of, zeros_like
from lucid_onnx.lowering import nodes
from lucid_onnx.operators.building import Builder, Value, opset_of
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError


class Call:
    """A node of the primal graph, seen by a rule.

    Half precision is seen by no rule: values of float16 and bfloat16 come as float32, and so do gradients, so that
    everything is accumulated in float32 and rounded once, at the end.

    Parameters
    ----------
    op : Builder
        Builds the gradient: its attributes are ONNX's operators. The nodes must be valid from opset 16 up.
    node : onnx_ir.Node
        The node.
    inputs, outputs : list of Value
        Its inputs and outputs; None where one is left out. Integers and truth values are as they are.
    grads : list of Value
        Gradients with respect to the outputs, of their shapes; None where nothing flows back.
    wanted : list of bool
        For which inputs a gradient is asked.
    """

    def __init__(
        self,
        op: Builder,
        node: ir.Node,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value | None],
        grads: Sequence[Value | None],
        wanted: Sequence[bool],
    ) -> None:
        self.op, self.node = op, node
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.grads, self.wanted = list(grads), list(wanted)

    @property
    def opset(self) -> int:
        """Version of ONNX's operators in the model."""
        return opset_of(self.op)

    @property
    def x(self) -> Value:
        """The first input."""
        return self.input(0)

    @property
    def y(self) -> Value:
        """The first output."""
        value = self.outputs[0]
        if value is None:
            raise self.unsupported("its first output is left out", "give it a name")
        return value

    @property
    def dtype(self) -> ir.DataType:
        """Dtype of the arithmetic, float32 or float64: that of the first output."""
        dtype = self.y.dtype
        return ir.DataType.FLOAT if dtype is None else dtype

    def input(self, position: int) -> Value:
        """An input that must be there."""
        value = self.optional(position)
        if value is None:
            raise ArgumentError(f"gradient: {label(self.node)}: its input {position} is missing")
        return value

    def optional(self, position: int) -> Value | None:
        """An input, or None where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else None

    def wants(self, position: int) -> bool:
        """Whether a gradient is asked for an input."""
        return position < len(self.wanted) and self.wanted[position]

    def shape(self, value: Value) -> Value:
        """Shape of a value, (rank,) of int64; a constant where it is known."""
        return shape_of(self.op, value)

    def rank(self, value: Value, what: str = "an input") -> int:
        """Rank of a value, which this rule must know."""
        if value.shape is None:
            raise self.unsupported(f"the rank of {what} ({value.name!r}) is not known", "declare its shape")
        return len(value.shape)

    def axis(self, value: Value, name: str = "axis", default: int | None = None) -> int:
        """An attribute that is an axis of `value`, counted from the first."""
        axis = self.attribute(name, default)
        return int(axis) % max(self.rank(value), 1)

    def reduce(self, op_type: str, value: Value, axes: Axes, keepdims: bool = True) -> Value:
        """A reduction over `axes`, spelled as the opset wants; over none where there are none, over all for None."""
        return reduce(self.op, op_type, value, axes, keepdims)

    def sum(self, value: Value, axes: Axes, keepdims: bool = True) -> Value:
        """Sum over `axes`, over none where there are none; over all for None."""
        return self.reduce("ReduceSum", value, axes, keepdims)

    def zeros_like(self, value: Value) -> Value:
        """Zeros of the shape of a value and of the dtype of the arithmetic."""
        return zeros_like(self.op, value, self.dtype)

    def number(self, number: float) -> Value:
        """A scalar of the dtype of the arithmetic, where an operator's inputs do not say which it is."""
        result: Value = self.op.Constant(value=ir.tensor(number, dtype=self.dtype))
        return result

    def attribute(self, name: str, default: Any = None) -> Any:
        """Value of an attribute (int, float, str, list, tensor), or `default` where it is left out."""
        attribute = self.node.attributes.get(name)
        if attribute is None:
            return default
        if attribute.is_ref():
            raise self.unsupported(f"its attribute {name} is that of a function", "inline the function")
        value = attribute.value
        return list(value) if attribute.type in _LISTS else value

    def attributes(self) -> Mapping[str, ir.Attr]:
        """All attributes of the node, as they are."""
        return self.node.attributes

    def unsupported(self, what: str, remedy: str) -> UnsupportedError:
        """An error, to be raised, that names the node."""
        return UnsupportedError(f"gradient: {label(self.node)}: {what}; {remedy}")


def label(node: ir.Node) -> str:
    """What a message calls a node, its domain included."""
    return f"{node.domain}::{nodes.label(node)}" if node.domain else nodes.label(node)


_LISTS = (ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS)
