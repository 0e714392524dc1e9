"""Arithmetic of one or more tensors, which broadcasts; and what passes its input on: casts, bounds and choices."""

from __future__ import annotations

import math

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.lowering.nodes import FLOATS
from lucid_onnx.operators.building import Value, cast, dtype_of


@rule("Add", "Sum", broadcast=True)
def add(call: Call, g: Value) -> Gradients:
    """y = x_1 + x_2 + …, so that dx_k = g."""
    return [g] * len(call.inputs)


@rule("Sub", broadcast=True)
def sub(call: Call, g: Value) -> Gradients:
    """z = x - y, so that dx = g and dy = -g."""
    return g, call.op.Neg(g)


@rule("Mul", broadcast=True)
def mul(call: Call, g: Value) -> Gradients:
    """z = x y, so that dx = g y and dy = g x."""
    return call.op.Mul(g, call.input(1)), call.op.Mul(g, call.x)


@rule("Div", broadcast=True)
def div(call: Call, g: Value) -> Gradients:
    """z = x / y, so that dx = g / y and dy = -g z / y."""
    dx = call.op.Div(g, call.input(1))
    return dx, call.op.Neg(call.op.Mul(g, call.op.Div(call.y, call.input(1))))


@rule("Neg")
def neg(call: Call, g: Value) -> Gradients:
    """y = -x, so that dx = -g."""
    return call.op.Neg(g)


@rule("Abs")
def absolute(call: Call, g: Value) -> Gradients:
    """y = |x|, so that dx = g sign(x): 0 at 0."""
    return call.op.Mul(g, call.op.Sign(call.x))


@rule("Mean", broadcast=True)
def mean(call: Call, g: Value) -> Gradients:
    """y = (x_1 + … + x_n) / n, so that dx_k = g / n."""
    return [call.op.Div(g, float(len(call.inputs)))] * len(call.inputs)


@rule("Pow", broadcast=True)
def power(call: Call, g: Value) -> Gradients:
    """z = x^y, so that dx = g y x^(y - 1) and dy = g z log(x).

    As in PyTorch, dx is 0 where y is 0, and dy is 0 where x is 0 and y is not negative; where x is negative it is NaN.
    """
    op, x, exponent = call.op, call.x, call.input(1)
    y = cast(op, exponent, call.dtype)
    # The slope is that of a constant where x^y has none, and not cut off afterwards: 0 times infinity would be NaN in
    # the derivative of the derivative.
    is_flat = op.And(op.Equal(x, 0.0), op.GreaterOrEqual(y, 0.0))
    dy = op.Mul(g, op.Mul(call.y, op.Log(op.Where(is_flat, 1.0, x))))
    return op.Mul(g, _slope_of_power(call, x, y)), cast(op, dy, dtype_of(exponent, "the exponent"))


def _slope_of_power(call: Call, x: Value, y: Value) -> Value:
    """y x^(y - 1)."""
    op, known = call.op, None if call.wants(1) else _constant(call.input(1))
    if known is not None and known.size == 1 and float(known.numpy().item()) == 2.0:
        return op.Mul(y, x)
    less = op.Sub(y, 1.0)
    if known is None or not known.numpy().all():
        # x^0 has the slope 0 also where x^-1 is infinite, as near 0, or x is NaN.
        is_finite = op.Less(op.Abs(op.Reciprocal(x)), math.inf)
        less = op.Where(op.And(op.Equal(y, 0.0), op.Not(is_finite)), 0.0, less)
    return op.Mul(y, op.Pow(x, less))


@rule("Min", broadcast=True)
def minimum(call: Call, g: Value) -> Gradients:
    """y = min(x_1, …, x_n): g goes to the least, in equal shares to the m that are equal.

    With two inputs this is torch.minimum, with more torch.amin over their stack (a chain of torch.minimum would give
    more to the later). Where y is NaN every input has g, as in torch.minimum.
    """
    return _extremes(call, g, "Greater")


@rule("Max", broadcast=True)
def maximum(call: Call, g: Value) -> Gradients:
    """y = max(x_1, …, x_n): as for Min."""
    return _extremes(call, g, "Less")


def _extremes(call: Call, g: Value, is_beyond: str) -> Gradients:
    op, inputs = call.op, [value for value in call.inputs if value is not None]
    if len(inputs) == 1:
        return g
    equal = [cast(op, op.Equal(value, call.y), call.dtype) for value in inputs]
    # NaN is equal to none.
    share = op.Div(g, op.Max(op.Sum(*equal), 1.0))
    return [op.Where(getattr(op, is_beyond)(value, call.y), 0.0, share) for value in inputs]


@rule("Mod", broadcast=True)
def mod(call: Call, g: Value) -> Gradients:
    """z = x - n y for a whole number n, so that dx = g and dy = -g n; n is rounded down, with fmod towards 0."""
    op, y = call.op, call.input(1)
    # That of the very z: a quotient of one's own may round to the next whole number.
    n = op.Round(op.Div(op.Sub(call.x, call.y), y))
    return g, op.Neg(op.Mul(g, n))


@rule("Where", broadcast=True)
def where(call: Call, g: Value) -> Gradients:
    """z = x where c, y elsewhere, so that dx = g where c and dy = g elsewhere, and 0 in the other places."""
    return None, call.op.Where(call.x, g, 0.0), call.op.Where(call.x, 0.0, g)


@rule("Clip", broadcast=True)
def clip(call: Call, g: Value) -> Gradients:
    """y = min(max(x, low), high): g goes to x where low <= x <= high, to low where x < low, to high where x > high.

    As in torch.clamp: where high < low all of it goes to high, and where they are equal none of it to low.
    """
    op, x, low, high = call.op, call.x, call.optional(1), call.optional(2)
    if low is None and high is None:
        return g
    if high is None:
        return op.Where(op.GreaterOrEqual(x, low), g, 0.0), op.Where(op.Less(x, low), g, 0.0)
    if low is None:
        return op.Where(op.LessOrEqual(x, high), g, 0.0), None, op.Where(op.Greater(x, high), g, 0.0)
    inside = op.And(op.GreaterOrEqual(x, low), op.LessOrEqual(x, high))
    below = op.And(op.Less(x, low), op.Less(low, high))
    above = op.Or(op.Greater(x, high), op.Less(high, low))
    return [op.Where(place, g, 0.0) for place in (inside, below, above)]


@rule("Identity")
def identity(call: Call, g: Value) -> Gradients:
    """y = x, so that dx = g."""
    return g


@rule("Cast", "CastLike")
def cast_back(call: Call, g: Value) -> Gradients:
    """y = x in another dtype, so that dx = g in the dtype of x; between floats only."""
    dtype = dtype_of(call.x, "the input of Cast")
    return cast(call.op, g, dtype) if dtype in FLOATS else None


@rule("Dropout")
def dropout(call: Call, g: Value) -> Gradients:
    """y = x in inference, so that dx = g.

    In training y = x / (1 - ratio) where the mask that was drawn is true and 0 elsewhere, and so is dx for g.
    """
    op, training = call.op, call.optional(2)
    known = None if training is None else _constant(training)
    if training is None or (known is not None and not known.numpy().any()):
        return g
    mask = call.outputs[1] if len(call.outputs) > 1 else None
    if mask is None:
        raise call.unsupported("in training its gradient needs the mask that it drew", "give it its second output")
    ratio = call.optional(1)
    kept = op.Sub(1.0, cast(op, ratio, call.dtype)) if ratio is not None else call.number(0.5)
    dx = op.Where(mask, op.Div(g, kept), 0.0)
    return dx if known is not None else op.Where(training, dx, g)


def _constant(value: Value) -> ir.TensorProtocol | None:
    """The tensor that a value is in every run, if it is known."""
    return None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
