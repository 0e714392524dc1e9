"""Softmax and its logarithm, along an axis."""

from __future__ import annotations

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value


@rule("Softmax")
def softmax(call: Call, g: Value) -> Gradients:
    """y = e^x / sum(e^x), so that dx = y (g - sum(g y))."""
    op, y = call.op, call.y
    total = call.sum(op.Mul(g, y), [call.attribute("axis", -1)])
    return op.Mul(y, op.Sub(g, total))


@rule("LogSoftmax")
def log_softmax(call: Call, g: Value) -> Gradients:
    """y = x - log(sum(e^x)), so that dx = g - e^y sum(g)."""
    total = call.sum(g, [call.attribute("axis", -1)])
    return call.op.Sub(g, call.op.Mul(call.op.Exp(call.y), total))
