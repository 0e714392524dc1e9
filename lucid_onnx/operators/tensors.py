"""Names, dtypes and shapes of the inputs and outputs of a model, and how given shapes fill them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TypeAlias

import onnx_ir as ir

from lucid_onnx.reference.schema import ArgumentError

Dimension: TypeAlias = int | str | None
"""A known size, the name of a symbolic one, or a symbolic one without a name."""


@dataclass(frozen=True)
class TensorSpec:
    """Name, element type and shape of an input or output."""

    name: str
    dtype: ir.DataType
    shape: tuple[Dimension, ...]

    def value(self) -> ir.Value:
        """A fresh value of this name, type and shape."""
        return ir.Value(name=self.name, type=ir.TensorType(self.dtype), shape=ir.Shape(self.shape))


def resolve_shapes(
    caller: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], shapes: Mapping[str, Sequence[Dimension]]
) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Signature with the symbolic dimensions of its inputs replaced by those of `shapes`.

    A symbol stands for one dimension wherever it occurs: with a batch of 1 in one input, all have it.

    Raises
    ------
    ArgumentError
        An unknown input, a shape of another rank, a dimension that is no size, or two sizes for one symbol.

    Examples
    --------
    >>> theta = TensorSpec("theta", ir.DataType.FLOAT, ("N", 2, 3))
    >>> grid = TensorSpec("grid", ir.DataType.FLOAT, ("N", "H", "W", 2))
    >>> resolve_shapes("doc", [theta], [grid], {"theta": (7, 2, 3)})[1][0].shape
    (7, 'H', 'W', 2)
    """
    names = [spec.name for spec in inputs]
    for name in shapes:
        if name not in names:
            raise ArgumentError(f"{caller}: shapes names {name!r}; the inputs are {', '.join(names)}")
    bound: dict[str, Dimension] = {}
    for spec in inputs:
        if spec.name in shapes:
            _bind(caller, bound, spec, dimensions(caller, spec.name, shapes[spec.name]))
    return [_filled(spec, bound) for spec in inputs], [_filled(spec, bound) for spec in outputs]


def dimensions(caller: str, name: str, given: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """`given` as a tuple, if it is a shape."""
    try:
        shape = tuple(d if d is None or isinstance(d, str) else index(d) for d in given)
    except TypeError:
        shape = (-1,)
    if any(isinstance(dimension, int) and not 0 <= dimension < 2**63 for dimension in shape):
        raise ArgumentError(f"{caller}: the shape of {name} must hold integers from 0 up, names or None; got {given!r}")
    return shape


def _bind(caller: str, bound: dict[str, Dimension], spec: TensorSpec, given: tuple[Dimension, ...]) -> None:
    """Note in `bound` what `given` says of the symbols in the shape of `spec`."""
    if len(given) != len(spec.shape):
        raise ArgumentError(f"{caller}: {spec.name} must be {spec.shape}; got {given}")
    for expected, dimension in zip(spec.shape, given, strict=True):
        if isinstance(expected, int):
            if isinstance(dimension, int) and dimension != expected:
                raise ArgumentError(f"{caller}: {spec.name} must be {spec.shape}; got {given}")
            continue
        assert expected is not None
        known = bound.get(expected)
        if isinstance(known, int) and isinstance(dimension, int) and known != dimension:
            raise ArgumentError(
                f"{caller}: {expected} is {dimension} in {spec.name} {given}, but {known} in another input"
            )
        if not isinstance(known, int):
            bound[expected] = dimension


def _filled(spec: TensorSpec, bound: Mapping[str, Dimension]) -> TensorSpec:
    return replace(spec, shape=tuple(bound.get(d, d) if isinstance(d, str) else d for d in spec.shape))
