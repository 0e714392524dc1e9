"""Putting a small finished graph into the gradient."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir
from onnxscript import OpBuilder

from lucid_onnx.operators.building import Builder, Value


def inline(op: Builder, graph: ir.Graph, inputs: Sequence[Value]) -> list[Value]:
    """The outputs of a copy of `graph`, which is left as it is, on `inputs`."""
    assert isinstance(op, OpBuilder)
    builder = op.builder
    mapping: dict[Value, Value] = dict(zip(graph.inputs, inputs, strict=True))
    for constant in graph.initializers.values():
        assert constant.const_value is not None
        name = f"{graph.name}/{constant.name}_{len(builder.root.graph.initializers)}"
        mapping[constant] = builder.initializer(constant.const_value, name, qualify=False)
    scope = builder._build_namespace()
    for node in graph:
        outputs = [_copied(value) for value in node.outputs]
        mapping.update(zip(node.outputs, outputs, strict=True))
        builder.graph.append(
            ir.Node(
                node.domain,
                node.op_type,
                [None if value is None else mapping[value] for value in node.inputs],
                node.attributes.values(),
                outputs=outputs,
                name=f"{scope}/{node.name}",
            )
        )
    return [mapping[value] for value in graph.outputs]


def _copied(value: Value) -> Value:
    shape = None if value.shape is None else value.shape.copy()
    return ir.Value(name=value.name, type=value.type, shape=shape)
