"""The walk: from the last node to the first, what each hands back to its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from lucid_onnx.gradient.broadcast import unbroadcast
from lucid_onnx.gradient.call import Call, label
from lucid_onnx.gradient.registry import CONSTANT, RULES, Rule
from lucid_onnx.gradient.shapes import zeros_like
from lucid_onnx.gradient.unroll import is_loop, obstacle
from lucid_onnx.lowering.nodes import FLOATS, subgraphs
from lucid_onnx.operators.building import Drawing, Value, cast, dtype_of, opset_of
from lucid_onnx.reference.schema import UnsupportedError

BRANCHES = ("then_branch", "else_branch")


class Reverse:
    """Reverse mode over the nodes of one graph.

    Parameters
    ----------
    builder : Drawing
        Builds the gradient; its nodes may read the values of the primal.
    """

    def __init__(self, builder: Drawing) -> None:
        self._builder, self._op = builder, builder.op
        self._grads: dict[Value, Value] = {}
        self._wide: dict[Value, Value] = {}

    def run(
        self, nodes: Sequence[ir.Node], seeds: Iterable[tuple[Value, Value]], wanted: Collection[Value]
    ) -> Mapping[Value, Value]:
        """Gradients of what `seeds` begins with, with respect to the values that are wanted and that it reaches.

        Parameters
        ----------
        nodes : sequence of onnx_ir.Node
            The primal, in its order, typed.
        seeds : pairs of Value
            Outputs, and gradients with respect to them, of at least float32.
        wanted : collection of Value
            Values that are differentiated for, which no node of the graph makes.
        """
        active = flow(nodes, wanted)
        for value, grad in seeds:
            self._add(value, grad)
        for node in reversed(nodes):
            grads = [self._grads.pop(value, None) for value in node.outputs]
            if not any(grad is not None and value in active for value, grad in zip(node.outputs, grads, strict=True)):
                continue
            for value, grad in self._back(node, grads, active):
                self._add(value, grad)
        return {value: grad for value, grad in self._grads.items() if value in wanted}

    def wide(self, value: Value) -> Value:
        """A value of half precision as float32; any other as it is."""
        if value.dtype not in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
            return value
        if value not in self._wide:
            self._wide[value] = cast(self._op, value, ir.DataType.FLOAT)
        return self._wide[value]

    def _add(self, value: Value, grad: Value) -> None:
        known = self._grads.get(value)
        self._grads[value] = grad if known is None else self._op.Add(known, grad)

    def _back(
        self, node: ir.Node, grads: Sequence[Value | None], active: Collection[Value]
    ) -> Iterator[tuple[Value, Value]]:
        """Inputs of a node, or what its branches capture, with their gradients."""
        self._builder.push_module(f"{node.name or node.op_type}_grad")
        if is_if(node):
            yield from self._back_through_branches(node, grads, [v for v in captured(node) if v in active])
        else:
            wanted = [value is not None and value in active for value in node.inputs]
            if any(wanted) or any(value in active for value in captured(node)):
                found = self._apply(find_rule(node), node, grads, wanted)
                for value, grad, is_wanted in zip(node.inputs, found, wanted, strict=False):
                    if is_wanted and value is not None and grad is not None:
                        yield value, grad
        self._builder.pop_module()

    def _apply(
        self, rule: Rule, node: ir.Node, grads: Sequence[Value | None], wanted: Sequence[bool]
    ) -> Sequence[Value | None]:
        inputs = [None if value is None else self.wide(value) for value in node.inputs]
        outputs = [self.wide(value) if value.name else None for value in node.outputs]
        for grad, value in zip(grads, node.outputs, strict=True):
            if grad is not None and grad.shape is None and value.shape is not None:
                # The builder cannot always tell, but that is what a gradient has.
                grad.shape = value.shape.copy()
        call = Call(self._op, node, inputs, outputs, grads, wanted)
        first = grads[0] if grads[0] is not None else call.zeros_like(call.y)
        found = rule.function(call, first)
        if found is None or isinstance(found, ir.Value):
            found = [found]
        if not rule.broadcast:
            return found
        return [
            unbroadcast(self._op, grad, value) if grad is not None and value is not None and is_wanted else None
            for grad, value, is_wanted in zip(found, inputs, wanted, strict=False)
        ]

    def _back_through_branches(
        self, node: ir.Node, grads: Sequence[Value | None], sources: Sequence[Value]
    ) -> Iterator[tuple[Value, Value]]:
        """An If whose branches compute those of the node anew and then run backwards."""
        if not sources:
            return
        branches = {name: self._branch(node.attributes[name].as_graph(), grads, sources) for name in BRANCHES}
        results = self._op.If(node.inputs[0], **branches, _outputs=len(sources))
        results = [results] if isinstance(results, ir.Value) else list(results)
        for source, result in zip(sources, results, strict=True):
            result.type, result.shape = self.wide(source).type, source.shape
            yield source, result

    def _branch(self, primal: ir.Graph, grads: Sequence[Value | None], sources: Sequence[Value]) -> ir.Graph:
        """A branch run backwards: no inputs, and as outputs the gradients with respect to `sources`."""
        graph = primal.clone(allow_outer_scope_values=True)
        outputs = list(graph.outputs)
        graph.outputs.clear()
        graph.opset_imports.setdefault("", opset_of(self._op))
        nodes = list(graph)
        builder = Drawing(graph, parent=self._builder)
        inner = Reverse(builder)
        inner._wide.update(self._wide)
        seeds = [(value, grad) for value, grad in zip(outputs, grads, strict=True) if grad is not None]
        found = inner.run(nodes, seeds, set(sources))
        for source in sources:
            grad = found.get(source)
            if grad is None:
                grad = zeros_like(builder.op, source, dtype_of(self.wide(source), "what an If reads"))
            # An output of a branch must be made in it.
            graph.outputs.append(builder.op.Identity(grad))
        return graph


def flow(nodes: Iterable[ir.Node], sources: Collection[Value]) -> set[Value]:
    """`sources`, and the values that change with them and have a derivative."""
    active = set(sources)
    for node in nodes:
        if (node.domain, node.op_type) not in RULES and node.domain == "" and node.op_type in CONSTANT:
            continue
        if any(value in active for value in node.inputs) or any(value in active for value in captured(node)):
            active |= {value for value in node.outputs if value.dtype is None or value.dtype in FLOATS}
    return active


def find_rule(node: ir.Node) -> Rule:
    """The rule of a node.

    Raises
    ------
    UnsupportedError
        There is none.
    """
    found = RULES.get((node.domain, node.op_type))
    if found is not None:
        return found
    if is_loop(node):
        raise UnsupportedError(
            f"gradient: {label(node)}: it cannot be unrolled, because {obstacle(node)}; "
            "change that, or leave what depends on it out of wrt or of outputs"
        )
    domain = f', domain="{node.domain}"' if node.domain else ""
    raise UnsupportedError(
        f"gradient: {label(node)}: {node.op_type} has no gradient rule; add one with "
        f'lucid_onnx.gradient.rule("{node.op_type}"{domain}), or leave what it depends on out of wrt'
    )


def is_if(node: ir.Node) -> bool:
    """Whether a node is ONNX's If."""
    return node.domain == "" and node.op_type == "If"


def captured(node: ir.Node) -> list[Value]:
    """Values that the subgraphs of a node read from outside, each once."""
    found: dict[Value, None] = {}
    for graph in subgraphs(node):
        own = {*graph.inputs, *graph.initializers.values()}
        for inner in graph:
            outside = [*(value for value in inner.inputs if value is not None), *captured(inner)]
            found.update(dict.fromkeys(value for value in outside if value not in own))
            own |= {*inner.outputs}
        found.update(dict.fromkeys(value for value in graph.outputs if value not in own))
    return list(found)
