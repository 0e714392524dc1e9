"""Reductions over axes, which are an attribute, an input, or all of them.

Below, y stands for the output as often as it was reduced from, x for the input, and g for the gradient likewise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.gradient.shapes import Axes
from lucid_onnx.operators.building import Builder, Value, cast, dims, ints, known_ints


@rule("ReduceSum")
def reduce_sum(call: Call, g: Value) -> Gradients:
    """y = sum of x, so that dx = g."""
    return call.op.Expand(_spread(call, g), call.shape(call.x))


@rule("ReduceMean")
def reduce_mean(call: Call, g: Value) -> Gradients:
    """y = mean of n numbers, so that dx = g / n."""
    return call.op.Expand(call.op.Div(_spread(call, g), _count(call)), call.shape(call.x))


@rule("ReduceMax", "ReduceMin")
def reduce_extreme(call: Call, g: Value) -> Gradients:
    """y = an extreme of x, so that dx = g where x = y; where that is in several places, they share it evenly."""
    op, is_extreme = call.op, call.op.Equal(call.x, _spread(call, call.y))
    share = op.Div(_spread(call, g), _sum(call, cast(op, is_extreme, call.dtype)))
    return op.Where(is_extreme, share, call.number(0.0))


@rule("ReduceL1")
def reduce_l1(call: Call, g: Value) -> Gradients:
    """y = sum of |x|, so that dx = g sign(x), which is 0 where x = 0."""
    return call.op.Mul(_spread(call, g), call.op.Sign(call.x))


@rule("ReduceL2")
def reduce_l2(call: Call, g: Value) -> Gradients:
    """y = the root of the sum of x^2, so that dx = g x / y, and 0 where y = 0."""
    op = call.op
    divisor = op.Where(op.Equal(call.y, call.number(0.0)), call.number(math.inf), call.y)
    return op.Mul(_spread(call, op.Div(g, divisor)), call.x)


@rule("ReduceSumSquare")
def reduce_sum_square(call: Call, g: Value) -> Gradients:
    """y = sum of x^2, so that dx = 2 g x."""
    return call.op.Mul(_spread(call, call.op.Mul(g, 2.0)), call.x)


@rule("ReduceLogSum")
def reduce_log_sum(call: Call, g: Value) -> Gradients:
    """y = log s of s = sum of x, so that dx = g / s; s is summed again, for exp(y) is not as exact."""
    op = call.op
    return op.Expand(op.Div(_spread(call, g), _sum(call, call.x)), call.shape(call.x))


@rule("ReduceLogSumExp")
def reduce_log_sum_exp(call: Call, g: Value) -> Gradients:
    """y = log of the sum of e^x, so that dx = g e^(x - y), at most g; NaN where all x are -inf, as in PyTorch."""
    op = call.op
    return op.Mul(_spread(call, g), op.Exp(op.Sub(call.x, _spread(call, call.y))))


@rule("ReduceProd")
def reduce_prod(call: Call, g: Value) -> Gradients:
    """y = product of x, so that dx_k is g times every x but x_k; nothing is divided, so that factors may be 0."""
    axes = _axes(call)
    if isinstance(axes, Value):
        raise call.unsupported("its axes are computed at run time", "make them a constant")
    axes = range(call.rank(call.x)) if axes is None else axes
    factors = [call.x]
    for axis in axes[:-1]:
        factors.append(call.reduce("ReduceProd", factors[-1], [axis]))
    g = g if call.attribute("keepdims", 1) else call.op.Unsqueeze(g, ints(call.op, axes))
    for x, axis in reversed(list(zip(factors, axes, strict=False))):
        g = _of_factors(call, x, g, axis)
    return g


def _of_factors(call: Call, x: Value, g: Value, axis: int) -> Value:
    """Gradient of the product of `x` along one axis, that of the product being `g`."""
    size = None if x.shape is None else x.shape[axis]
    if isinstance(size, int) and size:
        return _of_pairs(call.op, x, g, axis, size)
    return call.op.Mul(g, _products_of_others(call, x, axis))


def _of_pairs(op: Builder, x: Value, g: Value, axis: int, size: int) -> Value:
    """Half of the factors are multiplied by the other half, until one is left: the work of a few products of all."""
    if size == 1:
        return g
    half, odd = divmod(size, 2)
    a, b, *left = _split(op, x, axis, half, half, odd)
    g = _of_pairs(op, op.Concat(op.Mul(a, b), *left, axis=axis), g, axis, half + odd)
    g, *left = _split(op, g, axis, half, odd)
    return op.Concat(op.Mul(g, b), op.Mul(g, a), *left, axis=axis)


def _split(op: Builder, value: Value, axis: int, *sizes: int) -> Sequence[Value]:
    """Parts of a value along an axis, those of size 0 left out."""
    some = [size for size in sizes if size]
    parts: Any = [value] if len(some) == 1 else op.Split(value, ints(op, some), axis=axis, _outputs=len(some))
    return list(parts)


def _products_of_others(call: Call, x: Value, axis: int) -> Value:
    """For each number along an axis the product of the others: of any size, but as much work as its square."""
    op, rank = call.op, call.rank(x)
    axis %= rank
    numbers = op.Range(0, op.Squeeze(dims(op, x, axis, axis + 1)), 1)
    numbers = op.Unsqueeze(numbers, ints(op, range(1, rank - axis)))
    is_itself = op.Equal(numbers, op.Unsqueeze(numbers, [1]))
    others = op.Where(is_itself, call.number(1.0), op.Unsqueeze(x, [axis]))
    return call.reduce("ReduceProd", others, [axis + 1], keepdims=False)


def _axes(call: Call) -> Axes:
    """Axes that a node reduces: by number, as a value where they are computed at run time, None for all."""
    given = call.optional(1)
    axes = call.attribute("axes") if given is None else known_ints(given)
    if axes is None and given is not None:
        return given
    return axes or ([] if _is_empty_none(call) else None)


def _is_empty_none(call: Call) -> bool:
    """Whether no axes are none; otherwise they are all."""
    return bool(call.attribute("noop_with_empty_axes", 0))


def _spread(call: Call, value: Value) -> Value:
    """`value`, of the shape of the output, in a shape that broadcasts to that of the input."""
    axes = _axes(call)
    if not axes or call.attribute("keepdims", 1):
        return value
    return call.op.Unsqueeze(value, axes)


def _sum(call: Call, value: Value) -> Value:
    """`value`, of the shape of the input, summed over the axes of the node, which stay as 1."""
    axes = _axes(call)
    if not isinstance(axes, Value):
        return call.sum(value, axes)
    return call.op.ReduceSum(value, axes, keepdims=1, noop_with_empty_axes=int(_is_empty_none(call)))


def _count(call: Call) -> Value:
    """How many numbers each number of the output is made of; 1 where there are none."""
    op, axes, shape = call.op, _axes(call), call.x.shape
    if shape is not None and not isinstance(axes, Value):
        reduced = list(shape) if axes is None else [shape[axis] for axis in axes]
        sizes = [size for size in reduced if isinstance(size, int)]
        if sizes == reduced:
            return call.number(max(math.prod(sizes), 1))
    return cast(op, op.Max(op.Div(op.Size(call.x), op.Max(op.Size(call.y), 1)), 1), call.dtype)
