"""Indexing undone: gradients put, or added, where the values were read."""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.lowering.nodes import constant_of
from lucid_onnx.operators.accumulate import OLDEST_OPSET_OF_LAYERS, layers, scatter_add, scatter_cells
from lucid_onnx.operators.backward import FEW_CHANNELS
from lucid_onnx.operators.building import Builder, Value, cast, count, dims, ints, joined, known_ints, reshape


def integers(value: Value) -> list[int] | None:
    """The integers, of any dtype and number, that a value holds, if they are a constant."""
    tensor = constant_of(value)
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]


def size(op: Builder, value: Value, start: int, end: int) -> Value:
    """Number of elements in the dimensions `start` to `end` of `value`, (1,)."""
    return ints(op, [1]) if start == end else count(op, dims(op, value, start, end))


def counting(op: Builder, length: Value) -> Value:
    """0, 1, … to `length` (1,), without it."""
    result: Value = op.Range(0, op.Squeeze(length), 1)
    return result


def widen(call: Call, part: Value, begin: Value) -> Value:
    """Zeros of the shape of x, with `part` in them from `begin` (rank,) on."""
    op, outer, inner = call.op, call.shape(call.x), call.shape(part)
    known = [known for known in map(known_ints, (outer, inner, begin)) if known is not None]
    if len(known) == 3:
        after = ints(op, [all_of_it - own - first for all_of_it, own, first in zip(*known, strict=True)])
    else:
        after = op.Sub(op.Sub(outer, inner), begin)
    result: Value = op.Pad(part, joined(op, begin, after))
    return result


def place(call: Call, part: Value, index: Value, length: Value, axis: int, rank: int) -> Value:
    """`part` spread along `axis` to `length` (1,): its slices at `index` (P,), each another one, and zeros elsewhere.

    They are read, not written: a Gather moves whole rows, 10 times faster than ScatterElements; but not along the last
    axis, where a row is one number and ScatterElements takes half as long.
    """
    op = call.op
    if axis == rank - 1:
        outer = [dims(op, part, 0, axis)] if axis else []
        zeros = op.ConstantOfShape(joined(op, *outer, length), value=ir.tensor([0.0], dtype=call.dtype))
        return op.ScatterElements(zeros, op.Expand(index, op.Shape(part)), part, axis=axis)
    nowhere = op.Expand(ints(op, [-1]), length)
    source = op.ScatterElements(nowhere, index, counting(op, call.shape(index)), axis=0)
    # Row -1, the last, is zeros.
    extended = op.Pad(part, ints(op, [0] * (rank + axis) + [1] + [0] * (rank - axis - 1)))
    result: Value = op.Gather(extended, source, axis=axis)
    return result


def add_along(op: Builder, table: Value, index: Value, part: Value, axis: int, rank: int) -> Value:
    """`table` with the slices of `part` along `axis` added to those at `index` (P,), which may repeat."""
    column = reshape(op, index, [-1] + [1] * (rank - axis - 1))
    everywhere = op.Expand(column, op.Shape(part))
    result: Value = op.ScatterElements(table, everywhere, part, axis=axis, reduction="add")
    return result


def accumulate(call: Call, part: Value, index: Value, outer: Value, length: Value, inner: Value) -> Value:
    """Zeros of the shape of x, seen as (outer, length, inner), with `part` added at `index` (P,) of the middle axis.

    `part` has the elements of (outer, P, inner). Rows of a table are added whole. Otherwise, along the last axis
    onnxruntime adds twice as fast, and that is worth two transpositions, but not those of a table that may be much
    larger than `part`, as that of an embedding is.
    """
    op, count_of = call.op, call.shape(index)
    zeros, shape = call.zeros_like(call.x), call.shape(call.x)
    width = known_ints(inner)
    if known_ints(outer) == [1] and call.opset >= OLDEST_OPSET_OF_LAYERS and (width is None or width[0] > FEW_CHANNELS):
        index = cast(op, index, ir.DataType.INT64)
        index = op.Where(op.Less(index, 0), op.Add(index, length), index)
        rows, table = reshape(op, part, count_of, inner), reshape(op, zeros, length, inner)
        added = scatter_cells(op, table, rows, index, [ints(op, [0])], [None], layers(count_of, length))
        return reshape(op, added, shape)
    part = reshape(op, part, outer, count_of, inner)
    places, points = known_ints(length), known_ints(count_of)
    if width == [1] or (places is not None and (points is None or points < places)):
        table = add_along(op, reshape(op, zeros, outer, length, inner), index, part, axis=1, rank=3)
        return reshape(op, table, shape)
    lines = op.Mul(outer, inner)
    columns = reshape(op, op.Transpose(part, perm=[0, 2, 1]), lines, count_of)
    table = scatter_add(op, reshape(op, zeros, lines, length), index, columns)
    return reshape(op, op.Transpose(reshape(op, table, outer, inner, length), perm=[0, 2, 1]), shape)
