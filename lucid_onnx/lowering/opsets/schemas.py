"""Operators as the schemas of ONNX's default domain describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx
import onnx_ir as ir


@dataclass(frozen=True)
class Parameter:
    """A formal input or output of an operator."""

    name: str
    required: bool
    homogeneous: bool
    variable: str
    types: frozenset[str]


@dataclass(frozen=True)
class Signature:
    """What a schema says, read once."""

    operator: str
    since: int
    deprecated: bool
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    most_inputs: int
    most_outputs: int
    defaults: Mapping[str, object]
    required: frozenset[str]

    def formal(self, which: str, position: int) -> Parameter:
        """The parameter of an actual input or output; the last one, if it is variadic, has many."""
        parameters = self.inputs if which == "inputs" else self.outputs
        return parameters[min(position, len(parameters) - 1)]


@cache
def signature_of(operator: str, version: int) -> Signature | None:
    """The schema in force at a version of the default domain; None if there is none."""
    try:
        schema = onnx.defs.get_schema(operator, version)
    except onnx.defs.SchemaError:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single

    def parameters(formal: Iterable[onnx.defs.OpSchema.FormalParameter]) -> tuple[Parameter, ...]:
        return tuple(
            Parameter(
                p.name.removeprefix("input_"), p.option == single, p.is_homogeneous, p.type_str, frozenset(p.types)
            )
            for p in formal
        )

    return Signature(
        schema.name,
        schema.since_version,
        schema.deprecated,
        parameters(schema.inputs),
        parameters(schema.outputs),
        schema.max_input,
        schema.max_output,
        {name: _default(attribute) for name, attribute in schema.attributes.items()},
        frozenset(name for name, attribute in schema.attributes.items() if attribute.required),
    )


def _default(attribute: onnx.defs.OpSchema.Attribute) -> object:
    proto = attribute.default_value
    return ir.serde.deserialize_attribute(proto).value if proto.type else None


def present(values: Sequence[ir.Value | None]) -> tuple[ir.Value | None, ...]:
    """`values` without those at the end that are left out."""
    end = max((i for i, value in enumerate(values, 1) if value is not None and value.name != ""), default=0)
    return tuple(value if value is None or value.name != "" else None for value in values[:end])
