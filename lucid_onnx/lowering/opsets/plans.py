"""The way that each node of a model takes to another opset, and going it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import onnx
import onnx_ir as ir
from onnx import inliner
from onnx_ir.traversal import RecursiveGraphIterator

from lucid_onnx.lowering.nodes import subgraphs
from lucid_onnx.lowering.opsets.by_hand import resized_as_before_11, split_by_sizes
from lucid_onnx.lowering.opsets.changes import changes_between, droppable
from lucid_onnx.lowering.opsets.converter import LoneNode, Outcome, converted, lone_node
from lucid_onnx.lowering.opsets.obstacles import Obstacle, StuckError, check_source
from lucid_onnx.lowering.opsets.schemas import present, signature_of
from lucid_onnx.lowering.opsets.steps import Names, Scope, Step, name_of, splice, steps_of
from lucid_onnx.lowering.opsets.value_types import Types


@dataclass(frozen=True)
class Plan:
    """What is to be done to a node: attributes to drop, or nodes to take its place."""

    scope: Scope
    node: ir.Node
    dropped: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Question:
    """A node that cannot stay as it is, for `reason`, and that others may convert.

    `known` says whether ONNX's converter knows what happened to the operator. Otherwise only its body is left.
    """

    scope: Scope
    node: ir.Node
    reason: str
    alone: LoneNode
    known: bool


def plan_nodes(model: ir.Model, opset: int, ours: Collection[str]) -> Iterator[Plan | Obstacle]:
    """What is to be done, node by node, in the order of the model."""
    ways = list(_walk(model, opset, ours))
    outcomes = converted((way.alone for way in ways if isinstance(way, Question) and way.known), opset)
    for way in ways:
        yield _answered(way, opset, outcomes) if isinstance(way, Question) else way


def carry_out(plans: Iterable[Plan], model: ir.Model, opset: int) -> None:
    """Do to `model` what is planned for all of its nodes."""
    for scope, its_plans in groupby(plans, key=lambda plan: plan.scope):
        names = Names(scope)
        for plan in its_plans:
            for attribute in plan.dropped:
                del plan.node.attributes[attribute]
            if plan.steps:
                splice(plan.node, plan.steps, names)
    for scope in _scopes(model):
        _import(scope, opset)


def _scopes(model: ir.Model) -> Iterator[Scope]:
    yield model.graph
    yield from model.functions.values()


def _version(scope: Scope) -> int | None:
    return scope.opset_imports.get("", scope.opset_imports.get("ai.onnx"))


def _import(scope: Scope, opset: int) -> None:
    for domain in ("", "ai.onnx"):
        if domain in scope.opset_imports:
            scope.opset_imports[domain] = opset


def _walk(model: ir.Model, opset: int, ours: Collection[str]) -> Iterator[Plan | Obstacle | Question]:
    """The way of each node, as far as it is known before ONNX's converter is asked."""
    for scope in _scopes(model):
        source = _version(scope) or _version(model.graph) or 1
        types = Types()
        for node in RecursiveGraphIterator(scope):
            if node.domain or node.op_identifier() in model.functions:
                continue
            types.infer(node, source)
            if node.op_type in ours or source == opset:
                continue
            try:
                yield _way(scope, node, source, opset, types)
            except StuckError as stuck:
                yield _obstacle(node, source, opset, str(stuck))


def _obstacle(node: ir.Node, source: int, opset: int, reason: str) -> Obstacle:
    signature = signature_of(node.op_type, source)
    if signature is not None and opset < source:
        advice = f"opset {signature.since} or newer has it as it is"
    else:
        advice = f"stay at opset {source} or rewrite the node first"
    return Obstacle(node.op_type, name_of(node), source, opset, reason, advice)


def _way(scope: Scope, node: ir.Node, source: int, opset: int, types: Types) -> Plan | Question:
    """What to do to `node`, or what to ask about it, or an error with the reason why neither helps."""
    old, new = signature_of(node.op_type, source), signature_of(node.op_type, opset)
    if old is None:
        raise StuckError(f"the installed onnx {onnx.__version__} knows no such operator at opset {source}")
    if old == new:
        return Plan(scope, node)
    check_source(source)
    changes = changes_between(node, source, opset)
    if changes:
        version, change = changes[0]
        reason = f"at opset {version} it {change.what}"
    elif new is None or new.deprecated:
        reason = f"opset {opset} has no {node.op_type}"
    else:
        try:
            return Plan(scope, node, dropped=droppable(node, old, new, types))
        except StuckError as stuck:
            reason = str(stuck)
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        raise StuckError(f"{reason}, and attributes that the function's caller chooses are not known")
    if any(subgraphs(node)):
        raise StuckError(reason)
    if node.op_type == "Split" and opset < 18 <= source and len(present(node.inputs)) < 2:
        try:
            return Plan(scope, node, steps=split_by_sizes(node))
        except StuckError as stuck:
            raise StuckError(_both(reason, str(stuck))) from None
    known = new is not None and all(change.converter for _, change in changes)
    return Question(scope, node, reason, lone_node(node, source, types), known)


def _answered(question: Question, opset: int, outcomes: Mapping[LoneNode, Outcome]) -> Plan | Obstacle:
    """The plan that ONNX's converter makes possible, or else the operator's body as an ONNX function."""
    try:
        return Plan(question.scope, question.node, steps=_replacement(question, opset, outcomes))
    except StuckError as stuck:
        return _obstacle(question.node, question.alone.source, opset, _both(question.reason, str(stuck)))


def _both(reason: str, further: str) -> str:
    return reason if further in ("", reason) else f"{reason}, and {further}"


def _replacement(question: Question, opset: int, outcomes: Mapping[LoneNode, Outcome]) -> tuple[Step, ...]:
    outcome = outcomes.get(question.alone, "")
    if not isinstance(outcome, str):
        return resized_as_before_11(question.node, outcome) if question.alone.source < 11 else outcome
    body = _body(question.alone, opset)
    if isinstance(body, str):
        raise StuckError(outcome or body)
    return body


@lru_cache(maxsize=4096)
def _body(alone: LoneNode, opset: int) -> Outcome:
    """The body of the operator of a node, brought to `opset` by these same plans."""
    proto = alone.model()
    operator = proto.graph.node[0].op_type
    _state_defaults(proto.graph.node[0], alone.source)
    try:
        inlined = inliner.inline_selected_functions(proto, [("", operator)], inline_schema_functions=True)
    except (RuntimeError, ValueError):
        return ""
    if any(node.op_type == operator for node in inlined.graph.node):
        return ""
    model = ir.from_proto(inlined)
    feasible = []
    for plan in plan_nodes(model, opset, ()):
        if isinstance(plan, Obstacle):
            return f"in its body {plan.operator} cannot follow either: {plan.reason}"
        feasible.append(plan)
    carry_out(feasible, model, opset)
    return steps_of(model.graph, {value.name for value in proto.graph.initializer})


def _state_defaults(node: onnx.NodeProto, version: int) -> None:
    """Give a node the attributes that it leaves at their defaults: the body refers to them by name."""
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in onnx.defs.get_schema(node.op_type, version, node.domain).attributes.items():
        if name not in given and attribute.default_value.name:
            node.attribute.append(attribute.default_value)
