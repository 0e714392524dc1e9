"""What every graph here is built with: the builder's type, casts, dimensions, names, and the clean-up.

A function of this package takes the builder as its first argument, `op`: that of an
``onnxscript.GraphBuilder`` or of ``onnxscript.build_function``, the one that an ``onnxscript.nn.Module`` is
handed, or an opset such as ``onnxscript.opset20`` inside a translation of torch.onnx. The nodes are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

import onnx
import onnx_ir as ir
from onnx_ir.passes import Sequential
from onnx_ir.passes import common as passes
from onnxscript import optimizer

from lucid_onnx._version import __version__

Builder: TypeAlias = Any
"""Any object whose attributes are the operators of ONNX, as functions of `Value` that return `Value`."""

Value: TypeAlias = ir.Value


def named(value: Value, name: str) -> Value:
    """`value`, called what it holds, so that a viewer shows it."""
    value.name = name
    return value


def scope(op: Builder, name: str) -> AbstractContextManager[None]:
    """A part of the graph that is called `name`, for builders that know parts: nodes in it are ``name/…``."""
    return _scope(op.builder, name) if hasattr(op, "builder") else nullcontext()


@contextmanager
def _scope(builder: Any, name: str) -> Iterator[None]:
    builder.push_module(name)
    try:
        yield
    finally:
        builder.pop_module()


def cast(op: Builder, value: Value, dtype: ir.DataType) -> Value:
    """`value` in `dtype`; itself where it has that dtype already."""
    return value if value.dtype == dtype else op.Cast(value, to=int(dtype))


def constant(op: Builder, number: float, dtype: ir.DataType) -> Value:
    """Scalar of `dtype`."""
    return op.Cast(number, to=int(dtype))


def dtype_of(value: Value, argument: str) -> ir.DataType:
    """Element type of a value, which must be known when the graph is built."""
    if value.dtype is None:
        raise TypeError(f"the dtype of {argument} must be known when the graph is built; {value.name!r} has none")
    return value.dtype


def rank_of(value: Value, argument: str) -> int:
    """Rank of a value, which must be known when the graph is built."""
    if value.shape is None:
        raise ValueError(f"the rank of {argument} must be known when the graph is built; {value.name!r} has no shape")
    return len(value.shape)


def compute_dtype(*dtypes: ir.DataType) -> ir.DataType:
    """Dtype of the arithmetic: the widest of `dtypes`, and at least float32."""
    return ir.DataType.DOUBLE if ir.DataType.DOUBLE in dtypes else ir.DataType.FLOAT


def dims(op: Builder, value: Value, start: int, end: int) -> Value:
    """Dimensions `start` to `end` of `value`, (end - start,) of int64."""
    return op.Shape(value, start=start, end=end)


def count(op: Builder, dimensions: Value) -> Value:
    """Product of some dimensions, (1,) of int64."""
    return op.ReduceProd(dimensions, keepdims=1)


def reshape(op: Builder, value: Value, *dimensions: Value | list[int]) -> Value:
    """`value` in the shape that the parts make together; a 0 in it is a 0."""
    shape = dimensions[0] if len(dimensions) == 1 else op.Concat(*dimensions, axis=0)
    return op.Reshape(value, shape, allowzero=1)


def clean(model: ir.Model) -> ir.Model:
    """`model`, in place: what is known is folded, what is the same is computed once, what is unused is gone."""
    optimizer.fold_constants(model, input_size_limit=1024, output_size_limit=1024)
    Sequential(
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.CommonSubexpressionEliminationPass(),
        passes.IdentityEliminationPass(),
        passes.RemoveUnusedNodesPass(),
        passes.ClearMetadataAndDocStringPass(),
        passes.NameFixPass(),
    )(model)
    return model


def new_model(graph: ir.Graph) -> ir.Model:
    """`graph` as a model of ours, of the oldest IR version that its opset goes with."""
    opsets = [onnx.helper.make_opsetid("", graph.opset_imports[""])]
    return ir.Model(
        graph,
        ir_version=max(8, onnx.helper.find_min_ir_version_for(opsets)),
        producer_name="lucid-onnx",
        producer_version=__version__,
    )


def as_function_call(model: ir.Model, domain: str) -> ir.Model:
    """A model of one node, which calls a model-local function that holds the graph of `model`."""
    body = model.graph
    inputs = [ir.Value(name=v.name, type=v.type, shape=v.shape) for v in body.inputs]
    outputs = [ir.Value(name=v.name, type=v.type, shape=v.shape) for v in body.outputs]
    constants = []
    for value in list(body.initializers.values()):
        del body.initializers[value.name]
        constants.append(ir.node("Constant", [], {"value": value.const_value}, outputs=[value]))
    if constants:
        body.insert_before(body[0], constants)
    function = ir.Function(domain, body.name or "", graph=body, attributes=[])
    call = ir.Node(domain, function.name, inputs, outputs=outputs, name=function.name)
    imports = {"": body.opset_imports[""], domain: 1}
    graph = ir.Graph(inputs, outputs, nodes=[call], opset_imports=imports, name=body.name)
    wrapped = new_model(graph)
    wrapped.functions[function.identifier()] = function
    return wrapped
