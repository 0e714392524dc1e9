"""Bodies of functions and of loops, made part of the graph that they are called from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from lucid_onnx.gradient.names import Names
from lucid_onnx.lowering.nodes import subgraphs
from lucid_onnx.operators.building import Value


class Embedding:
    """What comes in the place of one node.

    Parameters
    ----------
    node : onnx_ir.Node
        The node.
    names : Names
        Those of the model.
    """

    def __init__(self, node: ir.Node, names: Names) -> None:
        assert isinstance(node.graph, ir.Graph)
        self._node, self._names, self._graph = node, names, node.graph
        self._prefix = f"{node.name or node.outputs[0].name or node.op_type}/"
        self._added: list[ir.Node] = []

    def body(self, copy: ir.Graph, inputs: Sequence[Value | None], part: str = "") -> list[Value | None]:
        """Take over the nodes of `copy` with `inputs` in the place of its own; its outputs."""
        outside = dict(zip(copy.inputs, inputs, strict=True))
        outputs = [outside.get(value, value) for value in copy.outputs]
        copy.outputs.clear()
        for formal, value in outside.items():
            for user, position in list(formal.uses()):
                user.replace_input_with(position, value)
        for node in copy.all_nodes():
            for value in node.outputs:
                _forget(value)
        self._names.rename(copy, f"{self._prefix}{part}")
        nodes = list(copy)
        copy.remove(nodes)
        self._add(nodes)
        return outputs

    def share(self, body: ir.Graph) -> None:
        """Have the initializers of a body that runs several times be there once."""
        for name, value in list(body.initializers.items()):
            if value not in body.inputs:
                del body.initializers[name]
                value.name = self._names.value(f"{self._prefix}{name}")
                self._graph.register_initializer(value)

    def call(self, op_type: str, inputs: Sequence[Value], **attributes: int) -> Value:
        """The output of a new node."""
        name = f"{self._prefix}{op_type}"
        result = ir.Value(name=self._names.value(f"{name}_output"))
        self._add([ir.node(op_type, inputs, attributes or None, outputs=[result], name=self._names.node(name))])
        return result

    def constant(self, array: np.ndarray, dtype: ir.DataType = ir.DataType.INT64) -> Value:
        """A constant."""
        tensor = ir.tensor(array, dtype=dtype)
        result = ir.Value(name=self._names.value(f"{self._prefix}constant"))
        self._add([ir.node("Constant", [], {"value": tensor}, outputs=[result], name=self._names.node(result.name))])
        return result

    def finish(self, results: Iterable[Value | None]) -> None:
        """Have `results` stand for the outputs of the node, whose names they get, and take it out."""
        made = {value for node in self._added for value in node.outputs}
        for old, new in zip(self._node.outputs, results, strict=False):
            if not old.name or new is None:
                continue
            if new not in made:
                # A value of the graph around, or one that stands for another output already, keeps its name.
                new = self.call("Identity", [new])
            made.discard(new)
            new.name, new.type, new.doc_string = old.name, old.type, old.doc_string
            new.shape = None if old.shape is None else old.shape.copy()
            new.meta.update(old.meta)
            new.metadata_props.update(old.metadata_props)
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        self._graph.remove(self._node, safe=True)
        for node in reversed(self._added):
            if not any(value.uses() or value.is_graph_output() for value in node.outputs):
                self._graph.remove(node, safe=True)

    def _add(self, nodes: Sequence[ir.Node]) -> None:
        self._graph.insert_before(self._node, nodes)
        self._added += nodes


def own_outputs(graph: ir.Graph, names: Names, around: Mapping[str | None, Value] | None = None) -> None:
    """Have each output of the subgraphs in a graph be made in them, as runtimes want it.

    One that a subgraph hands out from around it is known by its name alone.
    """
    known = {**(around or {}), **{value.name: value for value in (*graph.inputs, *graph.initializers.values())}}
    for node in graph:
        for subgraph in subgraphs(node):
            own_outputs(subgraph, names, known)
            own = {*subgraph.inputs, *subgraph.initializers.values(), *(v for inner in subgraph for v in inner.outputs)}
            for position, value in enumerate(subgraph.outputs):
                if value not in own and value.name in known:
                    copy = ir.Value(name=names.value(value.name), type=value.type, shape=value.shape)
                    subgraph.append(ir.node("Identity", [known[value.name]], outputs=[copy]))
                    subgraph.outputs[position] = copy
        known.update((value.name, value) for value in node.outputs)


def _forget(value: Value) -> None:
    """Forget the symbols of a body, declared or inferred: each time that it runs they may stand for another number."""
    value.meta.clear()
    if value.shape is not None and not value.shape.is_static():
        value.shape = None
