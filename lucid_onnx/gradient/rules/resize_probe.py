"""Probes of a Resize: what it makes of lines that are laid along one of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.rules.resize_facts import Axis, axes_of, entry_number, given, is_crop, keeps_aspect_ratio
from lucid_onnx.operators.building import Value, cast, dims, ints

_WHERE = ("coordinate_transformation_mode", "keep_aspect_ratio_policy")
_WEIGHTS = ("mode", "nearest_mode", "antialias", "cubic_coeff_a", "exclude_outside")


@dataclass(frozen=True)
class Probe:
    """A Resize like that of the call, of (P, 1, I, W): P lines of the length I of an axis, each beside itself W times.

    The last axis stands for all the others. A runtime may copy where no length changes, whatever the scales: so the
    last axis is made longer where a length of the call changes. And where the aspect ratio is kept, the last axis is
    the one that decides on the scale.

    Parameters
    ----------
    call : Call
        The Resize.
    size : Value
        (1,) of int64: I.
    scale : Value
        (1,): by which the axis is resized.
    roi, scales, sizes : Value, optional
        Inputs of the probe; `sizes` holds those of the last two axes.
    width : Value, optional
        (1,) of int64: W where the aspect ratio is kept, otherwise 1.
    """

    call: Call
    size: Value
    scale: Value
    roi: Value | None = None
    scales: Value | None = None
    sizes: Value | None = None
    width: Value | None = None

    def weights(self, lines: Value) -> Value:
        """Lines (P, I), resized to (P, O); 0 for the outputs that read no pixel."""
        return self._resize(lines, _chosen(self.call, *_WHERE, *_WEIGHTS))

    def bases(self) -> Value:
        """(O,) of int64: the pixel at or before the point that an output reads, or -1 where it reads no pixel.

        Of mode nearest it is the pixel that is read.
        """
        op = self.call.op
        is_nearest = mode(self.call) == "nearest"
        rounding = _chosen(self.call, "nearest_mode") if is_nearest else {"nearest_mode": "floor"}
        attributes = {**_chosen(self.call, *_WHERE), **rounding, "mode": "nearest", "extrapolation_value": -1.0}
        ramp = op.Unsqueeze(cast(op, up_to(self.call, self.size), self.call.dtype), ints(op, [0]))
        return cast(op, op.Squeeze(self._resize(ramp, attributes), ints(op, [0])), ir.DataType.INT64)

    def _resize(self, lines: Value, attributes: Mapping[str, Any]) -> Value:
        op, sizes, axes = self.call.op, self.sizes, {}
        lines = op.Unsqueeze(lines, ints(op, [1, 3]))
        if self.width is not None:
            lines, axes = op.Expand(lines, op.Concat(ints(op, [1, 1, 1]), self.width, axis=0)), {"axes": [2, 3]}
        elif sizes is not None:
            sizes = op.Concat(op.Shape(lines, start=0, end=2), sizes, axis=0)
        resized = op.Resize(lines, self.roi, self.scales, sizes, **attributes, **axes)
        return op.Squeeze(op.Slice(resized, ints(op, [0]), ints(op, [1]), ints(op, [3])), ints(op, [1, 3]))


def probe(call: Call, axis: Axis) -> Probe:
    """The probe of an axis."""
    op, scales, one = call.op, given(call, 2), ints(call.op, [1])
    size, roi = dims(op, call.x, axis.number, axis.number + 1), _roi(call, axis)
    if keeps_aspect_ratio(call):
        return _probe_of_kept_ratio(call, axis, size, roi)
    if scales is not None:
        scale = _entry(call, scales, axis.entry)
        ones, last = op.Constant(value_floats=[1.0, 1.0]), cast(op, _last_length(call), ir.DataType.FLOAT)
        return Probe(call, size, cast(op, scale, call.dtype), roi, op.Concat(ones, scale, last, axis=0))
    length = dims(op, call.y, axis.number, axis.number + 1)
    # Of an empty axis the scale does not matter, but it must be a number.
    scale = op.Div(cast(op, op.Max(length, one), call.dtype), cast(op, op.Max(size, one), call.dtype))
    return Probe(call, size, scale, roi, sizes=op.Concat(length, _last_length(call), axis=0))


def mode(call: Call) -> str:
    """Mode of the Resize."""
    return str(call.attribute("mode", "nearest"))


def up_to(call: Call, length: Value) -> Value:
    """0, 1, … up to a length (1,), of int64."""
    zero, one = (call.op.Constant(value_int=number) for number in (0, 1))
    result: Value = call.op.Range(zero, call.op.Squeeze(length, ints(call.op, [0])), one)
    return result


def _probe_of_kept_ratio(call: Call, axis: Axis, size: Value, roi: Value | None) -> Probe:
    op, sizes = call.op, call.input(3)
    lengths = op.Gather(call.shape(call.x), ints(op, [axis.number for axis in axes_of(call)]))
    scales = op.Div(cast(op, sizes, call.dtype), cast(op, lengths, call.dtype))
    is_smallest = call.attribute("keep_aspect_ratio_policy") == "not_larger"
    deciding = (op.ArgMin if is_smallest else op.ArgMax)(scales, axis=0, keepdims=1)
    wanted = op.Gather(sizes, op.Concat(ints(op, [axis.entry]), deciding, axis=0))
    return Probe(call, size, op.Gather(scales, deciding), roi, sizes=wanted, width=op.Gather(lengths, deciding))


def _roi(call: Call, axis: Axis) -> Value | None:
    """The part of roi that is along the axis in question, and the whole of all others."""
    if not is_crop(call):
        return None
    op, roi, many = call.op, call.input(1), len(axes_of(call))
    before = 0 if keeps_aspect_ratio(call) else 2
    parts = []
    for bound, entry in ((0.0, axis.entry), (1.0, many + axis.entry)):
        around = [cast(op, op.Constant(value_floats=[bound] * count), _dtype(roi)) for count in (before, 1) if count]
        parts += [*around[:-1], _entry(call, roi, entry), around[-1]]
    return op.Concat(*parts, axis=0)


def _dtype(value: Value) -> ir.DataType:
    return ir.DataType.FLOAT if value.dtype is None else value.dtype


def _entry(call: Call, vector: Value, position: int) -> Value:
    """A number in a vector, (1,)."""
    known, op = entry_number(vector, position), call.op
    if known is not None:
        return cast(op, op.Constant(value_floats=[known]), _dtype(vector))
    return op.Slice(vector, ints(op, [position]), ints(op, [position + 1]))


def _last_length(call: Call) -> Value:
    """(1,) of int64: 2 where a length of the call changes, otherwise 1."""
    op = call.op
    if call.y.shape is not None and call.x.shape is not None:
        pairs = list(zip(call.x.shape, call.y.shape, strict=True))
        if any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs):
            return ints(op, [2])
    differ = cast(op, op.Not(op.Equal(call.shape(call.x), call.shape(call.y))), ir.DataType.INT64)
    return op.Add(call.reduce("ReduceMax", differ, None), ints(op, [1]))


def _chosen(call: Call, *names: str) -> dict[str, Any]:
    return {name: call.attribute(name) for name in names if name in call.node.attributes}
