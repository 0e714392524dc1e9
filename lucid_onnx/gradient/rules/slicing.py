"""Parts cut out, put together, and margins."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.placing import add_along, counting, integers, place, widen
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Builder, Value, cast, dims, ints, joined, known_ints, reshape

_END = 2**63 - 1


@rule("Slice")
def sliced(call: Call, g: Value) -> Gradients:
    """Slices y = x[start:end:step], …, so that dx[start:end:step] = g, and zeros elsewhere."""
    op, x = call.op, call.x
    starts, ends = (cast(op, call.input(k), ir.DataType.INT64) for k in (1, 2))
    steps = call.optional(4)
    if steps is None or _are_all(steps, 1):
        return widen(call, g, _begin(call, starts))
    axes, steps = _axes(call, starts), cast(op, steps, ir.DataType.INT64)
    if axes is None:
        raise call.unsupported(
            "its axes are computed at run time and its steps are not known to be 1", "make them constant"
        )
    for k, axis in enumerate(axes):
        length = dims(op, x, axis, axis + 1)
        start, end, step = (op.Slice(values, ints(op, [k]), ints(op, [k + 1])) for values in (starts, ends, steps))
        index = op.Slice(counting(op, length), start, end, ints(op, [0]), step)
        g = place(call, g, index, length, axis, call.rank(x))
    return g


def _are_all(values: Value, number: int) -> bool:
    """Whether it is known that all of some integers are `number`."""
    known = integers(values)
    return known is not None and all(value == number for value in known)


def _axes(call: Call, starts: Value) -> list[int] | None:
    """Axes that are sliced, counted from the first; None where they are computed at run time."""
    axes, rank = call.optional(3), call.rank(call.x)
    if axes is not None:
        known = integers(axes)
        return None if known is None else [axis % rank for axis in known]
    return None if starts.shape is None or not isinstance(starts.shape[0], int) else list(range(starts.shape[0]))


def _begin(call: Call, starts: Value) -> Value:
    """Where a slice of step 1 begins in x, (rank,)."""
    op, shape = call.op, call.shape(call.x)
    known, lengths = known_ints(starts), known_ints(shape)
    axes = _axes(call, starts)
    if known is not None and lengths is not None and axes is not None:
        begin = [0] * len(lengths)
        for axis, start in zip(axes, known, strict=True):
            begin[axis] = slice(start, None).indices(lengths[axis])[0]
        return ints(op, begin)
    given = call.optional(3)
    where = counting(op, op.Shape(starts)) if given is None else given
    ends = op.Gather(shape, where)
    from_first = op.Where(op.Less(starts, 0), op.Add(starts, ends), starts)
    inside = op.Min(op.Max(from_first, 0), ends)
    result: Value = op.ScatterElements(op.Sub(shape, shape), where, inside, axis=0)
    return result


@rule("Concat")
def concat(call: Call, g: Value) -> Gradients:
    """Inputs x_1, x_2, … side by side, so that dx_k is the part of g at the place of x_k."""
    op, count = call.op, len(call.inputs)
    if count == 1:
        return g
    axis = call.axis(call.y)
    lengths = [dims(op, call.input(k), axis, axis + 1) for k in range(count)]
    parts: Any = op.Split(g, joined(op, *lengths), axis=axis, _outputs=count)
    return list(parts)


@rule("Split")
def split(call: Call, g: Value) -> Gradients:
    """Parts of x, so that dx is their gradients side by side; that of a part that nothing needs is zeros."""
    parts = []
    for part, grad in zip(call.outputs, call.grads, strict=True):
        if part is None:
            raise call.unsupported("one of its outputs is left out", "give it a name")
        parts.append(call.zeros_like(part) if grad is None else grad)
    return parts[0] if len(parts) == 1 else call.op.Concat(*parts, axis=call.attribute("axis", 0))


@rule("Pad")
def pad(call: Call, g: Value) -> Gradients:
    """A margin around x, or less of x where a pad is negative: dx is what of g lies over x, and zeros elsewhere.

    A constant margin hands its part of g to the constant, any other to the elements of x that it repeats.
    """
    if call.attribute("mode", "constant") != "constant":
        return _fold_margins(call, g)
    op, pads, axes, value = call.op, call.input(1), call.optional(3), call.optional(2)
    # Before opset 18 there is no place for axes.
    given = [] if axes is None else [None, axes]
    inner = op.Pad(g, _negative(call, pads), *given)
    if value is None or not call.wants(2):
        return inner
    inside = op.ConstantOfShape(call.shape(call.x), value=ir.tensor([True]))
    outer = op.Where(op.Pad(inside, pads, *given), 0.0, g)
    return inner, None, reshape(op, call.sum(outer, None, keepdims=False), call.shape(value))


def _negative(call: Call, pads: Value) -> Value:
    known = known_ints(pads)
    result: Value = call.op.Neg(pads) if known is None else ints(call.op, [-pad for pad in known])
    return result


def _fold_margins(call: Call, g: Value) -> Value:
    """The gradient of a Pad whose margins repeat x: they are added where they come from, one axis after the other."""
    op, pads, given, rank = call.op, call.input(1), call.optional(3), call.rank(call.x)
    axes = list(range(rank)) if given is None else integers(given)
    if axes is None:
        raise call.unsupported("its axes are computed at run time", "make them constant")
    known = known_ints(pads)
    for k, axis in enumerate(axes):
        ends = [k, k + len(axes)]
        if known is None:
            margins = op.Gather(pads, ints(op, ends))
        elif known[ends[0]] == known[ends[1]] == 0:
            continue
        else:
            margins = ints(op, [known[end] for end in ends])
        g = _fold(call, g, axis % rank, margins)
    return g


def _fold(call: Call, g: Value, axis: int, margins: Value) -> Value:
    """`g` with its two `margins` (2,) along `axis` added where they come from, which is found by padding numbers."""
    op, rank = call.op, call.rank(call.x)
    source = op.Pad(counting(op, dims(op, call.x, axis, axis + 1)), margins, mode=call.attribute("mode"))
    before, after = (op.Max(op.Gather(margins, ints(op, [end])), 0) for end in (0, 1))
    last = op.Sub(op.Shape(source), after)
    places, parts = (_outside(op, value, before, last, along) for value, along in ((source, 0), (g, axis)))
    back = op.ScatterElements(ints(op, [0] * 2 * rank), ints(op, [axis, rank + axis]), _negative(call, margins), axis=0)
    return add_along(op, op.Pad(g, back), places, parts, axis, rank)


def _outside(op: Builder, value: Value, first: Value, last: Value, axis: int) -> Value:
    """What of `value` lies before `first` (1,) and from `last` (1,) on along `axis`, side by side."""
    where = ints(op, [axis])
    before, after = op.Slice(value, ints(op, [0]), first, where), op.Slice(value, last, ints(op, [_END]), where)
    result: Value = op.Concat(before, after, axis=axis)
    return result


@rule("CenterCropPad")
def center_crop_pad(call: Call, g: Value) -> Gradients:
    """A cut, or zeros, alike on both sides, so that dx is g with zeros where x was cut, and cut where it was padded."""
    op, axes, shape = call.op, call.attribute("axes"), call.shape(call.x)
    if axes is None:
        return op.CenterCropPad(g, shape)
    return op.CenterCropPad(g, op.Gather(shape, ints(op, axes)), axes=axes)
