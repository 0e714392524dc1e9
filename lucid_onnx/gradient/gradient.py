"""The gradient of a whole model, as a model."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir
from onnx_ir.passes import Sequential
from onnx_ir.passes import common as passes

from lucid_onnx.files import ModelSource
from lucid_onnx.gradient import rules as rules
from lucid_onnx.gradient.names import Names
from lucid_onnx.gradient.prepare import prepare
from lucid_onnx.gradient.reverse import Reverse
from lucid_onnx.gradient.shapes import zeros_like
from lucid_onnx.lowering import lower_ir
from lucid_onnx.lowering.inference import types_of_now
from lucid_onnx.lowering.nodes import FLOATS, subgraphs
from lucid_onnx.lowering.tables import TargetSource, find_target
from lucid_onnx.model_files import read_model, to_proto
from lucid_onnx.operators.building import Drawing, Value, cast
from lucid_onnx.operators.finishing import new_model
from lucid_onnx.reference.schema import ArgumentError, DtypeError, no_such


def gradient(
    model: ModelSource,
    wrt: Sequence[str] | str | None = None,
    outputs: Sequence[str] | str | None = None,
    target: TargetSource = "onnxruntime-cpu",
) -> onnx.ModelProto:
    """Gradient of a model, as a model: reverse mode, ONNX to ONNX.

    Parameters
    ----------
    model : path, onnx.ModelProto or onnx_ir.Model
        Any ONNX model of operators that have a rule (`RULES`), or none on the way. What came is not changed.
    wrt : str or sequence of str, optional
        Inputs or initializers to differentiate for; by default all that are floats.
    outputs : str or sequence of str, optional
        Float outputs to differentiate; by default all of them. Where there are several, their gradients are summed.
    target : str, path or Target
        The runtime that the result is for, as in `lucid_onnx.lower`, by which its GridSample and AffineGrid nodes are
        kept, guarded or expanded; the gradients of these two are standard operators for every target.

    Returns
    -------
    onnx.ModelProto
        The model with its nodes in their order, then those of the gradient. It has one more input for each of
        `outputs`, ``<output>_grad``, the upstream gradient, of the output's dtype and shape; and one more output for
        each of `wrt`, ``<name>_grad``, of the dtype and shape of what it is the gradient of. Where such a name is
        taken, a number follows it. What does not reach an output has a gradient of zeros. Half precision is
        accumulated in float32 and rounded once. A model below opset 16 is raised to it.

    Raises
    ------
    ArgumentError
        A `ValueError`: no model, a name that is no input, initializer or output, or an unknown target.
    DtypeError
        A `TypeError`: a name of integers or truth values.
    UnsupportedError
        A `NotImplementedError`: a node on the way that has no rule, or that its rule cannot do.

    Examples
    --------
    >>> import onnx
    >>> import lucid_onnx as lo
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 9, opset_import: ["" : 20]>
    ...     warp (float[N, 3, H, W] x, float[N, 8, 8, 2] grid) => (float[N, 3, 8, 8] y)
    ...     { y = GridSample <mode = "linear", padding_mode = "border"> (x, grid) }''')
    >>> differentiated = lo.gradient(model, wrt="grid")
    >>> [value.name for value in differentiated.graph.input], [value.name for value in differentiated.graph.output]
    (['x', 'grid', 'y_grad'], ['y', 'grid_grad'])
    """
    rewritten = read_model(model, "gradient")
    gradient_ir(rewritten, wrt, outputs, target)
    return to_proto(rewritten, "gradient")


def gradient_ir(
    model: ir.Model,
    wrt: Sequence[str] | str | None = None,
    outputs: Sequence[str] | str | None = None,
    target: TargetSource = "onnxruntime-cpu",
) -> None:
    """`gradient`, in place. After an error the model is in no order."""
    table = find_target(target)
    with types_of_now(model):
        graph = model.graph
        sources = _chosen("wrt", wrt, [*dict.fromkeys((*graph.inputs, *graph.initializers.values()))])
        results = _chosen("outputs", outputs, list(graph.outputs))
        prepare(model, sources, results)
        # Inlining may have put other values in the place of outputs.
        results = [value for value in graph.outputs if value.name in {result.name for result in results}]
        _append(model, sources, results)
    lower_ir(model, table)


def _chosen(argument: str, names: Sequence[str] | str | None, known: Sequence[Value]) -> list[Value]:
    """The values that are named, each once; all floats by default."""
    if names is None:
        return [value for value in known if value.dtype in FLOATS]
    by_name = {value.name or "": value for value in known}
    chosen: dict[str, Value] = {}
    for name in [names] if isinstance(names, str) else names:
        if name not in by_name:
            kind = "input or initializer" if argument == "wrt" else "output"
            raise ArgumentError(f"gradient: {argument}: {no_such(kind, name, by_name)}")
        dtype = by_name[name].dtype
        if dtype is not None and dtype not in FLOATS:
            raise DtypeError(f"gradient: {argument}: {name!r} is of {dtype.name.lower()}; only floats have a gradient")
        chosen[name] = by_name[name]
    return list(chosen.values())


def _append(model: ir.Model, sources: Sequence[Value], results: Sequence[Value]) -> None:
    """Append the nodes of the gradient to the graph of `model`, with its inputs and outputs."""
    graph, names = model.graph, Names(model)
    scratch = ir.Graph([], [], nodes=[], opset_imports={"": graph.opset_imports[""]}, name="gradient")
    builder = Drawing(scratch)
    reverse = Reverse(builder)
    seeds = []
    for result in results:
        seed = ir.Value(name=names.value(f"{result.name}_grad"), type=result.type, shape=result.shape)
        scratch.inputs.append(seed)
        seeds.append((result, reverse.wide(seed)))
    found = reverse.run(list(graph), seeds, set(sources))
    for source in sources:
        assert source.dtype is not None
        grad = found.get(source)
        if grad is None:
            grad = zeros_like(builder.op, source, source.dtype)
        grad = cast(builder.op, grad, source.dtype)
        producer = grad.producer()
        if producer is None or producer.graph is not scratch or grad in scratch.outputs:
            grad = builder.op.Identity(grad)
        grad.name, grad.type, grad.shape = names.value(f"{source.name}_grad"), source.type, source.shape
        scratch.outputs.append(grad)
    _clean(scratch, names)
    _move(scratch, graph, names)


def _clean(scratch: ir.Graph, names: Names) -> None:
    """Drop what nothing needs, and compute once what is the same."""
    for subgraph in [subgraph for node in scratch for subgraph in subgraphs(node)]:
        names.rename(subgraph)
    Sequential(
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.DeduplicateInitializersPass(),
        passes.RemoveUnusedNodesPass(),
        passes.CommonSubexpressionEliminationPass(),
        passes.ClearMetadataAndDocStringPass(),
    )(new_model(scratch))


def _move(scratch: ir.Graph, graph: ir.Graph, names: Names) -> None:
    """Move all of `scratch` to the end of `graph`, under names that it does not have."""
    seeds, grads, constants = list(scratch.inputs), list(scratch.outputs), list(scratch.initializers.values())
    nodes = list(scratch)
    scratch.inputs.clear()
    scratch.outputs.clear()
    scratch.initializers.clear()
    scratch.remove(nodes)
    for constant in constants:
        constant.name = names.value(constant.name)
        graph.register_initializer(constant)
    keep = set(grads)
    for node in nodes:
        prefix = (node.name or "").rpartition("/")[0]
        node.name = names.node(f"{prefix}/{node.op_type}" if prefix else node.op_type)
        for value in node.outputs:
            if value not in keep:
                value.name = names.value(f"{node.name}_output")
    graph.extend(nodes)
    graph.inputs.extend(seeds)
    graph.outputs.extend(grads)
