"""Convolutions: Conv and ConvTranspose, each the other's transpose.

Letters as in `windows`; c channels of the image and m of the kernel in each of G groups.
"""

from __future__ import annotations

from itertools import product
from math import prod

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.gradient.rules.windows import (
    Windows,
    at_least_zero,
    convolve,
    crop,
    explicit_pads,
    fold,
    halves,
    padded,
    span,
    spatial,
    spread,
    steps,
    windows,
)
from lucid_onnx.operators.building import Builder, Value, count, dims, ints, known_ints, reshape


@rule("Conv")
def conv(call: Call, g: Value) -> Gradients:
    """Y_o = Σ_k W_k x_(os-a+kd) + b: dx is the transposed convolution of g, dW_k = Σ_o g_o x_(os-a+kd), db = Σ g."""
    x, weights, group = call.x, call.input(1), call.attribute("group", 1)
    at = windows(call, x, kernel_size(call))
    return (
        input_gradient(call, g, at, group) if call.wants(0) else None,
        weight_gradient(call.op, x, g, weights, at, group) if call.wants(1) else None,
        bias_gradient(call, g) if call.wants(2) else None,
    )


@rule("ConvTranspose")
def conv_transpose(call: Call, g: Value) -> Gradients:
    """The transpose of the convolution of g with W, which is dx; dW_k = Σ_o x_o g_(os-a+kd), and db = Σ g."""
    x, weights, group = call.x, call.input(1), call.attribute("group", 1)
    if call.rank(call.y, "the output") != call.rank(x):
        # ONNX's inference takes an output_shape of spatial axes alone for all of it.
        raise call.unsupported("its output is said to be of another rank than its input", "declare the output's shape")
    at = transposed_windows(call)
    return (
        transposed_input_gradient(call, g, at, group) if call.wants(0) else None,
        weight_gradient(call.op, g, x, weights, at, group) if call.wants(1) else None,
        bias_gradient(call, g) if call.wants(2) else None,
    )


def kernel_size(call: Call) -> Value:
    """K, of the attribute or of the weights."""
    given = call.attribute("kernel_shape")
    call.rank(call.input(1), "the weights")
    return ints(call.op, given) if given else spatial(call.op, call.input(1))


def bias_gradient(call: Call, g: Value) -> Value:
    """Sum over all but the channels."""
    return call.sum(g, [0, *range(2, call.rank(g))], keepdims=False)


def transposed_windows(call: Call) -> Windows:
    """The windows of a ConvTranspose, over its output."""
    op, rank, kernel = call.op, call.rank(call.x) - 2, kernel_size(call)
    strides, dilations = steps(call, "strides", rank), steps(call, "dilations", rank)
    size, auto_pad = call.attribute("output_shape"), call.attribute("auto_pad", "NOTSET")
    whole = fold(op, "Add", span(op, kernel, dilations), ints(op, call.attribute("output_padding") or [0] * rank))
    if size:
        before = fold(op, "Sub", span(op, spatial(op, call.x), strides), ints(op, [1 + n for n in size[-rank:]]))
        total = at_least_zero(op, fold(op, "Add", whole, before), rank)
        begins, ends = halves(op, total, rank, lower=auto_pad != "SAME_UPPER")
    elif auto_pad.startswith("SAME"):
        total = at_least_zero(op, fold(op, "Sub", whole, ints(op, strides)), rank)
        begins, ends = halves(op, total, rank, lower=auto_pad == "SAME_LOWER")
    else:
        begins, ends = explicit_pads(call, rank)
    return Windows(kernel, strides, dilations, begins, ends)


def input_gradient(call: Call, g: Value, at: Windows, group: int) -> Value:
    """The gradient dx of Conv."""
    pads = flipped_pads(call, at, group)
    if pads is None:
        return spread(call.op, g, call.input(1), at, spatial(call.op, call.x), group)
    return call.op.Conv(g, flipped(call, at, group), dilations=at.dilations, pads=pads, group=group)


def transposed_input_gradient(call: Call, g: Value, at: Windows, group: int) -> Value:
    """The gradient dx of ConvTranspose, a convolution of g."""
    image = convolve(call.op, g, call.input(1), at, at.strides, at.dilations, group)
    more = call.attribute("output_padding") or [0]
    if max(more) < min(at.strides):
        return image
    # Padding of a stride or more is as good as another window.
    return crop(call.op, image, ints(call.op, [0] * at.rank), spatial(call.op, call.x), at.rank)


def flipped_pads(call: Call, at: Windows, group: int) -> list[int] | None:
    """Padding with which dx of Conv is a Conv with the flipped kernel; None if that cannot be, or would be slower.

    Milliseconds of ConvTranspose and of the flipped Conv, for c -> m channels (two threads, onnxruntime):
    (64,1,28²)->8 7x7 1.1 and 3.6; (8,8,64²)->32 3x3 1.6 and 3.4; (64,16,28²)->32 3x3 6.4 and 5.2;
    (8,64,56²)->64 3x3 15 and 10; (1,16,32³)->16 3x3x3 13 and 4.2. Where g is much smaller than x, Conv reads padding.
    """
    kernel, pads, taken = known_ints(at.kernel), at.pads, known_ints(dims(call.op, call.input(1), 0, 2))
    if kernel is None or pads is None or taken is None or set(at.strides) != {1}:
        return None
    outputs, per_group = taken
    size, places = known_ints(spatial(call.op, call.x)), known_ints(spatial(call.op, call.y))
    if 2 * per_group * group < outputs or (size and places and prod(size) > 3 * prod(places)):
        return None
    reach = [(taps - 1) * step for taps, step in zip(kernel, at.dilations, strict=True)]
    others = [reach[k % at.rank] - pad for k, pad in enumerate(pads)]
    return others if min(others) >= 0 else None


def flipped(call: Call, at: Windows, group: int) -> Value:
    """The weights (G m, c, K…) turned round, (G c, m, K…)."""
    op, weights = call.op, call.input(1)
    outputs, inputs = dims(op, weights, 0, 1), dims(op, weights, 1, 2)
    per_group, axes = fold(op, "Div", outputs, ints(op, [group])), range(2, at.rank + 2)
    back, beyond = ints(op, [-1] * at.rank), ints(op, [-_FAR] * at.rank)
    turned = op.Slice(weights, back, beyond, ints(op, axes), back)
    turned = reshape(op, turned, [group], per_group, inputs, at.kernel)
    turned = op.Transpose(turned, perm=[0, 2, 1, *range(3, at.rank + 3)])
    return reshape(op, turned, fold(op, "Mul", inputs, ints(op, [group])), per_group, at.kernel)


_FAR = 2**62
"""An end of a Slice that is beyond every first pixel."""


def weight_gradient(op: Builder, image: Value, g: Value, weights: Value, at: Windows, group: int) -> Value:
    """The gradient dW (G m, c, K…), where windows over `image` (N, G c, H…) make `g` (N, G m, O…).

    Milliseconds by MatMul and by Conv (two threads, onnxruntime), for c -> m channels: (64,16,28²)->32 3x3 6.1 and 21;
    (8,64,56²)->64 3x3 17 and 45; (1,16,32³)->16 3x3x3 7.6 and 16; (1,32,16³)->32 3x3x3 3.0 and 8.0; depthwise
    (8,96,14²) 3x3 1.3 and 2.1; but (64,1,28²)->8 7x7 1.2 and 0.8, (64,1,28²)->16 5x5 5.9 and 4.1.
    """
    kernel, channels = known_ints(at.kernel), known_ints(dims(op, weights, 1, 2))
    if kernel is None or (channels is not None and prod(kernel) >= 16 * channels[0]):
        return by_convolution(op, image, g, at, group)
    return by_products(op, image, g, at, kernel, group)


def by_convolution(op: Builder, image: Value, g: Value, at: Windows, group: int) -> Value:
    """A convolution with g, of the image with N for its channels: windows are the taps, strides become dilations."""
    batch, channels, size = dims(op, image, 0, 1), dims(op, image, 1, 2), spatial(op, image)
    per_group, rest = fold(op, "Div", channels, ints(op, [group])), range(2, at.rank + 2)
    swapped = op.Transpose(reshape(op, image, batch, [group], per_group, size), perm=[2, 1, 0, *range(3, at.rank + 3)])
    swapped = reshape(op, swapped, per_group, fold(op, "Mul", batch, ints(op, [group])), size)
    kernel = op.Transpose(g, perm=[1, 0, *rest])
    taps = convolve(op, swapped, kernel, at, at.dilations, at.strides, group)
    # Pixels that no window reaches make more taps.
    taps = crop(op, taps, ints(op, [0] * at.rank), at.kernel, at.rank)
    return op.Transpose(taps, perm=[1, 0, *rest])


def by_products(op: Builder, image: Value, g: Value, at: Windows, kernel: list[int], group: int) -> Value:
    """Matrix products of g with the image shifted to each tap.

    Along the last axis the taps become channels, so that there are K times fewer, wider products, and what is
    sliced for each of them is contiguous.
    """
    batch, last, outputs = dims(op, image, 0, 1), at.rank + 1, spatial(op, g)
    per_group = fold(op, "Div", dims(op, image, 1, 2), ints(op, [group]))
    size = fold(op, "Add", spatial(op, image), fold(op, "Add", at.begins, at.ends))
    image = reshape(op, padded(op, image, at), batch, [group], per_group, size)
    wide = op.Concat(*shifted(op, image, g, at, kernel, range(last, last + 1)), axis=2)
    rows = shifted(op, wide, g, at, kernel, range(2, last))
    pixels, width = count(op, outputs), fold(op, "Mul", per_group, ints(op, kernel[-1:]))
    maps = fold(op, "Div", dims(op, g, 1, 2), ints(op, [group]))
    left = reshape(op, g, batch, [group], maps, pixels)
    turned = [op.Transpose(reshape(op, row, batch, [group], width, pixels), perm=[0, 1, 3, 2]) for row in rows]
    products = op.Concat(*(op.MatMul(left, right) for right in turned), axis=3)
    total = reshape(op, op.ReduceSum(products, ints(op, [0]), keepdims=0), dims(op, g, 1, 2), kernel, per_group)
    return op.Transpose(total, perm=[0, last, *range(1, last)])


def shifted(op: Builder, image: Value, g: Value, at: Windows, kernel: list[int], axes: range) -> list[Value]:
    """For every tap along `axes` of g, what the windows have there in `image` (N, G, c, H…)."""
    if not axes:
        return [image]
    chosen = slice(axes.start - 2, axes.stop - 2)
    strides, dilations = at.strides[chosen], at.dilations[chosen]
    reach, where = span(op, dims(op, g, axes.start, axes.stop), strides), ints(op, [axis + 1 for axis in axes])
    slices = []
    for taps in product(*map(range, kernel[chosen])):
        begin = ints(op, [tap * step for tap, step in zip(taps, dilations, strict=True)])
        slices.append(op.Slice(image, begin, fold(op, "Add", reach, begin), where, ints(op, strides)))
    return slices
