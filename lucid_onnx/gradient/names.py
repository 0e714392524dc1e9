"""Names that a model does not have yet."""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.lowering.nodes import subgraphs
from lucid_onnx.model_files import own_tensor
from lucid_onnx.operators.naming import Taken


class Names:
    """The names of the values and of the nodes of a model."""

    def __init__(self, model: ir.Model) -> None:
        self._values = Taken()
        self._nodes = Taken()
        for graph in (model.graph, *model.graph.subgraphs()):
            values = (*graph.inputs, *graph.initializers.values(), *graph.outputs)
            self._values.update(value.name for value in values)
            for node in graph:
                self._nodes.update([node.name])
                self._values.update(value.name for value in node.outputs)

    def value(self, name: str | None) -> str:
        """`name` for a value, with a number behind it where it is taken."""
        return self._values.fresh(name or "value")

    def node(self, name: str | None) -> str:
        """`name` for a node, likewise."""
        return self._nodes.fresh(name or "node")

    def rename(self, graph: ir.Graph, prefix: str = "") -> None:
        """Give all in a copy of a graph, its subgraphs included, names of its own: `prefix` before those that it has.

        No name may hide one of a graph around it, and the tensor of an initializer is named as that is.
        """
        for value in dict.fromkeys((*graph.inputs, *graph.initializers.values())):
            if value.const_value is not None:
                value.const_value = own_tensor(value.const_value)
            value.name = self.value(prefix + (value.name or "value"))
        for node in graph:
            self.rename_node(node, prefix + (node.name or node.op_type), prefix)

    def rename_node(self, node: ir.Node, name: str, prefix: str = "") -> None:
        """Likewise for a node, its outputs and its subgraphs; outputs that are left out stay so."""
        node.name = self.node(name)
        for value in node.outputs:
            if value.name:
                value.name = self.value(prefix + value.name)
        for subgraph in subgraphs(node):
            self.rename(subgraph, prefix)
