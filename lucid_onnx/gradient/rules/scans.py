"""Sums and products of what comes before, equal steps, the largest numbers along an axis, and triangles."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.placing import counting
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Builder, Value, cast


@rule("CumSum")
def cumsum(call: Call, g: Value) -> Gradients:
    """y_k = sum of x up to k, so that dx_k = sum of g from k on."""
    exclusive, reverse = call.attribute("exclusive", 0), call.attribute("reverse", 0)
    return call.op.CumSum(g, call.input(1), exclusive=exclusive, reverse=1 - reverse)


@rule("CumProd")
def cumprod(call: Call, g: Value) -> Gradients:
    """y_k = product of x up to k, so that dx_k = (product of x before k) h_k with h_k = g_k + x_{k+1} h_{k+1}.

    Nothing is divided: x may be 0. Where x_k does not count in y_k, this holds of all x but the last, and of all g but
    the first.
    """
    line, x = _line(call), call.x
    if call.attribute("reverse", 0):
        x, g = line.turned(x), line.turned(g)
    if not call.attribute("exclusive", 0):
        dx = _of_factors(line, x, g)
    else:
        shorter = _Line(line.op, line.axis, line.size - 1)
        last = call.zeros_like(line.part(x, line.size - 1, line.size))
        dx = line.join(_of_factors(shorter, line.part(x, 0, line.size - 1), line.part(g, 1, line.size)), last)
    return line.turned(dx) if call.attribute("reverse", 0) else dx


@dataclass(frozen=True)
class _Line:
    """An axis of known size, and parts of values along it."""

    op: Builder
    axis: int
    size: int

    def part(self, value: Value, start: int, end: int) -> Value:
        """From `start` up to `end`."""
        return self.op.Slice(value, [start], [end], [self.axis])

    def turned(self, value: Value) -> Value:
        """The last first."""
        return self.op.Slice(value, [-1], [-self.size - 1], [self.axis], [-1])

    def join(self, *parts: Value) -> Value:
        """One after the other."""
        return self.op.Concat(*parts, axis=self.axis)


def _line(call: Call) -> _Line:
    """The axis of a node."""
    axis = ir.convenience.get_const_tensor(call.input(1))
    if axis is None:
        raise call.unsupported("its axis is computed at run time", "make it a constant")
    size = None if call.x.shape is None else call.x.shape[int(axis.numpy())]
    if not isinstance(size, int):
        raise call.unsupported("the size of its axis is not known", f"declare the shape of {call.x.name!r}")
    return _Line(call.op, int(axis.numpy()), size)


def _of_factors(line: _Line, x: Value, g: Value) -> Value:
    """Gradient of the products up to each number: h in steps that double how many terms it has."""
    op, size, step = line.op, line.size, 1
    h, factors = g, line.part(x, 1, size)
    while step < size:
        more = op.Mul(factors, line.part(h, step, size))
        h = line.join(op.Add(line.part(h, 0, size - step), more), line.part(h, size - step, size))
        left = max(size - 2 * step, 0)
        factors = op.Mul(line.part(factors, 0, left), line.part(factors, step, step + left))
        step *= 2
    return op.Mul(op.CumProd(x, line.axis, exclusive=1), h)


@rule("Range")
def steps(call: Call, g: Value) -> Gradients:
    """y_k = start + k step, so that dstart = sum of g and dstep = sum of k g; the limit is only how far k goes."""
    op = call.op
    numbers = cast(op, counting(op, call.shape(g)), call.dtype)
    return call.sum(g, None, keepdims=False), None, call.sum(op.Mul(g, numbers), None, keepdims=False)


@rule("TopK")
def topk(call: Call, g: Value) -> Gradients:
    """y = x at some places, all different, so that dx = g there and 0 elsewhere."""
    axis = call.attribute("axis", -1)
    return call.op.ScatterElements(call.zeros_like(call.x), call.outputs[1], g, axis=axis)


@rule("Trilu")
def trilu(call: Call, g: Value) -> Gradients:
    """y = x on one side of a diagonal, so that dx = g there and 0 elsewhere."""
    diagonal = call.optional(1)
    upper = call.attribute("upper", 1)
    return call.op.Trilu(g, upper=upper) if diagonal is None else call.op.Trilu(g, diagonal, upper=upper)
