"""Normalised and pixel coordinates, each with its derivative. What padding does to them is the subject of `cells`.

`size`, the number of pixels along an axis, is a value (1,) of the coordinates' dtype.

Mirrors `lucid_onnx.reference.coordinates`.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from lucid_onnx.operators.building import Builder, Value


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
