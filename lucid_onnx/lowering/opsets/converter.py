"""ONNX's own converter, asked about nodes alone.

A call of it takes milliseconds, however small the model is: so it is asked about all nodes at once, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TypeAlias

import onnx
import onnx_ir as ir
from onnx import checker, shape_inference, version_converter

from lucid_onnx.lowering.opsets.obstacles import StuckError
from lucid_onnx.lowering.opsets.schemas import Signature, present, signature_of
from lucid_onnx.lowering.opsets.steps import Step, slots, steps_of
from lucid_onnx.lowering.opsets.value_types import Types, small_constant_of, type_of

Outcome: TypeAlias = "tuple[Step, ...] | str"
"""The nodes that take the place of one, or why there are none."""

_REFUSALS = (RuntimeError, IndexError, ValueError, version_converter.ConvertError, shape_inference.InferenceError)
"""What ONNX's converter raises."""


@dataclass(frozen=True)
class LoneNode:
    """A node with all that its conversion depends on; the same for all nodes that are converted alike.

    Parameters
    ----------
    source : int
        The opset in force.
    graph : bytes
        A serialized graph of the node alone, with inputs x0, x1, ... and outputs y0, y1, ...
    """

    source: int
    graph: bytes

    def proto(self) -> onnx.GraphProto:
        """The graph, to be changed at will."""
        graph = onnx.GraphProto()
        graph.ParseFromString(self.graph)
        return graph

    def model(self) -> onnx.ModelProto:
        """A model of the graph."""
        return _model(self.proto(), self.source)


def lone_node(node: ir.Node, source: int, types: Types) -> LoneNode:
    """What the conversion of `node` depends on.

    Of shapes only the ranks are told: no adapter reads more, and so most nodes of an operator share a result. Of
    constants the integers are told, which adapters make attributes of.
    """
    twins, initializers = {}, []
    for value, name in slots(node).items():
        twins[value] = twin = _twin(value, name, types)
        tensor = small_constant_of(value)
        if tensor is not None and tensor.dtype in (ir.DataType.INT32, ir.DataType.INT64):
            twin.const_value, twin.shape = ir.tensor(tensor.numpy(), name=name), ir.Shape(tensor.numpy().shape)
            initializers.append(twin)
    outputs = [_twin(value, f"y{i}" if value.name else "", types) for i, value in enumerate(node.outputs)]
    inputs = [None if value is None else twins[value] for value in present(node.inputs)]
    graph = ir.Graph(
        [twin for twin in twins.values() if twin not in initializers],
        [value for value in outputs if value.name],
        nodes=[ir.Node("", node.op_type, inputs, node.attributes, outputs=outputs)],
        initializers=initializers,
        name="node",
    )
    return LoneNode(source, bytes(ir.to_proto(graph).SerializeToString(deterministic=True)))


def _twin(value: ir.Value, name: str, types: Types) -> ir.Value:
    type_, shape = types.of(value), value.shape
    return ir.Value(
        name=name,
        type=None if type_ is None else type_of(type_),
        shape=None if shape is None else ir.Shape([None] * len(shape)),
    )


def _model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    imports = [onnx.helper.make_opsetid("", opset)]
    return onnx.ModelProto(graph=graph, ir_version=onnx.IR_VERSION, opset_import=imports)


def converted(nodes: Iterable[LoneNode], opset: int) -> dict[LoneNode, Outcome]:
    """What ONNX's converter makes of each node, or why it makes nothing valid."""
    outcomes: dict[LoneNode, Outcome] = {}
    distinct = sorted(dict.fromkeys(nodes), key=lambda node: node.source)
    batches = [list(batch) for _, batch in groupby(distinct, key=lambda node: node.source)]
    while batches:
        batch = batches.pop()
        try:
            graphs = _converted_graphs(batch, opset)
        except StuckError as stuck:
            if len(batch) == 1:
                outcomes[batch[0]] = str(stuck)
            else:  # One of them stops all; halving finds it.
                middle = len(batch) // 2
                batches += [batch[:middle], batch[middle:]]
        else:
            outcomes.update((node, _completed(graph, node, opset)) for node, graph in zip(batch, graphs, strict=True))
    return outcomes


def _converted_graphs(nodes: Sequence[LoneNode], opset: int) -> list[onnx.GraphProto]:
    """The graph that ONNX's converter makes of each node, all of one source."""
    together = onnx.GraphProto(name="nodes")
    for i, node in enumerate(nodes):
        together.MergeFrom(_prefixed(node.proto(), f"{i}/"))
    try:
        result = version_converter.convert_version(_model(together, nodes[0].source), opset).graph
    except _REFUSALS as error:
        said = str(error).rpartition("failed: ")[2].strip(" \n.")
        raise StuckError("" if said.startswith("No Adapter") else f"onnx's converter says: {said}") from None
    return _separated(result, len(nodes))


def _prefixed(graph: onnx.GraphProto, prefix: str) -> onnx.GraphProto:
    """The graph, changed: its names stand behind a prefix, and outputs that are left out get one too.

    Within ONNX's converter all values without a name are one.
    """
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = prefix + value.name
    for node in graph.node:
        node.input[:] = [prefix + name if name else "" for name in node.input]
        node.output[:] = [prefix + name if name else f"{i}.{prefix}" for i, name in enumerate(node.output)]
    return graph


def _separated(graph: onnx.GraphProto, number: int) -> list[onnx.GraphProto]:
    """The graphs that lie side by side in one, by names of their own."""
    parts = [onnx.GraphProto(name="node") for _ in range(number)]
    owners = {value.name: int(value.name.partition("/")[0]) for value in graph.output}
    for node in reversed(graph.node):
        owner = next((owners[name] for name in node.output if name in owners), None)
        if owner is not None:
            owners.update((name, owner) for name in node.input if name)
            parts[owner].node.append(node)
    for field in ("input", "output", "value_info", "initializer"):
        for value in getattr(graph, field):
            if value.name in owners:
                getattr(parts[owners[value.name]], field).append(value)
    for part in parts:
        part.node.reverse()
        _shorten_names(part)
    return parts


def _shorten_names(graph: onnx.GraphProto) -> None:
    """Undo what `_prefixed` did to names, and count the values that ONNX's converter made."""
    made = (f"v{i}" for i in count())
    known: dict[str, str] = {"": ""}

    def short(name: str) -> str:
        if name not in known:
            known[name] = name.partition("/")[2] if "/" in name else next(made)
        return known[name]

    for node in graph.node:
        node.input[:] = map(short, node.input)
        node.output[:] = map(short, node.output)
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = short(value.name)


def _completed(graph: onnx.GraphProto, node: LoneNode, opset: int) -> Outcome:
    """The nodes of a graph of ONNX's converter, mended, or why they are not valid."""
    result, types = ir.serde.deserialize_graph(graph), Types()
    try:
        for made in result:
            _complete(made, opset, types)
    except StuckError as stuck:
        return str(stuck)
    return steps_of(result, {value.name for value in node.proto().initializer})


def _complete(node: ir.Node, opset: int, types: Types) -> None:
    """Mend what ONNX's adapters leave behind in a result, and raise unless it is valid then."""
    signature = signature_of(node.op_type, opset)
    if signature is None:
        raise StuckError(f"opset {opset} has no {node.op_type}")
    axes = node.attributes.get("axes")
    if axes is not None and not axes.value and node.op_type.startswith("Reduce"):
        del node.attributes["axes"]
    for name in [name for name in node.attributes if name not in signature.defaults]:
        # With axes there is nothing left that noop_with_empty_axes would say.
        if name == "noop_with_empty_axes" and (not node.attributes[name].value or "axes" in node.attributes):
            del node.attributes[name]
    _retype_constants(node, signature, types)
    types.infer(node, opset)
    types.check(node, signature)
    context = checker.C.CheckerContext()
    context.ir_version, context.opset_imports = onnx.IR_VERSION, {"": opset}
    try:
        checker.check_node(ir.to_proto(node), context)
    except checker.ValidationError as error:
        raise StuckError(str(error).strip().splitlines()[0]) from None


def _retype_constants(node: ir.Node, signature: Signature, types: Types) -> None:
    """Give float constants of the converter, which are float32 always, the type of what they are used with."""
    if not node.inputs or len(node.inputs) > signature.most_inputs:
        return
    first, wanted = signature.formal("inputs", 0), types.of(node.inputs[0])
    for position, value in enumerate(node.inputs[1:], 1):
        maker = None if value is None else value.producer()
        if value is None or maker is None or maker.op_type != "Constant" or types.of(value) != "tensor(float)":
            continue
        if wanted not in (None, "tensor(float)") and signature.formal("inputs", position).variable == first.variable:
            tensor = maker.attributes["value"].as_tensor()
            dtype = type_of(wanted).dtype
            maker.attributes["value"] = ir.AttrTensor("value", ir.tensor(tensor.numpy().astype(dtype.numpy())))
            value.type = ir.TensorType(dtype)
