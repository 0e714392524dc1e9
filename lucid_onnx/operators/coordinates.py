"""Normalised and pixel coordinates, and what padding does to a coordinate; each with its derivative.

`size`, the number of pixels along an axis, is a value (1,) of the coordinates' dtype.

Mirrors `lucid_onnx.reference.coordinates`.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from lucid_onnx.operators.building import Builder, Value, constant


def lattice(op: Builder, size: Value, align_corners: bool, dtype: ir.DataType) -> Value:
    """Normalised coordinates of the pixels along an axis of `size`, (1,) of int64: (size,)."""
    pixels = op.Cast(op.Range(0, op.Squeeze(size), 1), to=int(dtype))
    size = op.Cast(size, to=int(dtype))
    twice = op.Mul(pixels, 2.0)
    if not align_corners:
        return op.Sub(op.Div(op.Add(twice, 1.0), size), 1.0)
    single = op.Equal(size, 1.0)
    return op.Where(single, twice, op.Sub(op.Div(twice, op.Sub(size, 1.0)), 1.0))


def unnormalize(op: Builder, coordinate: Value, size: Value, align_corners: bool) -> Value:
    """Pixel coordinate of a normalised `coordinate`."""
    shifted = op.Add(coordinate, 1.0)
    if align_corners:
        return op.Mul(op.Div(shifted, 2.0), op.Sub(size, 1.0))
    return op.Div(op.Sub(op.Mul(shifted, size), 1.0), 2.0)


def unnormalize_slope(op: Builder, size: Value, align_corners: bool) -> Value:
    """Derivative of `unnormalize`: pixels per normalised unit, (1,)."""
    return op.Div(op.Sub(size, 1.0) if align_corners else size, 2.0)


def is_finite(op: Builder, pixel: Value) -> Value:
    """Whether a pixel coordinate is neither NaN nor infinite."""
    return op.Less(op.Abs(pixel), math.inf)


def clip(op: Builder, pixel: Value, size: Value, nan_is_last: bool) -> Value:
    """`pixel` brought into ``[0, size - 1]``.

    Not ONNX's Clip: what that makes of a NaN is the runtime's choice. Here the order of the two comparisons
    decides that it lands on the last pixel of a 5-D image, and on the first of a 4-D one.
    """
    last = op.Sub(size, 1.0)
    if nan_is_last:
        pixel = op.Where(op.Less(pixel, last), pixel, last)
        return op.Where(op.Greater(pixel, 0.0), pixel, 0.0)
    pixel = op.Where(op.Greater(pixel, 0.0), pixel, 0.0)
    return op.Where(op.Less(pixel, last), pixel, last)


def clip_slope(op: Builder, pixel: Value, size: Value, dtype: ir.DataType) -> Value:
    """Derivative of `clip`, of `dtype`: 1 inside, 0 outside and on both ends."""
    inside = op.And(op.Greater(pixel, 0.0), op.Less(pixel, op.Sub(size, 1.0)))
    return op.Cast(inside, to=int(dtype))


def reflect(op: Builder, pixel: Value, size: Value, align_corners: bool, nan_is_last: bool) -> Value:
    """`pixel` mirrored into the image, then clipped."""
    mirrored, _ = _mirror(op, pixel, size, align_corners)
    return clip(op, mirrored, size, nan_is_last)


def reflect_slope(op: Builder, pixel: Value, size: Value, align_corners: bool, dtype: ir.DataType) -> Value:
    """Derivative of `reflect`, of `dtype`: the sign of the reflection, and 0 where its result is clipped."""
    mirrored, backwards = _mirror(op, pixel, size, align_corners)
    slope = clip_slope(op, mirrored, size, dtype)
    return op.Where(backwards, op.Neg(slope), slope)


def _mirror(op: Builder, pixel: Value, size: Value, align_corners: bool) -> tuple[Value, Value]:
    """`pixel` folded back between the two mirrors, and whether it runs backwards there.

    The remainder is taken by the floor: onnxruntime's Mod on floats is slow, and as long as a float
    resolves single pixels (2**24 in float32) both are exact and equal.
    """
    low = 0.0 if align_corners else -0.5
    span = op.Sub(size, 1.0) if align_corners else size
    distance = op.Abs(op.Sub(pixel, low))
    flips = op.Floor(op.Div(distance, span))
    odd = op.Equal(op.Sub(flips, op.Mul(op.Floor(op.Div(flips, 2.0)), 2.0)), 1.0)
    remainder = op.Sub(distance, op.Mul(flips, span))
    mirrored = op.Add(op.Where(odd, op.Sub(span, remainder), remainder), low)
    return mirrored, op.Xor(odd, op.Less(pixel, low))


def pad(op: Builder, pixel: Value, size: Value, padding_mode: str, align_corners: bool, nan_is_last: bool) -> Value:
    """`pixel` as `padding_mode` moves it: clipped, mirrored, or left alone for zeros."""
    if padding_mode == "border":
        return clip(op, pixel, size, nan_is_last)
    if padding_mode == "reflection":
        return reflect(op, pixel, size, align_corners, nan_is_last)
    return pixel


def pad_slope(
    op: Builder, pixel: Value, size: Value, padding_mode: str, align_corners: bool, dtype: ir.DataType
) -> Value:
    """Derivative of `pad`, of `dtype`."""
    if padding_mode == "border":
        return clip_slope(op, pixel, size, dtype)
    if padding_mode == "reflection":
        return reflect_slope(op, pixel, size, align_corners, dtype)
    return constant(op, 1.0, dtype)
