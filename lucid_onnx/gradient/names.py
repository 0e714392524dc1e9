"""Names that a model does not have yet."""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.model_files import own_tensor


class Names:
    """The names of the values and of the nodes of a model."""

    def __init__(self, model: ir.Model) -> None:
        self._values: set[str | None] = set()
        self._nodes: set[str | None] = set()
        for graph in (model.graph, *model.graph.subgraphs()):
            self._values |= {value.name for value in (*graph.inputs, *graph.initializers.values(), *graph.outputs)}
            for node in graph:
                self._nodes.add(node.name)
                self._values |= {value.name for value in node.outputs}

    def value(self, name: str | None) -> str:
        """`name` for a value, with a number behind it where it is taken."""
        return _fresh(name or "value", self._values)

    def node(self, name: str | None) -> str:
        """`name` for a node, likewise."""
        return _fresh(name or "node", self._nodes)

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


def subgraphs(node: ir.Node) -> list[ir.Graph]:
    """The graphs that are attributes of a node."""
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            found.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            found += attribute.as_graphs()
    return found


def _fresh(name: str, taken: set[str | None]) -> str:
    fresh, number = name, 0
    while fresh in taken:
        number += 1
        fresh = f"{name}_{number}"
    taken.add(fresh)
    return fresh
