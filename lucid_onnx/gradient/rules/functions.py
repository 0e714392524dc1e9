"""Functions of one tensor, element by element: roots, exponentials, angles."""

from __future__ import annotations

import math

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value


@rule("Sqrt")
def sqrt(call: Call, g: Value) -> Gradients:
    """y = sqrt(x), so that dx = g / (2 y): infinite at 0."""
    return call.op.Div(g, call.op.Mul(call.y, 2.0))


@rule("Reciprocal")
def reciprocal(call: Call, g: Value) -> Gradients:
    """y = 1 / x, so that dx = -g y^2."""
    return call.op.Neg(call.op.Mul(g, _square(call, call.y)))


@rule("Exp")
def exp(call: Call, g: Value) -> Gradients:
    """y = e^x, so that dx = g y."""
    return call.op.Mul(g, call.y)


@rule("Log")
def log(call: Call, g: Value) -> Gradients:
    """y = log(x), so that dx = g / x."""
    return call.op.Div(g, call.x)


@rule("Erf")
def erf(call: Call, g: Value) -> Gradients:
    """y = erf(x), so that dx = g 2 / sqrt(pi) e^(-x^2)."""
    bell = call.op.Exp(call.op.Neg(_square(call, call.x)))
    return call.op.Mul(g, call.op.Mul(bell, 2 / math.sqrt(math.pi)))


@rule("Sin")
def sin(call: Call, g: Value) -> Gradients:
    """y = sin(x), so that dx = g cos(x)."""
    return call.op.Mul(g, call.op.Cos(call.x))


@rule("Cos")
def cos(call: Call, g: Value) -> Gradients:
    """y = cos(x), so that dx = -g sin(x)."""
    return call.op.Neg(call.op.Mul(g, call.op.Sin(call.x)))


@rule("Tan")
def tan(call: Call, g: Value) -> Gradients:
    """y = tan(x), so that dx = g (1 + y^2)."""
    return call.op.Mul(g, call.op.Add(_square(call, call.y), 1.0))


@rule("Asin")
def asin(call: Call, g: Value) -> Gradients:
    """y = asin(x), so that dx = g / sqrt(1 - x^2): infinite at -1 and 1."""
    return call.op.Div(g, call.op.Sqrt(_one_less_square(call, call.x)))


@rule("Acos")
def acos(call: Call, g: Value) -> Gradients:
    """y = acos(x), so that dx = -g / sqrt(1 - x^2): infinite at -1 and 1."""
    return call.op.Neg(call.op.Div(g, call.op.Sqrt(_one_less_square(call, call.x))))


@rule("Atan")
def atan(call: Call, g: Value) -> Gradients:
    """y = atan(x), so that dx = g / (1 + x^2)."""
    return call.op.Div(g, call.op.Add(_square(call, call.x), 1.0))


@rule("Sinh")
def sinh(call: Call, g: Value) -> Gradients:
    """y = sinh(x), so that dx = g cosh(x)."""
    return call.op.Mul(g, call.op.Cosh(call.x))


@rule("Cosh")
def cosh(call: Call, g: Value) -> Gradients:
    """y = cosh(x), so that dx = g sinh(x)."""
    return call.op.Mul(g, call.op.Sinh(call.x))


@rule("Tanh")
def tanh(call: Call, g: Value) -> Gradients:
    """y = tanh(x), so that dx = g (1 - y^2)."""
    return call.op.Mul(g, _one_less_square(call, call.y))


@rule("Asinh")
def asinh(call: Call, g: Value) -> Gradients:
    """y = asinh(x), so that dx = g / sqrt(x^2 + 1)."""
    return call.op.Div(g, call.op.Sqrt(call.op.Add(_square(call, call.x), 1.0)))


@rule("Acosh")
def acosh(call: Call, g: Value) -> Gradients:
    """y = acosh(x), so that dx = g / sqrt(x^2 - 1): infinite at 1."""
    # Not -(1 - x^2), which is -0 at 1.
    square_less_one = call.op.Mul(call.op.Sub(call.x, 1.0), call.op.Add(call.x, 1.0))
    return call.op.Div(g, call.op.Sqrt(square_less_one))


@rule("Atanh")
def atanh(call: Call, g: Value) -> Gradients:
    """y = atanh(x), so that dx = g / (1 - x^2): infinite at -1 and 1."""
    return call.op.Div(g, _one_less_square(call, call.x))


def _square(call: Call, x: Value) -> Value:
    return call.op.Mul(x, x)


def _one_less_square(call: Call, x: Value) -> Value:
    """1 - x^2, as a product, which keeps the digits that the square loses near -1 and 1."""
    return call.op.Mul(call.op.Sub(1.0, x), call.op.Add(x, 1.0))
