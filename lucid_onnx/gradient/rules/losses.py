"""Losses of labels: of each sample, summed, or averaged by weight."""

from __future__ import annotations

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value, ints, reshape


@rule("NegativeLogLikelihoodLoss")
def negative_log_likelihood(call: Call, g: Value) -> Gradients:
    """y = -w_t x_t for the label t, so that dx_t = -w_t g and dw_t = -x_t g.

    They are summed, or divided by the sum W of all w_t too, so that dw_t = -(x_t + y) g / W. Samples that are ignored
    have no part in any of this: where all are, y is NaN and the gradients are 0.
    """
    samples = _Samples(call, g)
    return samples.scatter(call.zeros_like(call.x)), None, samples.of_weights(call.x) if call.wants(2) else None


@rule("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(call: Call, g: Value) -> Gradients:
    """The same of x = log_softmax(s), which is an output too; then ds = dx - e^x sum(dx)."""
    op, samples = call.op, _Samples(call, g)
    x, dx = (call.outputs[1], call.grads[1]) if len(call.outputs) > 1 else (None, None)
    minus_total = samples.scale if dx is None else op.Sub(samples.scale, call.sum(dx, [1]))
    ds = op.Mul(op.Softmax(call.x, axis=1) if x is None else op.Exp(x), minus_total)
    ds = samples.scatter(ds if dx is None else op.Add(dx, ds))
    if not call.wants(2):
        return ds
    return ds, None, samples.of_weights(op.LogSoftmax(call.x, axis=1) if x is None else x)


class _Samples:
    """The samples of a loss of x (N, C, D…) and labels (N, D…); here everything about them is (N, 1, D…).

    Attributes
    ----------
    scale : Value
        w_t g, or w_t g / W: by this y changes with -x_t.
    """

    def __init__(self, call: Call, g: Value) -> None:
        self._call, self._op = call, call.op
        axis, weights, ignore = ints(self._op, [1]), call.optional(2), call.attribute("ignore_index")
        index = self._op.Unsqueeze(call.input(1), axis)
        self._is_ignored = None if ignore is None else self._op.Equal(index, ignore)
        # What is ignored need not be a class.
        self._index = self._kept(index, 0)
        weight = self._op.Gather(weights, self._index) if weights is not None else self._ones()
        self._reduction = call.attribute("reduction", "mean")
        self._g = self._op.Unsqueeze(g, axis) if self._reduction == "none" else g
        if self._reduction == "mean":
            self._g = self._op.Div(g, call.sum(self._kept(weight, 0.0), None, keepdims=False))
        self.scale = self._kept(self._op.Mul(weight, self._g), 0.0)

    def scatter(self, onto: Value) -> Value:
        """`onto` (N, C, D…) with what x_t adds to the gradient."""
        return self._op.ScatterElements(onto, self._index, self._op.Neg(self.scale), axis=1, reduction="add")

    def of_weights(self, x: Value) -> Value:
        """The gradient of the weights, (C,)."""
        loss = self._op.Neg(self._op.GatherElements(x, self._index, axis=1))
        if self._reduction == "mean":
            loss = self._op.Sub(loss, self._call.y)
        each = self._kept(self._op.Mul(loss, self._g), 0.0)
        flat = [reshape(self._op, value, [-1]) for value in (self._index, each)]
        zeros = self._call.zeros_like(self._call.input(2))
        return self._op.ScatterElements(zeros, *flat, axis=0, reduction="add")

    def _kept(self, value: Value, zero: float) -> Value:
        return value if self._is_ignored is None else self._op.Where(self._is_ignored, zero, value)

    def _ones(self) -> Value:
        return self._op.Expand(self._call.number(1.0), self._call.shape(self._index))
