"""A model made ready for the walk: its values typed, functions on the path inlined, small loops unrolled."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import onnx_ir as ir
from onnx_ir.passes import common as passes
from onnxscript import optimizer

from lucid_onnx.gradient.embed import Embedding, own_outputs
from lucid_onnx.gradient.names import Names
from lucid_onnx.gradient.registry import RULES
from lucid_onnx.gradient.reverse import captured, flow, is_if
from lucid_onnx.gradient.unroll import is_loop, obstacle, unroll
from lucid_onnx.lowering.functions import attributes_of, substitute
from lucid_onnx.lowering.inference import infer
from lucid_onnx.lowering.nodes import constant_of, scopes, subgraphs, walk
from lucid_onnx.lowering.opsets import convert_opset
from lucid_onnx.operators.building import Value
from lucid_onnx.operators.finishing import OLDEST_OPSET
from lucid_onnx.reference.schema import UnsupportedError


def prepare(model: ir.Model, wrt: Collection[Value], outputs: Collection[Value]) -> None:
    """Make `model` ready, in place; what does not lie between `wrt` and `outputs` stays as it is.

    Outputs keep their names, but other values may come in their place.
    """
    chosen = {value.name for value in outputs}
    model.graph.opset_imports.setdefault("", OLDEST_OPSET)
    if any(scope.opset_imports.get("", OLDEST_OPSET) < OLDEST_OPSET for scope in scopes(model)):
        convert_opset(model, OLDEST_OPSET, ours=())
    # Before that every initializer is an input, which those of the gradient are not.
    model.ir_version = max(model.ir_version, 4)
    own_outputs(model.graph, Names(model))
    _infer_all(model)
    while _expand(model, on_path(model.graph, wrt, [value for value in model.graph.outputs if value.name in chosen])):
        _infer_all(model)


def _infer_all(model: ir.Model) -> None:
    """Infer types and shapes, in place, and ranks that ONNX finds only in a copy in which constants are computed."""
    infer(model)
    values = [value for node in walk(model.graph) for value in node.outputs]
    if all(value.shape is not None for value in values if value.name):
        return
    copy = model.clone()
    twins = [value for node in walk(copy.graph) for value in node.outputs]
    _bring_constants(copy)
    optimizer.fold_constants(copy)
    infer(copy)
    for value, twin in zip(values, twins, strict=True):
        if value.shape is None and twin.shape is not None:
            # The symbols of the copy mean nothing here.
            value.shape = ir.Shape([length if isinstance(length, int) else None for length in twin.shape])
            value.type = value.type or twin.type


def _bring_constants(model: ir.Model) -> None:
    """Have subgraphs hold the constants that they read from outside, where ONNX's inference does not see them."""
    names = Names(model)
    for node in walk(model.graph):
        for position, value in enumerate(node.inputs):
            if node.graph is None or node.graph is model.graph or value is None or value.graph is node.graph:
                continue
            tensor = constant_of(value)
            if tensor is not None and tensor.size <= _MOST_NUMBERS:
                output = ir.Value(name=names.value(value.name))
                constant = ir.node("Constant", [], {"value": tensor}, outputs=[output], name=names.node("Constant"))
                node.graph.insert_before(node, constant)
                node.replace_input_with(position, output)


_MOST_NUMBERS = 64
"""Numbers in a constant that may be a shape or axes."""


def _expand(model: ir.Model, path: Iterable[ir.Node]) -> bool:
    """Expand the calls and loops of a path by one level; whether there were any."""
    calls, loops = [], []
    for node in path:
        if (node.domain, node.op_type) in RULES:
            continue
        if node.op_identifier() in model.functions:
            calls.append(node)
        elif is_loop(node) and obstacle(node) is None:
            loops.append(node)
    if calls:
        _inline(model, calls)
    unroll(model, *loops)
    return bool(calls or loops)


def on_path(graph: ir.Graph, wrt: Collection[Value], outputs: Collection[Value]) -> list[ir.Node]:
    """The nodes by which `outputs` change with `wrt`, those of the branches of an If included."""
    active = flow(graph, wrt)
    reached = set(outputs)
    found: list[ir.Node] = []
    for node in reversed(graph):
        if any(value in reached and value in active for value in node.outputs):
            found.append(node)
            reached.update(value for value in (*node.inputs, *captured(node)) if value is not None)
            if is_if(node):
                found += [inner for branch in subgraphs(node) for inner in on_path(branch, active, branch.outputs)]
    return found


def _inline(model: ir.Model, calls: Collection[ir.Node]) -> None:
    """Put the bodies of model-local functions in the place of calls; other calls stay."""
    _share_opsets(model, [model.functions[node.op_identifier()] for node in calls])
    names = Names(model)
    for node in calls:
        function = model.functions[node.op_identifier()].clone()
        substitute(function, attributes_of(function, node))
        missing = [None] * (len(function.inputs) - len(node.inputs))
        embedding = Embedding(node, names)
        embedding.finish(embedding.body(function.graph, [*node.inputs, *missing]))
    own_outputs(model.graph, names)
    passes.RemoveUnusedFunctionsPass()(model)  # type: ignore[no-untyped-call]


def _share_opsets(model: ir.Model, functions: Collection[ir.Function]) -> None:
    """Have the graph import what functions import, and all import one version of ONNX's operators."""
    imports = model.graph.opset_imports
    if any(function.opset_imports.get("", imports[""]) != imports[""] for function in functions):
        convert_opset(model, max(scope.opset_imports.get("", OLDEST_OPSET) for scope in scopes(model)), ours=())
    for function in functions:
        for domain, version in function.opset_imports.items():
            if imports.setdefault(domain, version) != version:
                raise UnsupportedError(
                    f"gradient: the function {function.name!r} imports version {version} of {domain!r} and the model "
                    f"version {imports[domain]}; have both import one"
                )
