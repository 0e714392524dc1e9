"""Normalisation by a mean and a deviation, of the input itself or given, and with a scale.

Deviations are computed of centred values: the mean of squares less the square of the mean loses all digits where the
mean is large.
"""

from __future__ import annotations

from collections.abc import Sequence

from lucid_onnx.gradient.broadcast import unbroadcast
from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value, cast, count, dims, ints, known_ints, reshape


@rule("BatchNormalization")
def batch_normalization(call: Call, g: Value) -> Gradients:
    """y = s r (x - m) + b with r = 1 / sqrt(v + epsilon), all but x and y of one number a channel.

    Where m and v are given, dx = g s r, ds = sum g r (x - m), db = sum g, dm = -s r db and dv = -s r^2 ds / 2. Where
    they are those of the batch, see `_centred_backwards`.
    """
    x, scale, mean, variance = (cast(call.op, call.input(k), call.dtype) for k in (0, 1, 3, 4))
    if call.rank(x) < 2:
        raise call.unsupported("its input has no axis of channels", "give it one")
    axes = [axis for axis in range(call.rank(x)) if axis != 1]
    if call.attribute("training_mode", 0):
        return _batch_statistics(call, g, x, scale, axes)
    op = call.op
    inverse = _inverse(call, variance)
    scaled = op.Mul(scale, inverse)
    bias_grad = _sum(call, g, axes)
    scale_grad = op.Mul(_sum(call, op.Mul(g, op.Sub(x, _spread(call, mean, axes))), axes), inverse)
    return _as_inputs(
        call,
        op.Mul(g, _spread(call, scaled, axes)),
        scale_grad,
        bias_grad,
        op.Neg(op.Mul(scaled, bias_grad)),
        op.Mul(op.Mul(op.Mul(scaled, inverse), scale_grad), -0.5),
    )


def _batch_statistics(call: Call, g: Value, x: Value, scale: Value, axes: Sequence[int]) -> Gradients:
    """Of training, whose further outputs are M = momentum m + (1 - momentum) mean(x), and V likewise of the variance.

    So dm = momentum dM, dv = momentum dV, and dx has (1 - momentum) (dM + 2 (x - mean) dV) / n besides.
    """
    op, momentum = call.op, call.attribute("momentum", 0.9)
    centred, inverse = _statistics(call, x, axes)
    normal = op.Mul(centred, inverse)
    x_grad = _centred_backwards(call, op.Mul(g, _spread(call, scale, axes)), normal, inverse, axes)
    running = [_given_grad(call, k) for k in (1, 2)]
    extra = [None if grad is None else _spread(call, op.Mul(grad, 1.0 - momentum), axes) for grad in running]
    for grad, slope in zip(extra, (None, op.Mul(centred, 2.0)), strict=True):
        if grad is not None:
            share = op.Div(grad, _number(call, x, axes))
            x_grad = op.Add(x_grad, share if slope is None else op.Mul(share, slope))
    kept = [None if grad is None else op.Mul(grad, momentum) for grad in running]
    return _as_inputs(call, x_grad, _sum(call, op.Mul(g, normal), axes), _sum(call, g, axes), *kept)


@rule("InstanceNormalization")
def instance_normalization(call: Call, g: Value) -> Gradients:
    """y = s (x - mean) / sqrt(variance + epsilon) + b, the statistics over all but batch and channel."""
    op, x, scale = call.op, call.x, call.input(1)
    rank = call.rank(x)
    spatial = range(2, rank)
    channels = [0, *spatial]
    centred, inverse = _statistics(call, x, spatial)
    normal = op.Mul(centred, inverse)
    x_grad = _centred_backwards(call, op.Mul(g, _spread(call, scale, channels)), normal, inverse, spatial)
    return x_grad, _sum(call, op.Mul(g, normal), channels), _sum(call, g, channels)


@rule("LayerNormalization")
def layer_normalization(call: Call, g: Value) -> Gradients:
    """y = s h + b with h = r (x - m) and r = 1 / sqrt(variance + epsilon), the statistics over the axes from `axis` on.

    The outputs m and r have gradients, too: dx has (dm - r h r dr) / n besides.
    """
    op, x, scale = call.op, call.x, call.input(1)
    axes = range(call.axis(x, default=-1), call.rank(x))
    mean, inverse = _given_output(call, 1), _given_output(call, 2)
    if mean is None or inverse is None:
        centred, inverse = _statistics(call, x, axes)
    else:
        centred = op.Sub(x, mean)
    normal = op.Mul(centred, inverse)
    x_grad = _centred_backwards(call, op.Mul(g, scale), normal, inverse, axes)
    mean_grad, inverse_grad = _given_grad(call, 1), _given_grad(call, 2)
    if mean_grad is not None:
        x_grad = op.Add(x_grad, op.Div(mean_grad, _number(call, x, axes)))
    if inverse_grad is not None:
        share = op.Div(op.Mul(inverse_grad, op.Mul(inverse, inverse)), _number(call, x, axes))
        x_grad = op.Sub(x_grad, op.Mul(share, normal))
    bias = call.optional(2)
    return x_grad, unbroadcast(op, op.Mul(g, normal), scale), None if bias is None else unbroadcast(op, g, bias)


@rule("GroupNormalization")
def group_normalization(call: Call, g: Value) -> Gradients:
    """y = s (x - mean) / sqrt(variance + epsilon) + b, the statistics of each group of channels.

    From opset 21 on s and b have a number a channel, before that a number a group.
    """
    op, x, scale = call.op, call.x, call.input(1)
    shape = _grouped(call, x, call.attribute("num_groups"))
    grouped = reshape(op, x, shape)
    centred, inverse = _statistics(call, grouped, [2])
    normal = op.Mul(centred, inverse)
    if call.opset < 21:
        g, axes = reshape(op, g, shape), [0, 2]
        product, scaled = op.Mul(g, normal), op.Mul(g, _spread(call, scale, axes))
    else:
        axes = [axis for axis in range(call.rank(x)) if axis != 1]
        product = op.Mul(g, reshape(op, normal, call.shape(x)))
        scaled = reshape(op, op.Mul(g, _spread(call, scale, axes)), shape)
    x_grad = _centred_backwards(call, scaled, normal, inverse, [2])
    return reshape(op, x_grad, call.shape(x)), _sum(call, product, axes), _sum(call, g, axes)


@rule("RMSNormalization")
def rms_normalization(call: Call, g: Value) -> Gradients:
    """y = s h with h = r x and r = 1 / sqrt(mean(x^2) + epsilon): dx = r (g s - h mean(g s h))."""
    op, x, scale = call.op, call.x, call.input(1)
    axes = range(call.axis(x, default=-1), call.rank(x))
    inverse = _inverse(call, _mean(call, op.Mul(x, x), axes))
    normal = op.Mul(x, inverse)
    x_grad = op.Mul(inverse, _across(call, op.Mul(g, scale), normal, axes))
    return x_grad, unbroadcast(op, op.Mul(g, normal), scale)


def _centred_backwards(call: Call, g: Value, normal: Value, inverse: Value, axes: Sequence[int]) -> Value:
    """The gradient of x for h = r (x - mean), r = 1 / sqrt(variance + epsilon): r (g - mean(g) - h mean(g h))."""
    return call.op.Mul(inverse, call.op.Sub(_across(call, g, normal, axes), _mean(call, g, axes)))


def _across(call: Call, g: Value, normal: Value, axes: Sequence[int]) -> Value:
    """What of g does not lie along h: g - h mean(g h)."""
    return call.op.Sub(g, call.op.Mul(normal, _mean(call, call.op.Mul(g, normal), axes)))


def _statistics(call: Call, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """Centred values, and the inverse of the deviation."""
    centred = call.op.Sub(x, _mean(call, x, axes))
    return centred, _inverse(call, _mean(call, call.op.Mul(centred, centred), axes))


def _inverse(call: Call, variance: Value) -> Value:
    """1 / sqrt(variance + epsilon)."""
    return call.op.Reciprocal(call.op.Sqrt(call.op.Add(variance, call.attribute("epsilon", 1e-5))))


def _mean(call: Call, value: Value, axes: Sequence[int]) -> Value:
    return call.reduce("ReduceMean", value, axes)


def _sum(call: Call, value: Value, axes: Sequence[int]) -> Value:
    """A number a channel, (C,)."""
    return call.sum(value, axes, keepdims=False)


def _spread(call: Call, value: Value, axes: Sequence[int]) -> Value:
    """A number a channel, (C,), with an axis for each of `axes` behind that of the channels."""
    behind = sum(axis > 1 for axis in axes)
    return call.op.Unsqueeze(value, ints(call.op, range(1, behind + 1))) if behind else value


def _number(call: Call, value: Value, axes: Sequence[int]) -> Value:
    """How many numbers a statistic is of, (1,), as a float."""
    counted = call.op.Gather(call.shape(value), ints(call.op, axes))
    return call.op.Cast(count(call.op, counted), to=int(call.dtype))


def _grouped(call: Call, x: Value, groups: int) -> Value:
    """The shape (N, groups, numbers a group) of x (N, C, …)."""
    op = call.op
    others = count(op, dims(op, x, 1, call.rank(x)))
    known = known_ints(others)
    each = op.Div(others, ints(op, [groups])) if known is None else ints(op, [known[0] // groups])
    return op.Concat(dims(op, x, 0, 1), ints(op, [groups]), each, axis=0)


def _given_output(call: Call, position: int) -> Value | None:
    """An optional output, where it is there and as exact as the arithmetic."""
    value = call.outputs[position] if position < len(call.outputs) else None
    return value if value is not None and value.dtype == call.dtype else None


def _given_grad(call: Call, position: int) -> Value | None:
    """The gradient of an optional output, in the dtype of the arithmetic."""
    grad = call.grads[position] if position < len(call.grads) else None
    return None if grad is None else cast(call.op, grad, call.dtype)


def _as_inputs(call: Call, *grads: Value | None) -> list[Value | None]:
    """Gradients in the dtypes of the inputs, which may differ."""
    return [
        grad if grad is None or value is None or value.dtype is None else cast(call.op, grad, value.dtype)
        for grad, value in zip(grads, call.inputs, strict=True)
    ]
