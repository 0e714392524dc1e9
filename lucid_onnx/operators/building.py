"""What every graph here is built with: the builder's type, casts, dimensions and names.

A function of this package takes the builder as its first argument, `op`: that of an
``onnxscript.GraphBuilder`` or of ``onnxscript.build_function``, the one that an ``onnxscript.nn.Module`` is
handed, or an opset such as ``onnxscript.opset20`` inside a translation of torch.onnx. The nodes are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TypeAlias

import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder, OpBuilder

from lucid_onnx.operators.naming import Taken
from lucid_onnx.reference.schema import ArgumentError, DtypeError, float_dtype

Value: TypeAlias = ir.Value


class Builder(Protocol):
    """Any object whose attributes are the operators of ONNX, as functions that return a `Value`."""

    def __getattr__(self, name: str, /) -> Callable[..., Value]: ...


class Drawing(GraphBuilder):
    """A builder whose callers name all attributes: it need not look up in the schema which they are.

    That is half of the time that a node takes.
    """

    def _partition_inputs_attributes(
        self, schema: onnx.defs.OpSchema | None, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        return args, kwargs


def named(value: Value, name: str) -> Value:
    """`value`, called what it holds, so that a viewer shows it; with a number where that name is taken."""
    node = value.producer()
    graph = None if node is None else node.graph
    if graph is None:
        return value
    if _NAMES not in graph.meta:
        graph.meta[_NAMES] = Taken(known.name for known in (*graph.inputs, *graph.initializers.values()))
    value.name = graph.meta[_NAMES].fresh(name)
    return value


_NAMES = "lucid_onnx names"
"""Under this key a graph remembers the names that were given."""


def typed(op: Builder, dtype: ir.DataType) -> Builder:
    """`op`, with Python's floats taken for constants of `dtype`.

    A builder that infers types does so itself; the recorder of torch.onnx knows no types of values in between,
    and takes every float for a float32.
    """
    if isinstance(op, OpBuilder):
        return op
    return _Typed(op, dtype)


class _Typed:
    """A builder whose floats have a dtype."""

    def __init__(self, op: Builder, dtype: ir.DataType) -> None:
        self._op, self._dtype = op, dtype

    @property
    def version(self) -> int:
        """Version of the operators."""
        return opset_of(self._op)

    def __getattr__(self, name: str, /) -> Callable[..., Value]:
        build: Callable[..., Value] = getattr(self._op, name)

        def call(*inputs: Value | float, **attributes: object) -> Value:
            return build(*(self._constant(x) if isinstance(x, float) else x for x in inputs), **attributes)

        return call

    def _constant(self, number: float) -> Value:
        value: Value = self._op.Constant(value=ir.tensor(number, dtype=self._dtype))
        return value


def opset_of(op: Builder) -> int:
    """Version of ONNX's operators that `op` builds."""
    version: object = getattr(op, "version", None)
    assert isinstance(version, int)
    return version


def scope(op: Builder, name: str) -> AbstractContextManager[None]:
    """A part of the graph that is called `name`, for builders that know parts: nodes in it are ``name/…``."""
    return _scope(op.builder, name) if isinstance(op, OpBuilder) else nullcontext()


@contextmanager
def _scope(builder: GraphBuilder, name: str) -> Iterator[None]:
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


def ints(op: Builder, values: Sequence[int]) -> Value:
    """Integers as a constant, for the inputs of which an operator takes any number: a list will not do there."""
    numbers = tuple(values)
    if not isinstance(op, OpBuilder):
        return op.Constant(value=ir.tensor(numbers, dtype=ir.DataType.INT64))
    graph = op.builder.root.graph
    known: dict[tuple[int, ...], Value] = graph.meta.setdefault(_CONSTANTS, {})
    if numbers not in known:
        # An initializer, which is made 10 times as fast as a node, and once.
        tensor = ir.tensor(numbers, dtype=ir.DataType.INT64)
        known[numbers] = op.builder.initializer(tensor, f"integers_{len(known)}", qualify=False)
    return known[numbers]


_CONSTANTS = "lucid_onnx constants"
"""Under this key a graph remembers its constants of integers."""


def dtype_of(value: Value, argument: str) -> ir.DataType:
    """Element type of a value, which must be known when the graph is built."""
    if value.dtype is None:
        raise DtypeError(f"the dtype of {argument} must be known when the graph is built; {value.name!r} has none")
    return value.dtype


def float_dtype_of(value: Value, operator: str, argument: str) -> ir.DataType:
    """`dtype_of`, if it is one of the floating dtypes that an image, a grid or a theta may have."""
    dtype = dtype_of(value, argument)
    float_dtype(dtype.numpy(), operator, argument)
    return dtype


def known_shape(value: Value, argument: str) -> list[int | None]:
    """Shape of a value whose rank must be known when the graph is built; None where a dimension is symbolic."""
    if value.shape is None:
        raise ArgumentError(
            f"the rank of {argument} must be known when the graph is built; {value.name!r} has no shape"
        )
    return [dimension if isinstance(dimension, int) else None for dimension in value.shape]


def compute_dtype(*dtypes: ir.DataType) -> ir.DataType:
    """Dtype of the arithmetic: the widest of `dtypes`, and at least float32."""
    return ir.DataType.DOUBLE if ir.DataType.DOUBLE in dtypes else ir.DataType.FLOAT


def known_ints(value: Value) -> list[int] | None:
    """The integers that a value holds, if they are a constant; what is known here need not be folded later."""
    tensor = None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
    if tensor is None or tensor.dtype != ir.DataType.INT64 or len(tensor.shape) != 1:
        return None
    return [int(number) for number in tensor.numpy()]


def dims(op: Builder, value: Value, start: int, end: int) -> Value:
    """Dimensions `start` to `end` of `value`, (end - start,) of int64."""
    known = [] if value.shape is None else list(value.shape)[start:end]
    if known and all(isinstance(dimension, int) for dimension in known):
        return ints(op, [int(dimension) for dimension in known if isinstance(dimension, int)])
    return op.Shape(value, start=start, end=end)


def count(op: Builder, dimensions: Value) -> Value:
    """Product of some dimensions, (1,) of int64."""
    known = known_ints(dimensions)
    return op.ReduceProd(dimensions, keepdims=1) if known is None else ints(op, [math.prod(known)])


def joined(op: Builder, *parts: Value | Sequence[int]) -> Value:
    """Integers one after the other, (K,); a constant where all are known."""
    known = [known_ints(part) if isinstance(part, ir.Value) else list(part) for part in parts]
    if None not in known:
        return ints(op, [number for part in known if part is not None for number in part])
    values = [part if isinstance(part, ir.Value) else ints(op, part) for part in parts if part != []]
    return values[0] if len(values) == 1 else op.Concat(*values, axis=0)


def reshape(op: Builder, value: Value, *dimensions: Value | list[int]) -> Value:
    """`value` in the shape that the parts make together; a 0 in it is a 0."""
    return op.Reshape(value, joined(op, *dimensions), allowzero=1)
