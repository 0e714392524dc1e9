"""Where the windows of convolutions and pooling lie, and sums over them: what their rules share.

Letters: along an axis of H pixels window o < O covers the pixels o s - a + k d, with stride s, dilation d, padding a
before and b after, and taps k < K. What there is for each axis is a value of (r,) of int64, constant where it is known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lucid_onnx.gradient.call import Call
from lucid_onnx.operators.building import Builder, Value, dims, ints, known_ints


@dataclass(frozen=True)
class Windows:
    """The windows of a node.

    Parameters
    ----------
    kernel : Value
        K.
    strides, dilations : list of int
        s and d.
    begins, ends : Value
        a and b.
    """

    kernel: Value
    strides: list[int]
    dilations: list[int]
    begins: Value
    ends: Value

    @property
    def rank(self) -> int:
        """Number of spatial axes, r."""
        return len(self.strides)

    @property
    def pads(self) -> list[int] | None:
        """Those of `begins` and `ends`, as an attribute has them; None where they are computed at run time."""
        begins, ends = known_ints(self.begins), known_ints(self.ends)
        return None if begins is None or ends is None else [*begins, *ends]


def windows(call: Call, image: Value, kernel: Value) -> Windows:
    """The windows of a Conv or of pooling over `image`, (N,C,…)."""
    op, rank, auto_pad = call.op, call.rank(image) - 2, call.attribute("auto_pad", "NOTSET")
    strides, dilations = steps(call, "strides", rank), steps(call, "dilations", rank)
    if auto_pad.startswith("SAME"):
        total = same_padding(op, spatial(op, image), kernel, strides, dilations)
        begins, ends = halves(op, total, rank, lower=auto_pad == "SAME_LOWER")
    else:
        begins, ends = explicit_pads(call, rank)
    return Windows(kernel, strides, dilations, begins, ends)


def steps(call: Call, name: str, rank: int) -> list[int]:
    """An attribute with a number for each axis, 1 by default."""
    return call.attribute(name) or [1] * rank


def explicit_pads(call: Call, rank: int) -> tuple[Value, Value]:
    """Padding before and after, where auto_pad is NOTSET, or VALID, which has none."""
    given = call.attribute("pads") if call.attribute("auto_pad", "NOTSET") == "NOTSET" else None
    pads = given or [0] * 2 * rank
    return ints(call.op, pads[:rank]), ints(call.op, pads[rank:])


def same_padding(op: Builder, size: Value, kernel: Value, strides: list[int], dilations: list[int]) -> Value:
    """Padding for ceil(H / s) windows, a + b: what the last one has beyond the pixels from its first tap on."""
    one = ints(op, [1] * len(strides))
    remainder = fold(op, "Mod", fold(op, "Sub", size, one), ints(op, strides))
    # Where every stride is 1 there is one pixel from the last window on, whatever the size.
    last = one if set(strides) == {1} else fold(op, "Add", remainder, one)
    return at_least_zero(op, fold(op, "Sub", span(op, kernel, dilations), last), len(strides))


def halves(op: Builder, total: Value, rank: int, lower: bool) -> tuple[Value, Value]:
    """A padding shared by both ends; an odd pixel goes to the beginning if `lower`, and to the end otherwise."""
    half = fold(op, "Div", total, ints(op, [2] * rank))
    rest = fold(op, "Sub", total, half)
    return (rest, half) if lower else (half, rest)


def at_least_zero(op: Builder, value: Value, rank: int) -> Value:
    """max(value, 0)."""
    return fold(op, "Max", value, ints(op, [0] * rank))


def span(op: Builder, count: Value, step: list[int]) -> Value:
    """Pixels from the first to the last of `count` that are `step` apart: (count - 1) step + 1."""
    one = ints(op, [1] * len(step))
    return fold(op, "Add", fold(op, "Mul", fold(op, "Sub", count, one), ints(op, step)), one)


def spatial(op: Builder, image: Value) -> Value:
    """Sizes of the spatial axes of a value of known rank, (N,C,…)."""
    assert image.shape is not None
    return dims(op, image, 2, len(image.shape))


def fold(op: Builder, op_type: str, a: Value, b: Value) -> Value:
    """An operator on two vectors of integers, done here where both are known."""
    known_a, known_b = known_ints(a), known_ints(b)
    if known_a is None or known_b is None:
        result: Value = getattr(op, op_type)(a, b)
        return result
    return ints(op, [_FOLDED[op_type](x, y) for x, y in zip(known_a, known_b, strict=True)])


_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mul": operator.mul,
    "Div": operator.floordiv,
    "Mod": operator.mod,
    "Max": max,
}


def padded(op: Builder, image: Value, at: Windows) -> Value:
    """`image` with zeros around it."""
    if at.pads is not None and not any(at.pads):
        return image
    zeros = ints(op, [0, 0])
    return op.Pad(image, op.Concat(zeros, at.begins, zeros, at.ends, axis=0))


def convolve(
    op: Builder, image: Value, kernel: Value, at: Windows, strides: Sequence[int], dilations: Sequence[int], group: int
) -> Value:
    """A convolution with the padding of `at`, and steps of its own."""
    pads = at.pads
    if pads is None:
        image, pads = padded(op, image, at), [0] * 2 * at.rank
    return op.Conv(image, kernel, strides=strides, dilations=dilations, pads=pads, group=group)


def crop(op: Builder, image: Value, begins: Value, size: Value, rank: int) -> Value:
    """`size` pixels of each spatial axis, from `begins` on."""
    return op.Slice(image, begins, fold(op, "Add", begins, size), ints(op, range(2, rank + 2)))


def spread(op: Builder, g: Value, kernel: Value, at: Windows, size: Value, group: int = 1) -> Value:
    """The transpose of a convolution: every window's taps times its number in `g`, summed over the windows.

    Parameters
    ----------
    g : Value
        (N, C, O…).
    kernel : Value
        (C, …, K…), as ConvTranspose has it.
    size : Value
        H, of the result.
    """
    to_last = fold(op, "Sub", span(op, spatial(op, g), at.strides), ints(op, [1] * at.rank))
    whole = fold(op, "Add", to_last, span(op, at.kernel, at.dilations))
    # Pixels after the last window; below 0, how far it goes beyond them.
    lacking = known_ints(fold(op, "Sub", fold(op, "Add", size, at.begins), whole))
    begins, steps = known_ints(at.begins), {"strides": at.strides, "dilations": at.dilations}
    if lacking is not None and begins is not None:
        pads, more = [*begins, *(max(-n, 0) for n in lacking)], [max(n, 0) for n in lacking]
        return op.ConvTranspose(g, kernel, pads=pads, output_padding=more, group=group, **steps)
    # As long as it can be: the windows leave fewer than s pixels.
    pads, more = [*(begins or [0] * at.rank), *[0] * at.rank], [stride - 1 for stride in at.strides]
    image = op.ConvTranspose(g, kernel, pads=pads, output_padding=more, group=group, **steps)
    return crop(op, image, at.begins if begins is None else ints(op, [0] * at.rank), size, at.rank)
