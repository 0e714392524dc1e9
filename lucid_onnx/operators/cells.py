"""The cell of the image that each point lies in, and the image extended so that every tap can be read there.

This is the fast way forward: beyond its edges the image is continued as the padding says, and a point beyond
the continuation is brought to its end, where all that it reads is the same. So no tap needs a mask, and the
taps of a point lie at fixed distances from its first: one index a point, plus a constant a tap.

Values are (P,), one for each of the P points of all grids, along one axis; `size`, the number of pixels along
it, is (1,) of the coordinates' dtype, and `length`, the same, (1,) of int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.operators import coordinates, interpolation
from lucid_onnx.operators.building import Builder, Value, ints


@dataclass(frozen=True)
class Cell:
    """Where points read along one axis.

    Parameters
    ----------
    first : Value
        (P,) pixel of the first tap, a whole number; never NaN, and within the extension.
    weights : tuple of Value
        Of each tap, (P,); empty where a single tap counts whole.
    """

    first: Value
    weights: tuple[Value, ...]


EXTENSION = {
    ("nearest", "zeros"): (1, 1),
    ("nearest", "border"): (0, 0),
    ("nearest", "reflection"): (0, 0),
    ("bilinear", "zeros"): (2, 2),
    ("bilinear", "border"): (0, 1),
    ("bilinear", "reflection"): (0, 1),
    ("bicubic", "zeros"): (4, 4),
    ("bicubic", "border"): (3, 3),
    ("bicubic", "reflection"): (2, 2),
}
"""Pixels before and behind the image that the taps of a `Cell` may reach, by mode and padding mode."""


def cell(
    op: Builder,
    pixel: Value,
    size: Value,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    rank: int,
    assume_finite: bool,
) -> Cell:
    """Cell of points at the pixel coordinates `pixel`, (P,)."""
    if mode == "bicubic":
        return _cubic(op, pixel, size, padding_mode, align_corners, assume_finite)
    last, nan_is_last = op.Sub(size, 1.0), rank == 5
    padded = _mirror(op, pixel, size, align_corners) if padding_mode == "reflection" else pixel
    if padding_mode != "zeros":
        padded = clamp(op, padded, 0.0, last, assume_finite, nan_is_last)
    if mode == "nearest":
        whole = op.Round(padded)
        return Cell(clamp(op, whole, -1.0, size, assume_finite) if padding_mode == "zeros" else whole, ())
    lower = op.Floor(padded)
    beyond = op.Sub(padded, lower)
    weights = (op.Sub(1.0, beyond), beyond)
    if padding_mode == "zeros":
        lower = clamp(op, lower, -2.0, size, assume_finite)
        if rank == 5 and not assume_finite:
            finite = coordinates.is_finite(op, pixel)
            weights = (op.Where(finite, weights[0], 0.0), op.Where(finite, weights[1], 0.0))
    return Cell(lower, weights)


def _cubic(op: Builder, pixel: Value, size: Value, padding_mode: str, align_corners: bool, assume_finite: bool) -> Cell:
    """The lowest of four taps. Farther out than the clamps all of them read the same, and their weights sum to 1."""
    if padding_mode == "reflection":
        # Keys' kernel is even: the mirrored point has the mirrored weights.
        pixel = _mirror(op, pixel, size, align_corners)
    lower = op.Floor(pixel)
    weights = interpolation.cubic_weights(op, op.Sub(pixel, lower))
    ends = {"zeros": (-3.0, 1.0), "border": (-2.0, 0.0), "reflection": (-1.0, -1.0)}
    low, beyond = ends[padding_mode]
    lower = clamp(op, lower, low, op.Add(size, beyond), assume_finite)
    return Cell(op.Sub(lower, 1.0), weights)


def _mirror(op: Builder, pixel: Value, size: Value, align_corners: bool) -> Value:
    """`pixel` folded back between the mirrors, or, where that is not resolved, anywhere.

    `coordinates.reflect` by half as many operators, for it says nothing of the direction.
    """
    low = 0.0 if align_corners else -0.5
    # A single pixel with align_corners is its own mirror: every coordinate is 0.
    period = op.Mul(op.Max(op.Sub(size, 1.0), 1.0) if align_corners else size, 2.0)
    distance = op.Abs(op.Sub(pixel, low))
    rest = op.Sub(distance, op.Mul(op.Floor(op.Div(distance, period)), period))
    return op.Add(op.Min(rest, op.Sub(period, rest)), low)


def clamp(op: Builder, pixel: Value, low: Value | float, high: Value, finite: bool, nan_is_last: bool = False) -> Value:
    """`pixel` brought into ``[low, high]``; where it may be NaN, that goes to the one end or the other."""
    if finite:
        return op.Min(op.Max(pixel, low), high)
    if nan_is_last:
        return op.Max(op.Where(op.Less(pixel, high), pixel, high), low)
    return op.Min(op.Where(op.Greater(pixel, low), pixel, low), high)


def extend(op: Builder, x: Value, lengths: Sequence[Value], mode: str, padding_mode: str, align_corners: bool) -> Value:
    """The image `x`, (N, C, …), continued along its spatial axes by `EXTENSION`."""
    before, behind = EXTENSION[mode, padding_mode]
    axes = len(lengths)
    if mode != "bicubic" or padding_mode == "zeros":
        # What lies behind a border is only read with the weight 0, and must not be infinite.
        return x if before == behind == 0 else op.Pad(x, [0, 0, *[before] * axes, 0, 0, *[behind] * axes])
    for axis, length in enumerate(lengths, start=2):
        pixels = op.Range(op.Constant(value_int=-before), op.Add(op.Squeeze(length), behind), 1)
        home = _home(op, pixels, length, padding_mode, align_corners)
        # An axis of no pixels, which is valid where nothing is sampled, has none to repeat.
        some = op.Min(length, ints(op, [1]))
        left = op.Slice(home, [0], op.Mul(some, ints(op, [before])), [0])
        right = op.Slice(
            home, op.Add(length, ints(op, [before])), op.Add(length, op.Mul(some, ints(op, [before + behind]))), [0]
        )
        x = op.Concat(op.Gather(x, left, axis=axis), x, op.Gather(x, right, axis=axis), axis=axis)
    return x


def _home(op: Builder, pixels: Value, length: Value, padding_mode: str, align_corners: bool) -> Value:
    """Pixels of the image that stand for whole pixels within and beyond it, int64 (L,)."""
    last = op.Sub(length, ints(op, [1]))
    if padding_mode == "border":
        return op.Min(op.Max(pixels, ints(op, [0])), last)
    # The mirror of pixel -1 is pixel 1 with align_corners, and pixel 0 without.
    shift = 0 if align_corners else 1
    period = op.Max(op.Mul(op.Add(last, ints(op, [shift])), ints(op, [2])), ints(op, [1]))
    folded = op.Mod(pixels, period)
    return op.Min(folded, op.Sub(op.Sub(period, ints(op, [shift])), folded))


def index_dtype(shape: Sequence[int | None]) -> ir.DataType:
    """Integers that number the pixels of an image: 32 bits, which are read faster, where it is known that they do."""
    total = 1
    for dimension in shape:
        if dimension is None:
            return ir.DataType.INT64
        total *= dimension + 8
    return ir.DataType.INT32 if total < 2**31 else ir.DataType.INT64
