"""Normalisation."""

import numpy as np
import torch
from gradient.checking import Case
from torch.nn import functional


def _statistics(x, axes):
    """Mean and variance of PyTorch, kept as axes."""
    return x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True)


def _batch(x, s, b, m, v, epsilon=1e-5):
    """PyTorch's own has no gradient of what is running."""
    s, b, m, v = (part.reshape([-1] + [1] * (x.ndim - 2)) for part in (s, b, m, v))
    return (x - m) / torch.sqrt(v + epsilon) * s + b


def _training(momentum=0.9, epsilon=1e-5, outputs=3):
    """Of training, as ONNX has it: the variance that is kept is that of the batch, without Bessel's correction."""

    def twin(x, s, b, m, v):
        mean, variance = (part.flatten() for part in _statistics(x, [k for k in range(x.ndim) if k != 1]))
        y = functional.batch_norm(x, None, None, s, b, training=True, eps=epsilon)
        return (y, m * momentum + mean * (1 - momentum), v * momentum + variance * (1 - momentum))[:outputs]

    return twin


def _layer(axis, epsilon=1e-5):
    def twin(x, s, b=None):
        return functional.layer_norm(x, x.shape[axis:], s.expand(x.shape[axis:]), b, epsilon)

    return twin


def _layer_outputs(*which):
    """Further outputs: mean and inverse deviation over the last two axes."""

    def twin(x, s, b):
        mean, variance = _statistics(x, [-2, -1])
        results = functional.layer_norm(x, x.shape[-2:], s, b), mean, torch.rsqrt(variance + 1e-5)
        return tuple(results[k] for k in which)

    return twin


def _group(groups, epsilon=1e-5):
    return lambda x, s, b: functional.group_norm(x, groups, s, b, epsilon)


def _rms(axis, epsilon=1e-5):
    return lambda x, s: functional.rms_norm(x, x.shape[axis:], s.expand(x.shape[axis:]), epsilon)


def _unit(p, axis):
    return lambda x: x / x.norm(p, axis, keepdim=True)


def _lrn(size, alpha=1e-4, beta=0.75, k=1.0):
    def twin(x):
        before = (size - 1) // 2
        padded = functional.pad(x * x, (0, 0) * (x.ndim - 2) + (before, size - 1 - before))
        squares = sum(padded[:, shift : shift + x.shape[1]] for shift in range(size))
        return x / (k + alpha / size * squares) ** beta

    return twin


_TENTH = float(np.float32(0.1))
"""What an attribute of 0.1 holds."""


def _batch_case(name, shape, twin=_batch, attributes="", outputs="y", **options):
    declared = ", ".join(f"T[{shape if output == 'y' else 3}] {output}" for output in outputs.split(", "))
    return Case(
        f"batchnormalization_{name}",
        f"(T[{shape}] x, T[3] s, T[3] b, T[3] m, T[3] v) => ({declared})"
        f" {{ {outputs} = BatchNormalization{attributes}(x, s, b, m, v) }}",
        twin,
        feed={"v": [0.5, 1.5, 0.25]},
        **options,
    )


CASES = [
    _batch_case("2d", "4,3", half=True),
    _batch_case("3d_opset15", "2,3,4", opset=15),
    _batch_case("4d_opset14", "2,3,2,4", opset=14),
    _batch_case("5d", "2,3,2,1,2"),
    _batch_case("epsilon", "2,3,4", lambda *x: _batch(*x, epsilon=_TENTH), "<epsilon=0.1>"),
    _batch_case("momentum_is_not_used", "2,3,4", attributes="<momentum=0.3>"),
    _batch_case("empty_batch", "0,3,4"),
    _batch_case("training_2d", "4,3", _training(), "<training_mode=1>", "y, rm, rv", half=True),
    _batch_case("training_3d", "2,3,4", _training(_TENTH), "<training_mode=1, momentum=0.1>", "y, rm, rv"),
    _batch_case("training_4d_opset14", "2,3,2,4", _training(), "<training_mode=1>", "y, rm, rv", opset=14),
    _batch_case("training_5d", "2,3,2,1,2", _training(), "<training_mode=1>", "y, rm, rv"),
    _batch_case("training_epsilon", "2,3,4", _training(epsilon=_TENTH), "<training_mode=1, epsilon=0.1>", "y, rm, rv"),
    Case(
        "batchnormalization_training_of_the_variance_alone",
        "(T[4,3] x, T[3] s, T[3] b, T[3] m, T[3] v) => (T[3] rv)"
        "{ y, rm, rv = BatchNormalization<training_mode=1>(x, s, b, m, v) }",
        lambda *x: _training()(*x)[2],
        feed={"v": [0.5, 1.5, 0.25]},
    ),
    Case(
        "batchnormalization_training_of_the_output_alone",
        "(T[4,3,2] x, T[3] s, T[3] b, T[3] m, T[3] v) => (T[4,3,2] y)"
        "{ y, rm, rv = BatchNormalization<training_mode=1>(x, s, b, m, v) }",
        lambda *x: _training()(*x)[0],
        feed={"v": [0.5, 1.5, 0.25]},
    ),
    Case(
        "instancenormalization_3d",
        "(T[2,3,5] x, T[3] s, T[3] b) => (T[2,3,5] y) { y = InstanceNormalization(x, s, b) }",
        lambda x, s, b: functional.instance_norm(x, weight=s, bias=b),
        half=True,
    ),
    Case(
        "instancenormalization_5d_epsilon",
        "(T[2,3,2,1,3] x, T[3] s, T[3] b) => (T[2,3,2,1,3] y) { y = InstanceNormalization<epsilon=0.1>(x, s, b) }",
        lambda x, s, b: functional.instance_norm(x, weight=s, bias=b, eps=_TENTH),
    ),
    Case(
        "instancenormalization_empty_batch",
        "(T[0,3,4] x, T[3] s, T[3] b) => (T[0,3,4] y) { y = InstanceNormalization(x, s, b) }",
        lambda x, s, b: x * s[:, None] + b[:, None],
    ),
    Case(
        "layernormalization",
        "(T[2,3,4] x, T[4] s, T[4] b) => (T[2,3,4] y) { y = LayerNormalization(x, s, b) }",
        _layer(-1),
        half=True,
    ),
    Case(
        "layernormalization_axis_without_bias",
        "(T[2,3,4] x, T[3,4] s) => (T[2,3,4] y) { y = LayerNormalization<axis=1, epsilon=0.1>(x, s) }",
        _layer(1, _TENTH),
    ),
    Case(
        "layernormalization_all_axes",
        "(T[2,3] x, T[2,3] s, T[2,3] b) => (T[2,3] y) { y = LayerNormalization<axis=-2>(x, s, b) }",
        _layer(0),
        opset=17,
    ),
    Case(
        "layernormalization_repeated_scale",
        "(T[2,3,4] x, T[1,4] s, T[4] b) => (T[2,3,4] y) { y = LayerNormalization<axis=1>(x, s, b) }",
        lambda x, s, b: _layer(1)(x, s, b.expand(3, 4)),
    ),
    Case(
        "layernormalization_empty_batch",
        "(T[0,4] x, T[4] s, T[4] b) => (T[0,4] y) { y = LayerNormalization(x, s, b) }",
        _layer(-1),
    ),
    # The statistics are float32 for every dtype, too coarse for differences in float64.
    Case(
        "layernormalization_outputs",
        "(T[2,3,4] x, T[3,4] s, T[3,4] b) => (T[2,3,4] y, T[2,1,1] m, T[2,1,1] r)"
        "{ y, fm, fr = LayerNormalization<axis=1>(x, s, b) m = Cast<to=@T>(fm) r = Cast<to=@T>(fr) }",
        _layer_outputs(0, 1, 2),
        differences=False,
        half=True,
    ),
    Case(
        "layernormalization_mean_alone",
        "(T[2,3,4] x, T[3,4] s, T[3,4] b) => (T[2,1,1] m)"
        "{ y, fm = LayerNormalization<axis=-2>(x, s, b) m = Cast<to=@T>(fm) }",
        _layer_outputs(1),
        differences=False,
        opset=17,
    ),
    Case(
        "layernormalization_deviation_without_mean",
        "(T[2,3,4] x, T[3,4] s, T[3,4] b) => (T[2,3,4] y, T[2,1,1] r)"
        "{ y, , fr = LayerNormalization<axis=-2>(x, s, b) r = Cast<to=@T>(fr) }",
        _layer_outputs(0, 2),
        differences=False,
    ),
    Case(
        "groupnormalization_opset21",
        "(T[2,4,3] x, T[4] s, T[4] b) => (T[2,4,3] y){ y = GroupNormalization<num_groups=2, stash_type=@T>(x, s, b) }",
        _group(2),
        opset=21,
    ),
    Case(
        "groupnormalization_opset22_one_group",
        "(T[2,4,2,2] x, T[4] s, T[4] b) => (T[2,4,2,2] y)"
        "{ y = GroupNormalization<num_groups=1, epsilon=0.1, stash_type=@T>(x, s, b) }",
        _group(1, _TENTH),
        opset=22,
    ),
    Case(
        "groupnormalization_opset21_stash_type",
        "(T[2,4,3] x, T[4] s, T[4] b) => (T[2,4,3] y) { y = GroupNormalization<num_groups=2>(x, s, b) }",
        _group(2),
        opset=21,
        differences=False,
        half=True,
    ),
    Case(
        "rmsnormalization",
        "(T[2,3,4] x, T[4] s) => (T[2,3,4] y) { y = RMSNormalization(x, s) }",
        _rms(-1),
        opset=23,
        half=True,
    ),
    Case(
        "rmsnormalization_axis",
        "(T[2,3,4] x, T[3,4] s) => (T[2,3,4] y) { y = RMSNormalization<axis=1, epsilon=0.1>(x, s) }",
        _rms(1, _TENTH),
        opset=23,
    ),
    Case(
        "rmsnormalization_repeated_scale",
        "(T[2,3,4] x, T[1] s) => (T[2,3,4] y) { y = RMSNormalization<axis=-2, stash_type=@T>(x, s) }",
        _rms(-2),
        opset=23,
    ),
    Case("lpnormalization", "(T[2,3,4] x) => (T[2,3,4] y) { y = LpNormalization(x) }", _unit(2, -1)),
    Case(
        "lpnormalization_axis_opset22",
        "(T[2,3,4] x) => (T[2,3,4] y) { y = LpNormalization<axis=1, p=2>(x) }",
        _unit(2, 1),
        opset=22,
    ),
    Case("lpnormalization_1", "(T[2,3] x) => (T[2,3] y) { y = LpNormalization<axis=0, p=1>(x) }", _unit(1, 0)),
    Case(
        "lpnormalization_of_zeros",
        "(T[2,3] x) => (T[2,3] y) { y = LpNormalization<axis=-1, p=2>(x) }",
        lambda x: x * torch.stack([torch.zeros(()), 1 / x[1].norm()])[:, None],
        feed={"x": [0, 0, 0, 3, -2, 1]},
        differences=False,
    ),
    Case(
        "lpnormalization_1_of_zeros",
        "(T[2,3] x) => (T[2,3] y) { y = LpNormalization<axis=-1, p=1>(x) }",
        lambda x: x * torch.stack([torch.zeros(()), 1 / x[1].norm(1)])[:, None],
        feed={"x": [0, 0, 0, 3, 0, 1]},
        differences=False,
    ),
    Case("lpnormalization_empty", "(T[0,3] x) => (T[0,3] y) { y = LpNormalization<axis=1>(x) }", lambda x: x * 1),
    Case("lrn", "(T[2,5,2,3] x) => (T[2,5,2,3] y) { y = LRN<size=3>(x) }", _lrn(3), half=True),
    Case(
        "lrn_attributes",
        "(T[2,4,2,1] x) => (T[2,4,2,1] y) { y = LRN<size=5, alpha=0.5, beta=2.0, bias=1.5>(x) }",
        _lrn(5, 0.5, 2.0, 1.5),
    ),
    Case(
        "lrn_even_size",
        "(T[2,5,1,2] x) => (T[2,5,1,2] y) { y = LRN<size=4, alpha=0.5, beta=0.5>(x) }",
        _lrn(4, 0.5, 0.5),
    ),
    Case("lrn_size_1", "(T[1,3,2,2] x) => (T[1,3,2,2] y) { y = LRN<size=1, alpha=0.5>(x) }", _lrn(1, 0.5)),
]
