"""Activations, element by element. At a kink each has the derivative that PyTorch gives it."""

from __future__ import annotations

import math

import numpy as np

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value


@rule("Relu")
def relu(call: Call, g: Value) -> Gradients:
    """y = max(x, 0), so that dx = g where x > 0, and 0 elsewhere, at 0 too."""
    return call.op.Where(call.op.LessOrEqual(call.y, 0.0), 0.0, g)


@rule("ThresholdedRelu")
def thresholded_relu(call: Call, g: Value) -> Gradients:
    """y = x where x > alpha and 0 elsewhere, so that dx = g where x > alpha; 0 at alpha."""
    return call.op.Where(call.op.LessOrEqual(call.x, _number(call, "alpha", 1.0)), 0.0, g)


@rule("LeakyRelu")
def leaky_relu(call: Call, g: Value) -> Gradients:
    """y = x where x > 0 and alpha x elsewhere, so that dx = g or alpha g; alpha g at 0."""
    is_positive = call.op.Greater(call.x, 0.0)
    return call.op.Where(is_positive, g, call.op.Mul(g, _number(call, "alpha", 0.01)))


@rule("PRelu", broadcast=True)
def prelu(call: Call, g: Value) -> Gradients:
    """y = x where x > 0 and s x elsewhere, so that dx = g or s g and ds = 0 or x g; dx = s g at 0."""
    is_positive = call.op.Greater(call.x, 0.0)
    dx = call.op.Where(is_positive, g, call.op.Mul(g, call.input(1)))
    return dx, call.op.Where(is_positive, 0.0, call.op.Mul(g, call.x))


@rule("Elu")
def elu(call: Call, g: Value) -> Gradients:
    """y = x where x > 0 and alpha (e^x - 1) elsewhere, so that dx = g or (y + alpha) g; alpha g at 0."""
    return _exponential(call, g, call.op.Add(call.y, _number(call, "alpha", 1.0)), 1.0)


@rule("Selu")
def selu(call: Call, g: Value) -> Gradients:
    """y = gamma x where x > 0 and gamma alpha (e^x - 1) elsewhere, so that dx = gamma g or (y + gamma alpha) g.

    It is gamma alpha g at 0.
    """
    alpha, gamma = _number(call, "alpha", 1.67326319217681884765625), _number(call, "gamma", 1.05070102214813232421875)
    return _exponential(call, g, call.op.Add(call.y, gamma * alpha), gamma)


@rule("Celu")
def celu(call: Call, g: Value) -> Gradients:
    """y = x where x > 0 and alpha (e^(x / alpha) - 1) elsewhere, so that dx = g or (y / alpha + 1) g; g at 0."""
    alpha = _number(call, "alpha", 1.0)
    return _exponential(call, g, call.op.Add(call.op.Div(call.y, alpha), 1.0), 1.0)


def _exponential(call: Call, g: Value, slope: Value, positive: float) -> Value:
    """`slope` times g where x is not positive, and the number `positive` times g where it is.

    The slope comes from y, not from e^x, which overflows where it is not wanted.
    """
    op = call.op
    steep = g if positive == 1.0 else op.Mul(g, positive)
    return op.Where(op.LessOrEqual(call.x, 0.0), op.Mul(g, slope), steep)


@rule("Sigmoid")
def sigmoid(call: Call, g: Value) -> Gradients:
    """y = 1 / (1 + e^-x), so that dx = g y (1 - y)."""
    return call.op.Mul(g, call.op.Mul(call.y, call.op.Sub(1.0, call.y)))


@rule("HardSigmoid")
def hard_sigmoid(call: Call, g: Value) -> Gradients:
    """y = min(max(alpha x + beta, 0), 1), so that dx = alpha g where 0 < y < 1, and 0 at 0 and at 1."""
    op, y = call.op, call.y
    inside = op.And(op.Greater(y, 0.0), op.Less(y, 1.0))
    return op.Where(inside, op.Mul(g, _number(call, "alpha", 0.2)), 0.0)


@rule("Swish")
def swish(call: Call, g: Value) -> Gradients:
    """y = x s for s = sigmoid(alpha x), so that dx = g (s + alpha y (1 - s))."""
    op, alpha = call.op, _number(call, "alpha", 1.0)
    s = op.Sigmoid(call.x if alpha == 1.0 else op.Mul(call.x, alpha))
    return op.Mul(g, op.Add(s, op.Mul(op.Mul(call.y, alpha), op.Sub(1.0, s))))


@rule("HardSwish")
def hard_swish(call: Call, g: Value) -> Gradients:
    """y = x min(max(x / 6 + 1/2, 0), 1), so that dx = g (x / 3 + 1/2) inside; 0 at -3, g at 3."""
    op, x = call.op, call.x
    middle = op.Mul(g, op.Add(op.Div(x, 3.0), 0.5))
    return op.Where(op.LessOrEqual(x, -3.0), 0.0, op.Where(op.Less(x, 3.0), middle, g))


@rule("Softplus")
def softplus(call: Call, g: Value) -> Gradients:
    """y = log(1 + e^x), so that dx = g sigmoid(x)."""
    return call.op.Mul(g, call.op.Sigmoid(call.x))


@rule("Softsign")
def softsign(call: Call, g: Value) -> Gradients:
    """y = x / (1 + |x|), so that dx = g / (1 + |x|)^2."""
    size = call.op.Add(call.op.Abs(call.x), 1.0)
    return call.op.Div(g, call.op.Mul(size, size))


@rule("Mish")
def mish(call: Call, g: Value) -> Gradients:
    """y = x t for t = tanh(softplus(x)), so that dx = g (t + x sigmoid(x) (1 - t^2))."""
    op, x = call.op, call.x
    t = op.Tanh(op.Softplus(x))
    rise = op.Mul(op.Mul(x, op.Sigmoid(x)), op.Sub(1.0, op.Mul(t, t)))
    return op.Mul(g, op.Add(t, rise))


@rule("Gelu")
def gelu(call: Call, g: Value) -> Gradients:
    """y = x Phi(x), so that dx = g (Phi(x) + x Phi'(x)).

    Phi is the normal distribution, (1 + erf(x / sqrt(2))) / 2, or with approximate="tanh" (1 + tanh(u)) / 2 for
    u = sqrt(2 / pi) (x + 0.044715 x^3).
    """
    approximate = call.attribute("approximate", "none")
    phi, density = _approximate_normal(call) if approximate == "tanh" else _normal(call)
    return call.op.Mul(g, call.op.Add(phi, call.op.Mul(call.x, density)))


def _normal(call: Call) -> tuple[Value, Value]:
    """The normal distribution and its density."""
    op, x = call.op, call.x
    phi = op.Mul(op.Add(op.Erf(op.Mul(x, math.sqrt(0.5))), 1.0), 0.5)
    return phi, op.Mul(op.Exp(op.Mul(op.Mul(x, x), -0.5)), 1 / math.sqrt(2 * math.pi))


def _approximate_normal(call: Call) -> tuple[Value, Value]:
    """The same by way of tanh."""
    op, x = call.op, call.x
    scale, cubic = math.sqrt(2 / math.pi), 0.044715
    square = op.Mul(x, x)
    t = op.Tanh(op.Mul(x, op.Add(op.Mul(square, scale * cubic), scale)))
    slope = op.Add(op.Mul(square, 1.5 * scale * cubic), 0.5 * scale)
    return op.Mul(op.Add(t, 1.0), 0.5), op.Mul(op.Sub(1.0, op.Mul(t, t)), slope)


@rule("Shrink")
def shrink(call: Call, g: Value) -> Gradients:
    """y = x + bias where x < -lambd, x - bias where x > lambd, 0 between, so that dx = g outside; 0 at the ends."""
    op = call.op
    return op.Where(op.LessOrEqual(op.Abs(call.x), _number(call, "lambd", 0.5)), 0.0, g)


def _number(call: Call, name: str, default: float) -> float:
    """A float attribute: a number of float32, and so is its default."""
    return float(np.float32(call.attribute(name, default)))
