"""From an `onnxscript.nn` module to an ONNX model."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder, nn

from lucid_onnx.operators.building import checked, clean, declare_outputs, new_model
from lucid_onnx.operators.signature import Dimension, TensorSpec
from lucid_onnx.reference.schema import ArgumentError


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
    results = traced(op, *graph.inputs)
    results = list(results) if isinstance(results, Sequence) else [results]
    if output_specs is None:
        output_specs = ["Y"] if len(results) == 1 else [f"Y{k}" for k in range(len(results))]
    if len(results) != len(output_specs):
        raise ArgumentError(f"export: {name} returns {len(results)} outputs, but {len(output_specs)} are named")
    empty = [parameter for parameter, value in graph.initializers.items() if value.const_value is None]
    if empty:
        raise ArgumentError(f"export: {name} has parameters without values: {', '.join(empty)}")
    declare_outputs(op, graph, results, output_specs)
    return checked(clean(new_model(graph)))


def _signature(
    module: nn.Module, inputs: Mapping[str, Sequence[Dimension]] | None, outputs: Sequence[str] | None
) -> tuple[list[TensorSpec], list[TensorSpec | str] | None]:
    """What is given, and where nothing is, what the module says of itself."""
    if inputs is not None:
        specs = [TensorSpec(name, ir.DataType.FLOAT, tuple(shape)) for name, shape in inputs.items()]
        return specs, None if outputs is None else list(outputs)
    if not hasattr(module, "inputs") or not hasattr(module, "outputs"):
        raise ArgumentError(
            f"export: {type(module).__name__} does not say what its inputs are; "
            "name them with their shapes: inputs={'x': ('N', 3, 32, 32)}"
        )
    described = cast("Described", module)
    return described.inputs(), list(outputs or described.outputs())
