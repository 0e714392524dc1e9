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
from lucid_onnx.operators.building import Builder, Value, constant, dtype_of, ints, known_ints


@dataclass(frozen=True)
class Cell:
    """Where points read along one axis.

    Parameters
    ----------
    first : Value
        (P,) pixel of the first tap, a whole number; never NaN, and within the extension.
    weights : tuple of Value
        Of each tap, (P,); empty where a single tap counts whole.
    padded : Value
        (P,) the coordinate that the padding makes of that of the point.
    backwards : Value, optional
        (P,) bool, whether `padded` falls as the coordinate of the point rises; None where it never does.
    beyond : Value, optional
        (P,) how far `padded` is beyond the whole pixel before it; None for nearest.
    """

    first: Value
    weights: tuple[Value, ...]
    padded: Value
    backwards: Value | None
    beyond: Value | None = None


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
    harmless: bool = False,
) -> Cell:
    """Cell of points at the pixel coordinates `pixel`, (P,).

    If it is to be `harmless`, a point that is not finite gives no pixel of the image the weight NaN.
    """
    if mode == "bicubic":
        return _cubic(op, pixel, size, padding_mode, align_corners, assume_finite, harmless)
    last, nan_is_last = op.Sub(size, 1.0), rank == 5
    padded, backwards = _padded(op, pixel, size, padding_mode, align_corners)
    if padding_mode != "zeros":
        padded = clamp(op, padded, 0.0, last, assume_finite, nan_is_last)
    if mode == "nearest":
        whole = op.Round(padded)
        first = clamp(op, whole, -1.0, size, assume_finite) if padding_mode == "zeros" else whole
        return Cell(first, (), padded, backwards)
    lower = op.Floor(padded)
    beyond = op.Sub(padded, lower)
    weights = (op.Sub(1.0, beyond), beyond)
    if padding_mode == "zeros":
        lower = clamp(op, lower, -2.0, size, assume_finite)
        if rank == 5 and not assume_finite:
            finite = coordinates.is_finite(op, pixel)
            weights = (op.Where(finite, weights[0], 0.0), op.Where(finite, weights[1], 0.0))
    return Cell(lower, weights, padded, backwards, beyond)


def _cubic(
    op: Builder,
    pixel: Value,
    size: Value,
    padding_mode: str,
    align_corners: bool,
    assume_finite: bool,
    harmless: bool,
) -> Cell:
    """The lowest of four taps. Farther out than the clamps all of them read the same, and their weights sum to 1."""
    # Keys' kernel is even: a mirrored point has the mirrored weights.
    padded, backwards = _padded(op, pixel, size, padding_mode, align_corners)
    lower = op.Floor(padded)
    beyond = op.Sub(padded, lower)
    if harmless:
        beyond = op.Where(coordinates.is_finite(op, padded), beyond, 0.0)
    ends = {"zeros": (-3.0, 1.0), "border": (-2.0, 0.0), "reflection": (-1.0, -1.0)}
    low, high = ends[padding_mode]
    first = op.Sub(clamp(op, lower, low, op.Add(size, high), assume_finite), 1.0)
    return Cell(first, interpolation.cubic_weights(op, beyond), padded, backwards, beyond)


def _padded(
    op: Builder, pixel: Value, size: Value, padding_mode: str, align_corners: bool
) -> tuple[Value, Value | None]:
    """`pixel` folded back between the mirrors, and whether it runs backwards there; itself without reflection."""
    return _mirror(op, pixel, size, align_corners) if padding_mode == "reflection" else (pixel, None)


def _mirror(op: Builder, pixel: Value, size: Value, align_corners: bool) -> tuple[Value, Value]:
    """`pixel` folded back between the mirrors, or, where that is not resolved, anywhere; and whether it runs backwards.

    `coordinates.reflect` by fewer operators.
    """
    low = 0.0 if align_corners else -0.5
    # A single pixel with align_corners is its own mirror: every coordinate is 0.
    period = op.Mul(op.Max(op.Sub(size, 1.0), 1.0) if align_corners else size, 2.0)
    distance = op.Abs(op.Sub(pixel, low))
    rest = op.Sub(distance, op.Mul(op.Floor(op.Div(distance, period)), period))
    other = op.Sub(period, rest)
    return op.Add(op.Min(rest, other), low), op.Xor(op.Greater(rest, other), op.Less(pixel, low))


def slope(op: Builder, cell: Cell, size: Value, mode: str, padding_mode: str, rank: int) -> Value | None:
    """Derivative (P,) of `beyond` with respect to the coordinate of the point; None where it is 1.

    A coordinate that is not finite counts as one that is, but in the zeros around a volume.
    """
    one, none = (constant(op, number, dtype_of(cell.padded, "the coordinates")) for number in (1.0, 0.0))
    if padding_mode == "zeros":
        return op.Where(coordinates.is_finite(op, cell.padded), one, none) if (mode, rank) == ("bilinear", 5) else None
    turned = one if cell.backwards is None else op.Where(cell.backwards, op.Neg(one), one)
    if mode == "bicubic":
        return None if cell.backwards is None else turned
    inside = op.And(op.Greater(cell.padded, 0.0), op.Less(cell.padded, op.Sub(size, 1.0)))
    return op.Where(inside, turned, none)


def clamp(op: Builder, pixel: Value, low: Value | float, high: Value, finite: bool, nan_is_last: bool = False) -> Value:
    """`pixel` brought into ``[low, high]``; where it may be NaN, that goes to the one end or the other."""
    if finite:
        return op.Min(op.Max(pixel, low), high)
    if nan_is_last:
        return op.Max(op.Where(op.Less(pixel, high), pixel, high), low)
    return op.Min(op.Where(op.Greater(pixel, low), pixel, low), high)


def extend(
    op: Builder,
    x: Value,
    lengths: Sequence[Value],
    mode: str,
    padding_mode: str,
    align_corners: bool,
    axis: int = 2,
) -> Value:
    """The image `x` continued by `EXTENSION` along its spatial axes, from `axis` on: (N, C, …), or (N, …, C) for 1."""
    before, behind = EXTENSION[mode, padding_mode]
    if not _repeats(mode, padding_mode):
        # What lies behind a border is only read with the weight 0, and must not be infinite.
        pads = [[0] * axis + [margin] * len(lengths) + [0] * (2 - axis) for margin in (before, behind)]
        return x if before == behind == 0 else op.Pad(x, [*pads[0], *pads[1]])
    for along, length in enumerate(lengths, start=axis):
        left, right = _margins(op, length, mode, padding_mode, align_corners)
        x = op.Concat(op.Gather(x, left, axis=along), x, op.Gather(x, right, axis=along), axis=along)
    return x


def extended(op: Builder, length: Value, mode: str, padding_mode: str) -> Value:
    """Number of pixels, (1,), of an axis that `extend` makes of one of `length`."""
    margins = sum(EXTENSION[mode, padding_mode])
    known = known_ints(length)
    repeats = _repeats(mode, padding_mode)
    if known is not None:
        return ints(op, [known[0] + (0 if repeats and known[0] == 0 else margins)])
    # An axis of no pixels has none to repeat.
    return op.Add(
        length, op.Mul(op.Min(length, ints(op, [1])), ints(op, [margins])) if repeats else ints(op, [margins])
    )


def fold(
    op: Builder,
    x: Value,
    lengths: Sequence[Value],
    axis: int,
    mode: str,
    padding_mode: str,
    align_corners: bool,
) -> Value:
    """The transpose of `extend` for the axes from `axis` on: what lies in the margins is added where it came from."""
    before, behind = EXTENSION[mode, padding_mode]
    if before == behind == 0:
        return x
    axes = list(range(axis, axis + len(lengths)))
    ends = op.Concat(*[op.Add(length, ints(op, [before])) for length in lengths], axis=0)
    if not _repeats(mode, padding_mode):
        return op.Slice(x, ints(op, [before] * len(axes)), ends, ints(op, axes))
    for along, length in zip(axes, lengths, strict=True):
        end = op.Add(length, ints(op, [before]))
        home = op.Concat(*_margins(op, length, mode, padding_mode, align_corners), axis=0)
        left = op.Slice(x, ints(op, [0]), op.Min(end, ints(op, [before])), ints(op, [along]))
        right = op.Slice(x, end, ints(op, [_END]), ints(op, [along]))
        margins = op.Concat(left, right, axis=along)
        others = [a for a in range(axis + len(axes) + (axis == 1)) if a != along]
        index = op.Expand(op.Unsqueeze(home, ints(op, others)), op.Shape(margins))
        whole = op.Slice(x, ints(op, [before]), end, ints(op, [along]))
        x = op.ScatterElements(whole, index, margins, axis=along, reduction="add")
    return x


_END = 2**62
"""Beyond the end of any axis."""


def _repeats(mode: str, padding_mode: str) -> bool:
    """Whether the margins repeat pixels of the image."""
    return mode == "bicubic" and padding_mode != "zeros"


def _margins(op: Builder, length: Value, mode: str, padding_mode: str, align_corners: bool) -> tuple[Value, Value]:
    """Pixels of the image that stand for those before and behind it, int64 (before,) and (behind,)."""
    before, behind = EXTENSION[mode, padding_mode]
    pixels = op.Range(op.Constant(value_int=-before), op.Add(op.Squeeze(length), behind), 1)
    home = _home(op, pixels, length, padding_mode, align_corners)
    # An axis of no pixels, which is valid where nothing is sampled, has none to repeat.
    some = op.Min(length, ints(op, [1]))
    left = op.Slice(home, [0], op.Mul(some, ints(op, [before])), [0])
    right = op.Slice(
        home, op.Add(length, ints(op, [before])), op.Add(length, op.Mul(some, ints(op, [before + behind]))), [0]
    )
    return left, right


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
