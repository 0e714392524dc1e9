"""From an `onnxscript.nn` module to an ONNX model."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, cast

import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder, OpBuilder, nn

from lucid_onnx.operators.finishing import checked, clean, declare_outputs, new_model
from lucid_onnx.operators.tensors import Dimension, TensorSpec, dimensions
from lucid_onnx.reference.schema import ArgumentError, DtypeError


class Described(Protocol):
    """A module that says what goes in and comes out, as those of the zoo do."""

    def inputs(self) -> list[TensorSpec]: ...

    def outputs(self) -> list[TensorSpec]: ...


def module_to_model(
    module: nn.Module,
    opset: int,
    inputs: Mapping[str, Sequence[Dimension]] | None = None,
    outputs: Sequence[str] | None = None,
) -> onnx.ModelProto:
    """Trace a module into a model.

    Parameters
    ----------
    module : onnxscript.nn.Module
        Stays as it is, and can be traced again.
    opset : int
        Opset of the model.
    inputs : mapping of str to sequence, optional
        Names and shapes of the float32 inputs of ``forward``, in its order. Modules of the zoo know theirs.
    outputs : sequence of str, optional
        Names of the outputs.

    Raises
    ------
    ArgumentError
        The inputs are neither given nor known, or the outputs are not as many as named.
    """
    input_specs, output_specs = _signature(module, inputs, outputs)
    # A parameter belongs to the graph it was traced into.
    traced = copy.deepcopy(module)
    name = type(module).__name__
    graph = ir.Graph([spec.value() for spec in input_specs], [], nodes=[], opset_imports={"": opset}, name=name)
    op = GraphBuilder(graph).op
    results = _as_list(_traced(traced, op, graph), name)
    if output_specs is None:
        output_specs = ["Y"] if len(results) == 1 else [f"Y{k}" for k in range(len(results))]
    if len(results) != len(output_specs):
        raise ArgumentError(f"export: {name} returns {len(results)} outputs, but {len(output_specs)} are named")
    _check_names(graph, output_specs)
    declare_outputs(op, graph, results, output_specs)
    return checked(clean(new_model(graph)))


def _traced(module: nn.Module, op: OpBuilder, graph: ir.Graph) -> object:
    """What ``forward`` returns for the inputs of `graph`."""
    try:
        inspect.signature(module.forward).bind(op, *graph.inputs)
    except TypeError as error:
        given = ", ".join(value.name or "" for value in graph.inputs)
        raise ArgumentError(f"export: {type(module).__name__}.forward does not take op, {given}: {error}") from None
    result: object = module(op, *graph.inputs)
    return result


def _as_list(results: object, name: str) -> list[ir.Value]:
    values = list(results) if isinstance(results, list | tuple) else [results]
    if not values or not all(isinstance(value, ir.Value) for value in values):
        kinds = ", ".join(type(value).__name__ for value in values) or "nothing"
        raise DtypeError(f"export: {name}.forward must return a value or several; got {kinds}")
    return cast("list[ir.Value]", values)


def _check_names(graph: ir.Graph, outputs: Sequence[TensorSpec | str]) -> None:
    """Raise unless parameters have values, and inputs, parameters and outputs have names of their own."""
    empty = [parameter for parameter, value in graph.initializers.items() if value.const_value is None]
    if empty:
        raise ArgumentError(f"export: {graph.name} has parameters without values: {', '.join(empty)}")
    names = [value.name or "" for value in graph.inputs]
    names += [name for name, value in graph.initializers.items() if isinstance(value, nn.Parameter)]
    names += [spec if isinstance(spec, str) else spec.name for spec in outputs]
    doubled = sorted({name for name in names if names.count(name) > 1 or not name})
    if doubled:
        raise ArgumentError(
            f"export: inputs, parameters and outputs need names of their own; got {', '.join(map(repr, doubled))} "
            "more than once or empty"
        )


def _signature(
    module: nn.Module, inputs: Mapping[str, Sequence[Dimension]] | None, outputs: Sequence[str] | None
) -> tuple[list[TensorSpec], list[TensorSpec | str] | None]:
    """What is given, and where nothing is, what the module says of itself."""
    if inputs is not None and not isinstance(inputs, Mapping):
        raise DtypeError(f"export: inputs must be a mapping of names to shapes; got {type(inputs).__name__}")
    if not all(isinstance(name, str) for name in (*(inputs or ()), *(outputs or ()))):
        raise DtypeError("export: names of inputs and outputs are strings")
    if inputs is not None:
        specs = [TensorSpec(n, ir.DataType.FLOAT, dimensions("export", n, shape)) for n, shape in inputs.items()]
        return specs, None if outputs is None else list(outputs)
    if not hasattr(module, "inputs") or not hasattr(module, "outputs"):
        raise ArgumentError(
            f"export: {type(module).__name__} does not say what its inputs are; "
            "name them with their shapes: inputs={'x': ('N', 3, 32, 32)}"
        )
    described = cast("Described", module)
    specs = described.outputs()
    if outputs is None:
        return described.inputs(), list(specs)
    if len(outputs) != len(specs):
        raise ArgumentError(
            f"export: {type(module).__name__} returns {len(specs)} outputs, but {len(outputs)} are named"
        )
    return described.inputs(), [replace(spec, name=name) for spec, name in zip(specs, outputs, strict=True)]
