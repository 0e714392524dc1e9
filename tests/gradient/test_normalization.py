"""Normalisation that nothing runs in float64, or that ONNX's checker refuses: float32, against PyTorch's float64."""

import numpy as np
import onnx
import pytest
import torch
from gradient.checking import session
from onnx.reference import ReferenceEvaluator
from torch.nn import functional

import lucid_onnx as lo


def gradients(text, opset, feed):
    """Gradients by onnxruntime, and the upstream gradients that went in."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> case {text}')
    backward = session(lo.gradient(model))
    rng = np.random.default_rng(5)
    seeds = {}
    for value in model.graph.output:
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        seeds[f"{value.name}_grad"] = rng.standard_normal(shape).astype(np.float32)
    names = [f"{name}_grad" for name in feed]
    return backward.run(names, {**feed, **seeds}), seeds


def pytorchs(twin, feed, seeds):
    """The same by PyTorch in float64."""
    tensors = [torch.tensor(array, dtype=torch.float64, requires_grad=True) for array in feed.values()]
    return torch.autograd.grad(twin(*tensors), tensors, [torch.tensor(seed) for seed in seeds.values()])


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def mvn(axes):
    def twin(x):
        deviation = x.var(axes, correction=0, keepdim=True).sqrt()
        return (x - x.mean(axes, keepdim=True)) / (deviation + 1e-9)

    return twin


@pytest.mark.parametrize(
    ("attributes", "axes", "shape"), [("", (0, 2, 3), (2, 3, 4, 2)), ("<axes=[-1, 1]>", (1, 2), (2, 3, 4))]
)
def test_mean_variance_normalization_is_pytorchs(attributes, axes, shape):
    feed, declared = {"x": normal(*shape)}, f"float[{', '.join(map(str, shape))}]"
    text = f"({declared} x) => ({declared} y) {{ y = MeanVarianceNormalization{attributes}(x) }}"
    got, seeds = gradients(text, 20, feed)
    np.testing.assert_allclose(got[0], pytorchs(mvn(axes), feed, seeds)[0], rtol=1e-4, atol=1e-6)


def test_mean_variance_normalization_of_equal_numbers_has_a_finite_gradient():
    text = "(float[2, 3] x) => (float[2, 3] y) { y = MeanVarianceNormalization<axes=[1]>(x) }"
    model = lo.gradient(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> case {text}'))
    seed = normal(2, 3)
    # onnxruntime's kernel divides by the deviation alone, which is 0.
    (grad,) = ReferenceEvaluator(model).run(["x_grad"], {"x": np.full((2, 3), 0.5, np.float32), "y_grad": seed})
    np.testing.assert_allclose(grad, 1e9 * (seed - seed.mean(1, keepdims=True)), rtol=1e-5, atol=200)


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize(("groups", "epsilon"), [(2, 1e-5), (3, 0.1)])
def test_group_normalization_before_opset_21_has_a_scale_a_group(opset, groups, epsilon):
    text = f"""(float[2, 6, 4] x, float[{groups}] s, float[{groups}] b) => (float[2, 6, 4] y)
        {{ y = GroupNormalization<num_groups={groups}, epsilon={epsilon}>(x, s, b) }}"""
    feed = {"x": normal(2, 6, 4), "s": normal(groups), "b": normal(groups)}
    got, seeds = gradients(text, opset, feed)

    def twin(x, s, b):
        each = 6 // groups
        return functional.group_norm(x, groups, s.repeat_interleave(each), b.repeat_interleave(each), epsilon)

    for grad, want in zip(got, pytorchs(twin, feed, seeds), strict=True):
        np.testing.assert_allclose(grad, want, rtol=1e-4, atol=1e-5)


def test_statistics_that_a_layer_normalization_gives_are_read_and_differentiated_again():
    text = """(float[2, 6] x, float[6] s, float[6] b) => (float[2, 6] y)
        { y, m, r = LayerNormalization(x, s, b) }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> case {text}')
    first = lo.gradient(model, "x")
    assert {"m", "r"} <= {name for node in first.graph.node for name in node.input}
    second = lo.gradient(first, "x", "x_grad")
    feed = {
        "x": normal(2, 6),
        "s": normal(6),
        "b": normal(6),
        "y_grad": normal(6, 2).T.copy(),
        "x_grad_grad": normal(2, 6),
    }
    (got,) = session(second).run([second.graph.output[-1].name], feed)
    x, s, b, seed, again = (torch.tensor(array, dtype=torch.float64) for array in feed.values())
    x.requires_grad_()
    (grad,) = torch.autograd.grad(functional.layer_norm(x, (6,), s, b), x, seed, create_graph=True)
    (want,) = torch.autograd.grad(grad, x, again)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batch_normalization_without_channels_is_refused_by_name():
    text = """(float[4] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[4] y)
        { [bn] y = BatchNormalization(x, s, b, m, v) }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> case {text}')
    with pytest.raises(lo.UnsupportedError, match="BatchNormalization node 'bn': its input has no axis of channels"):
        lo.gradient(model)
