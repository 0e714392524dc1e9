"""Taps, weights and their derivatives along one axis: nearest, linear and cubic; and their product over axes.

Every value here is (T, P) or (K, P): P points, and T taps along one axis of the image (1, 2 or 4 by mode) or
K taps in all of it (T to the power of its number of axes).

Mirrors `lucid_onnx.reference.interpolation`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import onnx_ir as ir

from lucid_onnx.operators import coordinates
from lucid_onnx.operators.building import Builder, Value
from lucid_onnx.reference.schema import KEYS_A, TAPS


@dataclass(frozen=True)
class Taps:
    """Pixels that the points read along one axis.

    Parameters
    ----------
    index : Value
        (T, P) whole pixel coordinates, as floats.
    inside : Value
        (T, P) bool, whether the tap is read. One that is not counts as zero, whatever its weight.
    weight : Value, optional
        (T, P) weights; None where all are 1.
    """

    index: Value
    inside: Value
    weight: Value | None


def taps(op: Builder, pixel: Value, size: Value, mode: str, padding_mode: str, align_corners: bool, rank: int) -> Taps:
    """Taps of points at the pixel coordinates `pixel`, (1, P), along an axis of `size` pixels."""
    nan_is_last = rank == 5
    if mode == "bicubic":
        lower = op.Floor(pixel)
        index = op.Concat(op.Sub(lower, 1.0), lower, op.Add(lower, 1.0), op.Add(lower, 2.0), axis=0)
        index = coordinates.pad(op, index, size, padding_mode, align_corners, nan_is_last)
        # A point whose weights are NaN reads no pixel, so that its gradient spoils none.
        inside = op.And(_in_image(op, index, size), coordinates.is_finite(op, pixel))
        return Taps(index, inside, op.Concat(*cubic_weights(op, op.Sub(pixel, lower)), axis=0))
    padded = coordinates.pad(op, pixel, size, padding_mode, align_corners, nan_is_last)
    if mode == "nearest":
        index = op.Round(padded)
        return Taps(index, _in_image(op, index, size), None)
    lower = op.Floor(padded)
    index = op.Concat(lower, op.Add(lower, 1.0), axis=0)
    weight = _linear_weights(op, op.Sub(padded, lower))
    if rank == 5 and padding_mode == "zeros":
        weight = op.Where(coordinates.is_finite(op, pixel), weight, 0.0)
    return Taps(index, _in_image(op, index, size), weight)


def slopes(
    op: Builder,
    pixel: Value,
    size: Value,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    rank: int,
    dtype: ir.DataType,
) -> Value:
    """Derivatives (T, P), of `dtype`, of the weights of `taps` with respect to `pixel`; linear and cubic only."""
    if mode == "bicubic":
        return _cubic_slopes(op, op.Sub(pixel, op.Floor(pixel)))
    slope = coordinates.pad_slope(op, pixel, size, padding_mode, align_corners, dtype)
    if padding_mode == "zeros":
        # Where the coordinate is not finite a 4-D image gives NaN and a 5-D one 0: so do their derivatives.
        slope = op.Where(coordinates.is_finite(op, pixel), slope, 0.0 if rank == 5 else math.nan)
    return op.Concat(op.Neg(slope), slope, axis=0)


def corners(op: Builder, per_axis: Sequence[Value], mode: str) -> Value:
    """Product of one tap of every axis, for all combinations: values (T, P) in, (K, P) out."""
    result, *others = _combinations(op, per_axis, mode)
    for other in others:
        result = op.Mul(result, other)
    return result


def flat_index(
    op: Builder, per_axis: Sequence[Taps], sizes: Sequence[Value], offset: Value, mode: str
) -> tuple[Value, Value]:
    """Positions (K, P) that the points read when the pixels of all images lie in one row, and whether they do.

    `sizes` are (1,) of int64, outermost axis first; `offset` is (P,), the first pixel of each point's image.
    """
    # Masked before the cast: what NaN and 1e20 become as integers differs between machines.
    along = [op.Cast(op.Where(tap.inside, tap.index, 0.0), to=int(ir.DataType.INT64)) for tap in per_axis]
    index, *others = _combinations(op, along, mode)
    for other, size in zip(others, sizes[1:], strict=True):
        index = op.Add(op.Mul(index, size), other)
    inside, *others = _combinations(op, [tap.inside for tap in per_axis], mode)
    for other in others:
        inside = op.And(inside, other)
    return op.Add(index, offset), inside


def _combinations(op: Builder, per_axis: Sequence[Value], mode: str) -> list[Value]:
    """The taps (T, P) of each axis, repeated to (K, P) so that the rows run through all combinations."""
    count = TAPS[mode]
    if count == 1:
        return list(per_axis)
    chosen = zip(*product(range(count), repeat=len(per_axis)), strict=True)
    return [op.Gather(values, list(rows), axis=0) for values, rows in zip(per_axis, chosen, strict=True)]


def _in_image(op: Builder, index: Value, size: Value) -> Value:
    return op.And(op.GreaterOrEqual(index, 0.0), op.LessOrEqual(index, op.Sub(size, 1.0)))


def _linear_weights(op: Builder, t: Value) -> Value:
    return op.Concat(op.Sub(1.0, t), t, axis=0)


def cubic_weights(op: Builder, t: Value) -> tuple[Value, ...]:
    """Weights of the taps at -1, 0, 1 and 2 for a point `t` beyond tap 0."""
    near, far = op.Sub(1.0, t), op.Sub(2.0, t)
    return _keys_far(op, op.Add(t, 1.0)), _keys_near(op, t), _keys_near(op, near), _keys_far(op, far)


def _cubic_slopes(op: Builder, t: Value) -> Value:
    """Derivatives of `cubic_weights`: the taps ahead come nearer as `t` grows."""
    return op.Concat(
        _keys_far_slope(op, op.Add(t, 1.0)),
        _keys_near_slope(op, t),
        op.Neg(_keys_near_slope(op, op.Sub(1.0, t))),
        op.Neg(_keys_far_slope(op, op.Sub(2.0, t))),
        axis=0,
    )


def _keys_near(op: Builder, s: Value) -> Value:
    """Keys' kernel at a distance of 0 to 1."""
    return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(s, KEYS_A + 2), KEYS_A + 3), s), s), 1.0)


def _keys_far(op: Builder, s: Value) -> Value:
    """Keys' kernel at a distance of 1 to 2."""
    inner = op.Add(op.Mul(op.Sub(op.Mul(s, KEYS_A), 5 * KEYS_A), s), 8 * KEYS_A)
    return op.Sub(op.Mul(inner, s), 4 * KEYS_A)


def _keys_near_slope(op: Builder, s: Value) -> Value:
    return op.Mul(op.Sub(op.Mul(s, 3 * (KEYS_A + 2)), 2 * (KEYS_A + 3)), s)


def _keys_far_slope(op: Builder, s: Value) -> Value:
    return op.Add(op.Mul(op.Sub(op.Mul(s, 3 * KEYS_A), 10 * KEYS_A), s), 8 * KEYS_A)
