"""Shapes in gradients, known as far as the primal knows them and computed at run time otherwise; and reductions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import onnx_ir as ir

from lucid_onnx.operators.building import Builder, Value, dims, ints, opset_of

Axes: TypeAlias = Sequence[int] | Value | None
"""Axes by number, as a value (K,) of int64, or all of them."""


def shape_of(op: Builder, value: Value) -> Value:
    """Shape of a value, (rank,) of int64; a constant where it is known."""
    if value.shape is None:
        shape: Value = op.Shape(value)
        return shape
    return dims(op, value, 0, len(value.shape)) if len(value.shape) else ints(op, [])


def zeros_like(op: Builder, value: Value, dtype: ir.DataType) -> Value:
    """Zeros of the shape of a value."""
    zeros: Value = op.ConstantOfShape(shape_of(op, value), value=ir.tensor([0.0], dtype=dtype))
    return zeros


def reduce(op: Builder, op_type: str, value: Value, axes: Axes, keepdims: bool = True) -> Value:
    """A reduction, with the axes where the opset wants them; over none where there are none, over all for None."""
    keep = int(keepdims)
    result: Value
    if axes is None:
        result = getattr(op, op_type)(value, keepdims=keep)
    elif op_type == "ReduceSum" or opset_of(op) >= 18:
        given = axes if isinstance(axes, ir.Value) else ints(op, axes)
        result = getattr(op, op_type)(value, given, keepdims=keep, noop_with_empty_axes=1)
    elif isinstance(axes, ir.Value):
        raise AssertionError(f"before opset 18 the axes of {op_type} are an attribute")
    else:
        result = getattr(op, op_type)(value, axes=list(axes), keepdims=keep) if axes else value
    return result
