"""A model in float64: the same function in more digits, as a witness for the slopes of what is differentiated."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import common as passes

from lucid_onnx.gradient.names import Names
from lucid_onnx.lowering import lower_ir
from lucid_onnx.lowering.inference import infer
from lucid_onnx.lowering.nodes import FLOATS

_DTYPES = ("to", "dtype", "output_datatype")
"""Attributes that say of which dtype a result is."""


def free(model: ir.Model, wrt: Collection[str], outputs: Collection[str]) -> None:
    """Have the initializers of `wrt` be inputs, and the outputs be `outputs`, in place; what they do not need goes."""
    graph = model.graph
    for name in wrt:
        value = graph.initializers.pop(name, None)
        if value is None:
            continue
        assert value.const_value is not None
        value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(value.const_value.shape.numpy())
        value.const_value = None
        if value not in graph.inputs:
            graph.inputs.append(value)
    by_name = {value.name: value for value in graph.outputs}
    graph.outputs.clear()
    graph.outputs.extend(by_name[name] for name in outputs)
    passes.RemoveUnusedNodesPass()(model)


def double(model: ir.Model) -> None:
    """Have everything that is a float be float64, in place, and samplings be of operators that float64 has everywhere.

    Where an operator takes or gives float32 but no float64 (the scales of a Resize), a Cast stands before or behind it.
    """
    passes.InlinePass()(model)
    infer(model)
    graphs = [model.graph, *model.graph.subgraphs()]
    for graph in graphs:
        made = [value for node in graph for value in node.outputs]
        for value in {*graph.inputs, *graph.initializers.values(), *made}:
            _double_value(value)
    names = Names(model)
    for graph in graphs:
        for node in list(graph):
            _double_attributes(node)
            _bridge(node, model.graph.opset_imports.get("", 1), names)
    lower_ir(model, "portable")


def _double_value(value: ir.Value) -> None:
    value.type = _doubled_type(value.type)
    if value.const_value is not None:
        array = value.const_value.numpy()
        is_float = value.const_value.dtype in FLOATS
        value.const_value = ir.tensor(array.astype(np.float64) if is_float else array, name=value.name)


def _doubled_type(kind: ir.TypeProtocol | None) -> ir.TypeProtocol | None:
    if isinstance(kind, ir.TensorType):
        return ir.TensorType(ir.DataType.DOUBLE) if kind.dtype in FLOATS else kind
    if isinstance(kind, ir.SequenceType | ir.OptionalType):
        inside = _doubled_type(kind.elem_type)
        assert inside is not None
        return type(kind)(inside)
    return kind


def _double_attributes(node: ir.Node) -> None:
    """Tensors, and the dtypes of results; a default that is float32 is written out."""
    for name, attribute in list(node.attributes.items()):
        if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype in FLOATS:
            node.attributes[name] = _tensor(name, attribute.as_tensor().numpy())
        elif name in _DTYPES and attribute.type == ir.AttributeType.INT and attribute.as_int() in FLOATS:
            node.attributes[name] = ir.AttrInt64(name, ir.DataType.DOUBLE)
        elif node.op_type == "Constant" and name in ("value_float", "value_floats"):
            del node.attributes[name]
            node.attributes["value"] = _tensor("value", attribute.value)
    if node.op_type == "ConstantOfShape" and "value" not in node.attributes:
        node.attributes["value"] = _tensor("value", [0.0])


def _tensor(name: str, numbers: object) -> ir.Attr:
    return ir.AttrTensor(name, ir.tensor(np.asarray(numbers, np.float64)))


def _bridge(node: ir.Node, opset: int, names: Names) -> None:
    """Casts around a node that has no float64 where its values now are."""
    if node.domain != "":
        return
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    for position, value in enumerate(node.inputs):
        if value is not None and value.dtype == ir.DataType.DOUBLE and _lacks_double(schema.inputs, position):
            node.replace_input_with(position, _cast_before(node, value, names))
    for position, value in enumerate(node.outputs):
        if value.dtype == ir.DataType.DOUBLE and _lacks_double(schema.outputs, position):
            _cast_behind(node, value, names)


def _lacks_double(parameters: Sequence[onnx.defs.OpSchema.FormalParameter], position: int) -> bool:
    types = parameters[min(position, len(parameters) - 1)].types
    return "tensor(float)" in types and "tensor(double)" not in types


def _cast_before(node: ir.Node, value: ir.Value, names: Names) -> ir.Value:
    narrow = ir.Value(name=names.value(f"{value.name}_float32"), type=ir.TensorType(ir.DataType.FLOAT))
    assert isinstance(node.graph, ir.Graph)
    node.graph.insert_before(node, _cast(value, narrow, ir.DataType.FLOAT, names))
    return narrow


def _cast_behind(node: ir.Node, value: ir.Value, names: Names) -> None:
    wide = ir.Value(type=value.type, shape=value.shape)
    value.replace_all_uses_with(wide, replace_graph_outputs=True)
    wide.name, value.name = value.name, names.value(f"{value.name}_float32")
    value.type = ir.TensorType(ir.DataType.FLOAT)
    assert isinstance(node.graph, ir.Graph)
    node.graph.insert_after(node, _cast(value, wide, ir.DataType.DOUBLE, names))


def _cast(value: ir.Value, result: ir.Value, dtype: ir.DataType, names: Names) -> ir.Node:
    return ir.node("Cast", [value], {"to": int(dtype)}, outputs=[result], name=names.node(f"{result.name}/Cast"))
