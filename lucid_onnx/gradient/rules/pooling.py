"""Pooling, over windows and over whole images. Letters as in `windows`; x is (N, C, H…) and y (N, C, O…)."""

from __future__ import annotations

from math import prod
from typing import Any

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.gradient.rules.windows import Windows, fold, spatial, spread, windows
from lucid_onnx.operators.building import Builder, Value, count, dims, ints, known_ints, reshape


@rule("MaxPool")
def max_pool(call: Call, g: Value) -> Gradients:
    """Y_o = max_k x_(os-a+kd): g goes to where the maximum is, the first in row-major order where there are several."""
    op, x = call.op, call.x
    zeros = op.ConstantOfShape(count(op, call.shape(x)), value=ir.tensor([0.0], dtype=call.dtype))
    sums = op.ScatterElements(zeros, flat(call, max_index(call)), flat(call, g), axis=0, reduction="add")
    return reshape(op, sums, call.shape(x))


def max_index(call: Call) -> Value:
    """Where the maxima are in x, counted in row-major order.

    To find them is most of the cost, 9 of 11 ms for (8,64,56²) and 2x2; a comparison of y with every tap is no faster.
    """
    known = call.outputs[1] if len(call.outputs) > 1 else None
    if known is not None and not call.attribute("storage_order", 0):
        return known
    attributes = {name: call.attribute(name) for name in call.attributes() if name != "storage_order"}
    outputs: Any = call.op.MaxPool(call.x, **attributes, _outputs=2)
    index: Value = outputs[1]
    return index


def flat(call: Call, value: Value) -> Value:
    """`value` as a vector."""
    return call.op.Reshape(value, ints(call.op, [-1]))


@rule("AveragePool")
def average_pool(call: Call, g: Value) -> Gradients:
    """Y_o = Σ_k x_(os-a+kd) / n_o, so that dx_q = Σ g_o / n_o over the windows that hold q; n_o counts pixels."""
    at = pooling_windows(call)
    return window_sums(call, call.op.Div(g, window_counts(call, at)), at)


@rule("LpPool")
def lp_pool(call: Call, g: Value) -> Gradients:
    """Y_o = (Σ |x|^p)^(1/p), so that dx_q = sign(x_q) |x_q|^(p-1) Σ g_o y_o^(1-p); 0 from windows of zeros."""
    p, at = call.attribute("p", 2), pooling_windows(call)
    return call.op.Mul(powers(call, p), window_sums(call, shares(call, g, p), at))


@rule("GlobalAveragePool")
def global_average_pool(call: Call, g: Value) -> Gradients:
    """Y = Σ x / n, so that dx = g / n everywhere."""
    op, x = call.op, call.x
    number = op.CastLike(count(op, dims(op, x, 2, call.rank(x))), g)
    return op.Expand(op.Div(g, number), call.shape(x))


@rule("GlobalLpPool")
def global_lp_pool(call: Call, g: Value) -> Gradients:
    """Y = (Σ |x|^p)^(1/p), so that dx = g sign(x) |x|^(p-1) y^(1-p); 0 where all of x is 0."""
    p = call.attribute("p", 2)
    return call.op.Mul(powers(call, p), shares(call, g, p))


@rule("GlobalMaxPool")
def global_max_pool(call: Call, g: Value) -> Gradients:
    """Y = max x: g goes to the maximum, the first in row-major order where there are several."""
    op, x = call.op, call.x
    channels = dims(op, x, 0, 2)
    rows = reshape(op, x, channels, count(op, dims(op, x, 2, call.rank(x))))
    where, column = op.ArgMax(rows, axis=2), reshape(op, g, channels, [1])
    return reshape(op, op.ScatterElements(call.zeros_like(rows), where, column, axis=2), call.shape(x))


def powers(call: Call, p: int) -> Value:
    """Sign(x) |x|^(p-1), the derivative of |x|^p but for a factor of p."""
    op, x = call.op, call.x
    if p == 2:
        return x
    return op.Sign(x) if p == 1 else op.Mul(op.Sign(x), op.Pow(op.Abs(x), call.number(p - 1)))


def shares(call: Call, g: Value, p: int) -> Value:
    """The product g y^(1-p), and 0 where y is 0: as PyTorch has the gradient of a norm."""
    op, y = call.op, call.y
    if p == 1:
        return g
    zero = call.number(0.0)
    is_zero = op.Equal(y, zero)
    safe = op.Where(is_zero, call.number(1.0), y)
    scaled = op.Div(g, safe if p == 2 else op.Pow(safe, call.number(p - 1)))
    return op.Where(is_zero, zero, scaled)


def pooling_windows(call: Call) -> Windows:
    """The windows of a pooling node."""
    return windows(call, call.x, ints(call.op, call.attribute("kernel_shape")))


def window_sums(call: Call, g: Value, at: Windows) -> Value:
    """For every pixel of x the sum of `g` over the windows that hold it; each channel is an image of its own."""
    op, kernel = call.op, known_ints(at.kernel)
    assert kernel is not None
    pads = inner_pads(call, at, kernel)
    if pads is not None:
        means = op.AveragePool(g, kernel_shape=kernel, pads=pads, count_include_pad=1)
        return op.Mul(means, call.number(prod(kernel)))
    images = reshape(op, g, count(op, dims(op, call.y, 0, 2)), [1], spatial(op, call.y))
    images.shape = ir.Shape([None, 1, *list(call.y.shape or [])[2:]])
    ones = op.Expand(call.number(1.0), ints(op, [1, 1, *kernel]))
    return reshape(op, spread(op, images, ones, at, spatial(op, call.x)), call.shape(call.x))


def inner_pads(call: Call, at: Windows, kernel: list[int]) -> list[int] | None:
    """Padding with which the sums over windows are those of a pooling; None where they are not.

    Milliseconds of ConvTranspose and of AveragePool for (8,64,56²), 3x3 windows of stride 1: 8.0 and 1.7.
    """
    if {*at.strides, *at.dilations} != {1} or at.pads is None or call.attribute("ceil_mode", 0):
        return None
    return [kernel[k % at.rank] - 1 - pad for k, pad in enumerate(at.pads)]


def window_counts(call: Call, at: Windows) -> Value:
    """n_o, how many taps of a window lie in the image, or in its padding too: a product of counts along the axes."""
    op, kernel = call.op, known_ints(at.kernel)
    assert kernel is not None
    with_pads, is_cut = call.attribute("count_include_pad", 0), call.attribute("ceil_mode", 0)
    if not is_cut and (with_pads or (at.pads is not None and not any(at.pads))):
        return call.number(prod(kernel))
    first, end = ints(op, [0] * at.rank), spatial(op, call.x)
    if with_pads:
        first, end = fold(op, "Sub", first, at.begins), fold(op, "Add", end, at.ends)
    counts = call.number(1.0)
    for axis in range(at.rank):
        pixels = window_pixels(call, at, axis, kernel[axis])
        inside = op.And(op.GreaterOrEqual(pixels, entry(op, first, axis)), op.Less(pixels, entry(op, end, axis)))
        number = op.ReduceSum(op.Cast(inside, to=int(call.dtype)), ints(op, [1]), keepdims=0)
        counts = op.Mul(op.Unsqueeze(counts, ints(op, [-1])), number)
    return counts


def window_pixels(call: Call, at: Windows, axis: int, kernel: int) -> Value:
    """Pixels of the windows along an axis, (O, K) of int64: o s - a + k d."""
    op, places = call.op, dims(call.op, call.y, axis + 2, axis + 3)
    starts = op.Mul(op.Range(0, op.Squeeze(places), 1), at.strides[axis])
    starts = op.Unsqueeze(op.Sub(starts, entry(op, at.begins, axis)), ints(op, [1]))
    return op.Add(starts, ints(op, [tap * at.dilations[axis] for tap in range(kernel)]))


def entry(op: Builder, vector: Value, axis: int) -> Value:
    """One entry of a vector, (1,)."""
    known = known_ints(vector)
    return op.Slice(vector, [axis], [axis + 1]) if known is None else ints(op, known[axis : axis + 1])
