"""Nodes that take the place of another: read off a graph, and put into one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir
from onnx_ir.traversal import RecursiveGraphIterator

from lucid_onnx.lowering.nodes import subgraphs
from lucid_onnx.lowering.opsets.schemas import present
from lucid_onnx.operators.naming import Taken

Scope: TypeAlias = "ir.Graph | ir.Function"
"""What holds nodes and imports an opset."""


@dataclass(frozen=True)
class Step:
    """A node of a result; its inputs are named x0, x1, ... and its outputs y0, y1, ... as those of the old node."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[ir.Attr, ...]


def constant_step(name: str, tensor: ir.TensorProtocol) -> Step:
    return Step("Constant", (), (name,), (ir.AttrTensor("value", tensor),))


def steps_of(graph: ir.Graph, given: Collection[str]) -> tuple[Step, ...]:
    """The nodes of a result; initializers that are new become constants, since a function has no initializers."""
    constants = [
        constant_step(name, value.const_value)
        for name, value in graph.initializers.items()
        if name not in given and value.const_value is not None
    ]
    nodes = [
        Step(
            node.op_type,
            tuple("" if value is None else value.name or "" for value in node.inputs),
            tuple(value.name or "" for value in node.outputs),
            tuple(node.attributes.values()),
        )
        for node in graph
    ]
    return _needed((*constants, *nodes), {value.name for value in graph.outputs})


def _needed(steps: Sequence[Step], names: Collection[str | None]) -> tuple[Step, ...]:
    """The steps on which values called `names` depend; bodies also compute outputs that a node leaves out."""
    needed, kept = set(names), []
    for step in reversed(steps):
        if needed.intersection(step.outputs):
            needed.update(step.inputs)
            kept.append(step)
    return tuple(reversed(kept))


def slots(node: ir.Node) -> dict[ir.Value, str]:
    """The inputs of `node` and their names in a `Step`."""
    return {value: f"x{i}" for i, value in enumerate(dict.fromkeys(v for v in present(node.inputs) if v is not None))}


def name_of(node: ir.Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")


class Names:
    """Names of the values and nodes of a graph, with its subgraphs, or of a function; and new ones."""

    def __init__(self, scope: Scope) -> None:
        self._taken = Taken(value.name for value in scope.inputs)
        if isinstance(scope, ir.Graph):
            self._taken.update(scope.initializers)
        for node in RecursiveGraphIterator(scope):
            self._taken.update((node.name, *(value.name for value in node.outputs)))
            for graph in subgraphs(node):
                self._taken.update((*(value.name for value in graph.inputs), *graph.initializers))

    def fresh(self, *parts: str) -> str:
        """A name that is not taken, made of `parts`."""
        return self._taken.fresh("_".join(part for part in parts if part))


def splice(node: ir.Node, steps: Sequence[Step], names: Names) -> None:
    """Put `steps` in the place of `node`; its name goes to the node that does its work."""
    values: dict[str, ir.Value | None] = {"": None, **{name: value for value, name in slots(node).items()}}
    heirs = {f"y{i}": value for i, value in enumerate(node.outputs)}
    main = next((step for step in steps if step.operator == node.op_type), steps[-1])
    new_nodes = []
    for step in steps:
        outputs = [_heir(heirs[name]) if name in heirs else _fresh_value(name, node, names) for name in step.outputs]
        values.update(zip(step.outputs, outputs, strict=True))
        new_node = ir.Node("", step.operator, [values[name] for name in step.inputs], step.attributes, outputs=outputs)
        if step is main:
            new_node.name, new_node.doc_string = node.name, node.doc_string
            new_node.metadata_props.update(node.metadata_props)
            new_node.meta.update(node.meta)
            new_node.device_configurations = node.device_configurations
        else:
            new_node.name = names.fresh(name_of(node), step.operator)
        new_nodes.append(new_node)
    graph = node.graph
    assert graph is not None
    graph.insert_before(node, new_nodes)
    for name, value in heirs.items():
        heir = values.get(name)
        if heir is not None:
            value.replace_all_uses_with(heir, replace_graph_outputs=True)
    graph.remove(node, safe=True)


def _heir(value: ir.Value) -> ir.Value:
    """A value to stand in for `value`, with all that is said of it."""
    heir = ir.Value(
        name=value.name,
        type=value.type,
        shape=value.shape,
        doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )
    heir.meta.update(value.meta)
    return heir


def _fresh_value(name: str, node: ir.Node, names: Names) -> ir.Value:
    return ir.Value(name=names.fresh(name_of(node), name.strip("_")) if name else "")
