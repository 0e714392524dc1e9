"""Resize.

It is linear in its input and does one axis after the other, y = A x along each, so that dx = Aᵀ g. What A holds is
asked of Resize itself, which resizes small probes of each axis: so it holds for each of its modes as the runtime at
hand understands them, down to how that rounds a point between two pixels. Where the lengths are constants, so is all of
this, and a runtime folds it when it loads the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.gradient.rules.resize_facts import Axis, blocks, given, is_crop, keeps_aspect_ratio, resized_axes
from lucid_onnx.gradient.rules.resize_probe import Probe, mode, probe, up_to
from lucid_onnx.operators.building import Value, cast, dims, ints, reshape


@rule("Resize")
def resize(call: Call, g: Value) -> Gradients:
    """Y = A X along each axis, so that dX = Aᵀ g along each: every pixel gathers from the outputs that read it."""
    repeated = blocks(call)
    if repeated is not None:
        return _sum_of_blocks(call, g, repeated)
    if is_crop(call) and call.attribute("antialias", 0) and (given(call, 2) is not None or keeps_aspect_ratio(call)):
        # There onnxruntime copies an axis whose length stays the same, and reads other pixels than the region says.
        what = "antialias of a region of interest that is not stretched to sizes is not differentiated"
        raise call.unsupported(what, "give sizes, with keep_aspect_ratio_policy stretch")
    for axis in resized_axes(call):
        g = _gathered(call, g, axis)
    return g


def _sum_of_blocks(call: Call, g: Value, repeated: dict[int, int]) -> Value:
    """The gradient where each pixel is repeated, `repeated` times along an axis."""
    parts: list[Value | list[int]] = []
    summed = []
    for number in range(call.rank(call.x)):
        parts.append(dims(call.op, call.x, number, number + 1))
        if number in repeated:
            summed.append(len(parts))
            parts.append([repeated[number]])
    return call.sum(reshape(call.op, g, *parts), summed, keepdims=False) if summed else g


def _gathered(call: Call, g: Value, axis: Axis) -> Value:
    """Aᵀ g along an axis."""
    last = call.rank(call.x) - 1
    if axis.number < last or last == 0:
        return _gathered_rows(call, g, axis, axis.number)
    # A runtime gathers the numbers of the last axis one by one, those of another in whole rows: ten times as fast.
    rows = _gathered_rows(call, call.op.Transpose(g, perm=[last, *range(last)]), axis, 0)
    return call.op.Transpose(rows, perm=[*range(1, last + 1), 0])


def _gathered_rows(call: Call, g: Value, axis: Axis, place: int) -> Value:
    """Aᵀ g along an axis that is at `place` of `g`."""
    op, reads = call.op, _reads(call, axis)
    inner = ints(op, list(range(place - call.rank(call.x) + 1, 0)))
    terms = op.Mul(op.Gather(g, reads.outputs, axis=place), op.Unsqueeze(reads.weights, inner))
    total = call.sum(terms, [place], keepdims=False)
    # A pixel that nothing reads has gathered 0 times a number that is not its own, and which may be infinite.
    return op.Where(op.Unsqueeze(reads.some, inner), total, call.number(0.0))


@dataclass(frozen=True)
class _Reads:
    """What reads the I pixels of an axis, each at most K times.

    Parameters
    ----------
    outputs : Value
        (K, I) of int64: which outputs. A pixel that has fewer names one of them again.
    weights : Value
        (K, I): their weights; 0 for those that are named again.
    some : Value
        (I,) of bool: whether there are any.
    """

    outputs: Value
    weights: Value
    some: Value


def _reads(call: Call, axis: Axis) -> _Reads:
    """What reads the pixels of an axis.

    An output reads no more than a window of pixels about its base. In a comb whose teeth are as far apart as the
    window is long, it meets one tooth, and what it makes of the comb is the weight of that pixel.
    """
    op, source = call.op, probe(call, axis)
    before, after = _window(call, source)
    period = op.Add(op.Add(before, after), ints(op, [1]))
    pixels = up_to(call, source.size)
    phases = op.Mod(pixels, period)
    combs = op.Equal(op.Unsqueeze(up_to(call, period), ints(op, [1])), phases)
    weights = op.Transpose(source.weights(cast(op, combs, call.dtype)), perm=[1, 0])
    outputs, inside = _windows_over(call, source, op.Sub(pixels, after), op.Add(pixels, before))
    found = op.Gather(op.Reshape(weights, ints(op, [-1])), op.Add(op.Mul(outputs, period), phases))
    return _without_zeros(call, outputs, op.Where(inside, found, call.number(0.0)), source.size)


def _window(call: Call, source: Probe) -> tuple[Value, Value]:
    """How many pixels an output may read before its base, and after it, each (1,) of int64."""
    op = call.op
    if mode(call) == "nearest":
        return ints(op, [0]), ints(op, [0])
    radius = 2 if mode(call) == "cubic" else 1
    if not call.attribute("antialias", 0):
        return ints(op, [radius - 1]), ints(op, [radius])
    # Where an axis is made shorter, the filter is stretched over all that an output stands for.
    stretched = op.Ceil(op.Div(call.number(radius), op.Min(source.scale, call.number(1.0))))
    after = cast(op, stretched, ir.DataType.INT64)
    return op.Sub(after, ints(op, [1])), after


def _windows_over(call: Call, source: Probe, lowest: Value, highest: Value) -> tuple[Value, Value]:
    """The outputs whose base is from `lowest` to `highest`, (I,) each: (K, I), and which of them there are."""
    op, bases = call.op, source.bases()
    ends = op.Add(source.size, ints(op, [1]))
    # How many bases are less than a pixel, for each pixel and for the length.
    found = op.ScatterElements(
        op.Expand(ints(op, [0]), ends),
        op.Add(bases, ints(op, [1])),
        op.Expand(ints(op, [1]), op.Shape(bases)),
        reduction="add",
    )
    below = op.CumSum(found, op.Constant(value_int=0))
    first = op.Gather(below, op.Max(lowest, ints(op, [0])))
    last = op.Gather(below, op.Min(op.Add(highest, ints(op, [1])), source.size))
    most = call.reduce("ReduceMax", op.Concat(ints(op, [0]), op.Sub(last, first), axis=0), None)
    places = op.Add(first, op.Unsqueeze(up_to(call, most), ints(op, [1])))
    inside = op.Less(places, last)
    outputs = op.Where(inside, places, ints(op, [0]))
    if is_crop(call):
        # Elsewhere the bases never fall; here they do where a region is turned round, or an output lies outside.
        ordered: Any = op.TopK(bases, op.Shape(bases), largest=0, _outputs=2)
        outputs = op.Gather(ordered[1], outputs)
    return outputs, inside


def _without_zeros(call: Call, outputs: Value, weights: Value, size: Value) -> _Reads:
    """What reads the pixels, without those whose weight is 0: what is in them must not come through."""
    op, no = call.op, ints(call.op, [-1])
    is_zero = op.Equal(weights, call.number(0.0))
    none = op.Expand(no, op.Concat(ints(op, [1]), size, axis=0))
    named = op.Concat(none, op.Where(is_zero, no, outputs), axis=0)
    one = call.reduce("ReduceMax", named, [0], keepdims=False)
    return _Reads(op.Where(is_zero, op.Max(one, ints(op, [0])), outputs), weights, op.Greater(one, no))
