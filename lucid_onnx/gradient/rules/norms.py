"""Normalisation without a scale: by a deviation, by a norm, and by the channels beside."""

from __future__ import annotations

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value, ints


@rule("MeanVarianceNormalization")
def mean_variance_normalization(call: Call, g: Value) -> Gradients:
    """y = (x - mean) / (d + 1e-9), d the standard deviation: dx = c - mean(c), c = g / (d + 1e-9) - y mean(g y) / d.

    Where all numbers are equal y is 0, and so is the second part.
    """
    op = call.op
    axes = call.attribute("axes", [0, 2, 3])
    centred = op.Sub(call.x, call.reduce("ReduceMean", call.x, axes))
    deviation = op.Sqrt(call.reduce("ReduceMean", op.Mul(centred, centred), axes))
    divisor = op.Where(op.Equal(deviation, 0.0), call.number(1.0), deviation)
    share = op.Div(call.reduce("ReduceMean", op.Mul(g, call.y), axes), divisor)
    grad = op.Sub(op.Div(g, op.Add(deviation, 1e-9)), op.Mul(call.y, share))
    return op.Sub(grad, call.reduce("ReduceMean", grad, axes))


@rule("LpNormalization")
def lp_normalization(call: Call, g: Value) -> Gradients:
    """y = x / n, n the norm: dx = (g - t sum(g y)) / n, t = y for p = 2 and sign(x) for p = 1; 0 where n is 0."""
    op = call.op
    p, axes = call.attribute("p", 2), [call.attribute("axis", -1)]
    norm = call.reduce(f"ReduceL{p}", call.x, axes)
    direction = call.y if p == 2 else op.Sign(call.x)
    grad = op.Sub(g, op.Mul(direction, call.sum(op.Mul(g, call.y), axes)))
    is_zero = op.Equal(norm, 0.0)
    quotient = op.Div(grad, op.Where(is_zero, call.number(1.0), norm))
    return op.Where(is_zero, call.number(0.0), quotient)


@rule("LRN")
def lrn(call: Call, g: Value) -> Gradients:
    """y = x d^-beta with d = bias + alpha / size W(x^2), W the sum over a window of channels.

    With W' the sum over the mirrored window, dx = g d^-beta - 2 alpha beta / size x W'(g y / d).
    """
    op, x = call.op, call.x
    alpha, beta, size = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75), call.attribute("size")
    before = (size - 1) // 2
    after = size - 1 - before
    squares = _window(call, op.Mul(x, x), before, after)
    divisor = op.Add(op.Mul(squares, alpha / size), call.attribute("bias", 1.0))
    shared = _window(call, op.Div(op.Mul(g, call.y), divisor), after, before)
    own = op.Mul(g, op.Pow(divisor, -beta))
    return op.Sub(own, op.Mul(op.Mul(x, shared), 2.0 * alpha * beta / size))


def _window(call: Call, value: Value, before: int, after: int) -> Value:
    """Sums over the channels from `before` to `after` beside each; few enough that slices are cheapest."""
    op, rank = call.op, call.rank(value)
    pads = [before if axis == 1 else 0 for axis in range(rank)] + [after if axis == 1 else 0 for axis in range(rank)]
    padded = op.Pad(value, ints(op, pads))
    most, axis = 2**62, ints(op, [1])
    ends = [shift - before - after or most for shift in range(before + after + 1)]
    slices = [op.Slice(padded, ints(op, [k]), ints(op, [end]), axis) for k, end in enumerate(ends)]
    return op.Sum(*slices)
