"""From the nodes of a graph to a model: outputs, clean-up, functions and the last check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from operator import index

import numpy as np
import onnx
import onnx_ir as ir
from onnx_ir.passes import Sequential
from onnx_ir.passes import common as passes
from onnxscript import GraphBuilder, nn, optimizer

from lucid_onnx._version import __version__
from lucid_onnx.operators.building import Builder, Value, cast
from lucid_onnx.operators.tensors import TensorSpec
from lucid_onnx.reference.schema import ArgumentError, DtypeError, UnsupportedError

DEFAULT_OPSET = 20
"""Opset of a model unless another is asked for: that in which GridSample became N-D and AffineGrid came."""

OLDEST_OPSET = 16
"""The first opset with GridSample, and with a ScatterElements that adds."""


def newest_opset() -> int:
    """The newest opset that the installed onnx has released; its schemas may already know the next."""
    return max(version for domain, version in onnx.helper.OP_SET_ID_VERSION_MAP if domain == "ai.onnx")


def check_opset(caller: str, opset: int) -> int:
    """`opset` as an int, if models can be built at it."""
    newest = newest_opset()
    try:
        version = index(opset)
    except TypeError:
        raise DtypeError(f"{caller}: opset must be an integer; got {opset!r}") from None
    if version < OLDEST_OPSET:
        raise UnsupportedError(f"{caller}: opset must be {OLDEST_OPSET} or newer; got {version}")
    if version > newest:
        raise UnsupportedError(
            f"{caller}: opset {version} is newer than the installed onnx {onnx.__version__} knows; "
            f"use {newest} or older, or upgrade onnx"
        )
    return version


def declare_outputs(
    op: Builder, graph: ir.Graph, results: Sequence[Value], outputs: Sequence[TensorSpec | str]
) -> None:
    """Make `results` the outputs of `graph`, with the names, dtypes and shapes of `outputs`.

    A string names an output whose dtype and shape are inferred.
    """
    for result, spec in zip(results, outputs, strict=True):
        if result.producer() is None or any(result is output for output in graph.outputs):
            # An input, a parameter or an earlier output has a name already.
            result = op.Identity(result)
        if isinstance(spec, str):
            result.name = spec
        else:
            result = cast(op, result, spec.dtype)
            result.name, result.shape = spec.name, ir.Shape(spec.shape)
        graph.outputs.append(result)


FOLDED = 1024
"""Elements up to which a tensor that is known is computed beforehand."""


def clean(model: ir.Model, largest: int = FOLDED) -> ir.Model:
    """`model`, in place: what is known is folded, what is the same is computed once, what is unused is gone.

    Parameters stay as they are and keep their names, as do outputs. Nothing of more than `largest` elements is
    computed beforehand.
    """
    names = [value.name for value in model.graph.outputs]
    # Before the folding, which takes values of one name for one value.
    passes.NameFixPass()(model)
    # What divides by a span of 0, or holds NaN, is folded as anything else.
    with np.errstate(all="ignore"):
        optimizer.fold_constants(
            model,
            onnx_shape_inference=True,
            input_size_limit=largest,
            output_size_limit=largest,
            should_fold=partial(_may_fold, largest=largest),
        )
    Sequential(
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.CommonSubexpressionEliminationPass(),
        passes.IdentityEliminationPass(),
        passes.RemoveUnusedNodesPass(),
        passes.ClearMetadataAndDocStringPass(),
    )(model)
    _restore_outputs(model.graph, names)
    passes.NameFixPass()(model)
    return model


def _restore_outputs(graph: ir.Graph, names: Sequence[str | None]) -> None:
    """Give outputs that have become one value, or an input, a value and a name of their own again."""
    for position, name in enumerate(names):
        value = graph.outputs[position]
        if value.is_graph_input() or value.is_initializer() or value in graph.outputs[:position] or value.name != name:
            copy = ir.Value(name=name, type=value.type, shape=value.shape)
            graph.append(ir.Node("", "Identity", [value], outputs=[copy]))
            graph.outputs[position] = copy


def _may_fold(node: ir.Node, largest: int) -> bool | None:
    """False for a node that reads a parameter or makes a large tensor; None (the folder decides) otherwise."""
    if any(isinstance(value, nn.Parameter) for value in node.inputs):
        return False
    shapes = [value.shape for value in node.outputs]
    if any(shape is None or not shape.is_static() or math.prod(shape.numpy()) > largest for shape in shapes):
        return False
    return None


def new_model(graph: ir.Graph) -> ir.Model:
    """`graph` as a model of ours, of the oldest IR version that its opset goes with."""
    opsets = [onnx.helper.make_opsetid("", graph.opset_imports[""])]
    return ir.Model(
        graph,
        ir_version=max(8, onnx.helper.find_min_ir_version_for(opsets)),
        producer_name="lucid-onnx",
        producer_version=__version__,
    )


def checked(model: ir.Model) -> onnx.ModelProto:
    """The protobuf of `model` with its shapes inferred, if it is valid."""
    tensors = [value.const_value for value in model.graph.initializers.values()]
    if sum(tensor.nbytes for tensor in tensors if tensor is not None) > onnx.checker.MAXIMUM_PROTOBUF:
        raise ArgumentError("the model is larger than the 2 GB that a protobuf holds")
    # Without data propagation, which computes the values of a Range of any size.
    passes.ShapeInferencePass(data_prop=False)(model)
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def to_function(graph: ir.Graph, domain: str, name: str) -> ir.Function:
    """`graph` as a model-local function; its initializers become constants, since a function has none."""
    constants = []
    for key, value in list(graph.initializers.items()):
        del graph.initializers[key]
        constants.append(ir.node("Constant", [], {"value": value.const_value}, outputs=[value]))
    if constants:
        graph.insert_before(graph[0], constants)
    return ir.Function(domain, name, graph=graph, attributes=[])


def call_function(builder: GraphBuilder, function: ir.Function, *inputs: Value) -> Value:
    """The one output of `function`, called on `inputs` by a node of its own."""
    result: Value = builder.call(function, *inputs)
    result.type = function.outputs[0].type
    return result


def calling_model(function: ir.Function) -> ir.Model:
    """A model of one node, which calls `function`."""
    inputs, outputs = (
        [ir.Value(name=value.name, type=value.type, shape=value.shape) for value in values]
        for values in (function.inputs, function.outputs)
    )
    call = ir.Node(function.domain, function.name, inputs, outputs=outputs, name=function.name)
    opsets = {**function.opset_imports, function.domain: 1}
    model = new_model(ir.Graph(inputs, outputs, nodes=[call], opset_imports=opsets, name=function.name))
    model.functions[function.identifier()] = function
    return model
