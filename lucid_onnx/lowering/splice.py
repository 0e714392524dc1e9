"""Putting a graph in the place of a node: names, constants and types, so that the rest stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir

from lucid_onnx.lowering.nodes import scopes, walk
from lucid_onnx.operators.building import Value
from lucid_onnx.operators.naming import Taken


class Splicer:
    """Replaces nodes of one model. It knows every name in it, and every constant that it has added.

    Parameters
    ----------
    model : onnx_ir.Model
        The model.

    Attributes
    ----------
    scope : onnx_ir.Graph or onnx_ir.Function
        What is being rewritten. A function has no initializers: there, constants become nodes.
    """

    def __init__(self, model: ir.Model) -> None:
        self.scope: ir.Graph | ir.Function = model.graph
        self._model = model
        self._values = Taken()
        self._nodes = Taken()
        for scope in scopes(model):
            for graph in [scope, *scope.subgraphs()]:
                self._values.update(value.name for value in graph.inputs)
                if isinstance(graph, ir.Graph):
                    self._values.update(graph.initializers)
            for node in walk(scope):
                self._nodes.update([node.name])
                self._values.update(value.name for value in node.outputs)
        self._constants: dict[tuple[ir.DataType, tuple[int, ...], bytes], Value] = {}
        self._added: set[Value] = set()

    def replace(self, node: ir.Node, graph: ir.Graph, inputs: Sequence[Value]) -> None:
        """Put the nodes of `graph`, which is left as it is, in the place of `node`.

        The graph has one output; its inputs become `inputs`. The output of the node keeps its name and type.
        """
        prefix = node.name or node.outputs[0].name or node.op_type
        mapping: dict[Value, Value] = dict(zip(graph.inputs, inputs, strict=True))
        added: list[ir.Node] = []
        for initializer in graph.initializers.values():
            mapping[initializer] = self._constant(initializer, prefix, added)
        added += [self._copy(inner, mapping, prefix) for inner in graph]
        result = mapping[graph.outputs[0]]
        if result.producer() not in added or any(result is value for value in inputs):
            added.append(self.node("Identity", [result], prefix))
            result = added[-1].outputs[0]
        last = result.producer()
        assert last is not None
        last.doc_string = node.doc_string
        last.metadata_props.update(node.metadata_props)
        self._substitute(node, added, result)

    def node(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        prefix: str,
        attributes: Iterable[ir.Attr] = (),
        outputs: int = 1,
    ) -> ir.Node:
        """A node with names that the model does not have."""
        results = [ir.Value(name=self._values.fresh(f"{prefix}/{op_type}_output")) for _ in range(outputs)]
        name = self._nodes.fresh(f"{prefix}/{op_type}")
        return ir.Node("", op_type, inputs, attributes, outputs=results, name=name)

    def constant(self, tensor: ir.TensorProtocol, prefix: str) -> Value:
        """A constant for all of the scope: an initializer of the model, or the first node of a function."""
        value = ir.Value(name="constant", type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()))
        value.const_value = tensor
        added: list[ir.Node] = []
        result = self._constant(value, prefix, added)
        if added:
            self.scope.insert_before(self.scope[0], added)
        return result

    def _substitute(self, node: ir.Node, added: list[ir.Node], result: Value) -> None:
        """Take `node` out, with the nodes before it that nothing needs any longer."""
        old = node.outputs[0]
        result.doc_string = old.doc_string
        result.meta.update(old.meta)
        result.metadata_props.update(old.metadata_props)
        inputs = [value for value in node.inputs if value is not None]
        assert node.graph is not None
        ir.convenience.replace_nodes_and_values(node.graph, node, [node], added, [old], [result])
        self.remove_unused(inputs)

    def drop_unused_constants(self) -> None:
        """Take out the constants that were added and that in the end nothing reads."""
        for value in self._added:
            if not value.uses() and not value.is_graph_output() and value.name is not None:
                self._model.graph.initializers.pop(value.name, None)

    def remove_unused(self, values: Iterable[Value]) -> None:
        """Take out what made values that nothing needs any longer, and then what only that needed."""
        for value in values:
            node = value.producer()
            if value.uses() or value.is_graph_output() or value.is_graph_input():
                continue
            if node is None:
                # A constant that was added may be asked for again; `drop_unused_constants` has the last word.
                if value in self._added:
                    continue
                if value.is_initializer() and value.graph is not None and value.name is not None:
                    value.graph.initializers.pop(value.name)
            elif node.graph is not None and not any(v.uses() or v.is_graph_output() for v in node.outputs):
                before = [source for source in node.inputs if source is not None]
                node.graph.remove([node], safe=True)
                self.remove_unused(before)

    def _copy(self, inner: ir.Node, mapping: dict[Value, Value], prefix: str) -> ir.Node:
        """A node of the new graph, with what it reads looked up and what it makes noted in `mapping`."""
        inputs = [None if value is None else mapping[value] for value in inner.inputs]
        outputs = []
        for value in inner.outputs:
            shape = None if value.shape is None else value.shape.copy()
            copy = ir.Value(name=self._values.fresh(f"{prefix}/{value.name}"), type=value.type, shape=shape)
            mapping[value] = copy
            outputs.append(copy)
        name = self._nodes.fresh(f"{prefix}/{inner.name or inner.op_type}")
        attributes, metadata = inner.attributes.values(), dict(inner.metadata_props)
        return ir.Node(
            inner.domain, inner.op_type, inputs, attributes, outputs=outputs, name=name, metadata_props=metadata
        )

    def _constant(self, initializer: Value, prefix: str, added: list[ir.Node]) -> Value:
        tensor = initializer.const_value
        assert tensor is not None
        if isinstance(self.scope, ir.Function):
            node = self.node("Constant", [], prefix, [ir.AttrTensor("value", tensor)])
            added.append(node)
            (result,) = node.outputs
            result.type, result.shape = ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())
            return result
        key = (tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes())
        if key not in self._constants:
            value = ir.Value(
                name=self._values.fresh(f"{prefix}/{initializer.name}"),
                type=ir.TensorType(tensor.dtype),
                shape=ir.Shape(tensor.shape.numpy()),
            )
            value.const_value = ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=value.name)
            self._model.graph.register_initializer(value)
            self._constants[key] = value
            self._added.add(value)
        return self._constants[key]


def set_strings(node: ir.Node, attributes: Mapping[str, str]) -> bool:
    """Give string attributes of a node other values; whether that changed anything."""
    changed = False
    for name, value in attributes.items():
        attribute = node.attributes.get(name)
        if attribute is None or attribute.as_string() != value:
            node.attributes[name] = ir.AttrString(name, value)
            changed = True
    return changed
