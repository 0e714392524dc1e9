"""Gradients of whole networks: of the zoo, and of networks that PyTorch exports, against PyTorch's own."""

import copy

import numpy as np
import pytest
from lowering.networks import NETWORKS, exported
from twins import CASES, with_a_moving_theta

import lucid_onnx as lo

torch = pytest.importorskip("torch", reason="PyTorch is the witness")


def assert_close(got, want, tolerance, name):
    """Differences within `tolerance` of the largest element."""
    assert got.shape == want.shape, name
    scale = float(np.max(np.abs(want), initial=0.0))
    np.testing.assert_allclose(got.astype("f"), want, rtol=0, atol=tolerance * scale + 1e-6, err_msg=name)


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable"])
@pytest.mark.parametrize(("model", "twin", "arguments"), CASES)
def test_models_of_the_zoo(tmp_path, model, twin, arguments, target):
    module, reference = model(**arguments), twin(**arguments)
    with_a_moving_theta(module, reference)
    lo.export(module, tmp_path / "model.onnx")
    x = np.random.default_rng(5).standard_normal((3, arguments["channels"], *arguments["sizes"])).astype(np.float32)
    image = torch.tensor(x, requires_grad=True)
    outputs = reference(image)
    parameters = dict(reference.named_parameters())
    generator = torch.Generator().manual_seed(1)
    seeds = [torch.randn(output.shape, generator=generator) for output in outputs]
    want = torch.autograd.grad(outputs, [image, *parameters.values()], seeds)
    differentiated = lo.gradient(tmp_path / "model.onnx", ["X", *parameters], target=target)
    names = [value.name for value in differentiated.graph.input if value.name.endswith("_grad")]
    feed = {"X": x, **{name: seed.numpy() for name, seed in zip(names, seeds, strict=True)}}
    results = lo.session(differentiated).run([f"{name}_grad" for name in ("X", *parameters)], feed)
    for name, got, expected in zip(("X", *parameters), results, want, strict=True):
        assert_close(got, expected.numpy(), 2e-4, name)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_pytorch_exports(name):
    model, feed, outputs = exported(name)
    network = NETWORKS[name]
    module, _ = network.build()
    module = copy.deepcopy(module).float()
    initializers = {tensor.name for tensor in model.graph.initializer}
    parameters = {key: value for key, value in module.named_parameters() if key in initializers}
    inputs = {key: array for key, array in feed.items() if np.issubdtype(array.dtype, np.floating)}
    tensors = [torch.tensor(array).float() if key in inputs else torch.tensor(array) for key, array in feed.items()]
    for key, tensor in zip(feed, tensors, strict=True):
        tensor.requires_grad_(key in inputs)
    results = module(*tensors)
    results = results if isinstance(results, tuple) else (results,)
    rng = np.random.default_rng(2)
    seeds = {
        f"{value.name}_grad": rng.standard_normal(array.shape).astype(array.dtype)
        for value, array in zip(model.graph.output, outputs, strict=True)
    }
    pairs = [(r, torch.tensor(s).float()) for r, s in zip(results, seeds.values(), strict=True) if r.requires_grad]
    leaves = {key: tensor for key, tensor in zip(feed, tensors, strict=True) if key in inputs} | parameters
    want = torch.autograd.grad([r for r, _ in pairs], list(leaves.values()), [s for _, s in pairs], allow_unused=True)
    differentiated = lo.gradient(model, list(leaves))
    got = lo.session(differentiated).run([f"{key}_grad" for key in leaves], {**feed, **seeds})
    tolerance = 2e-2 if "float16" in name else 5e-4
    for key, leaf, ours, theirs in zip(leaves, leaves.values(), got, want, strict=True):
        assert_close(ours, np.zeros(leaf.shape, "f") if theirs is None else theirs.numpy(), tolerance, key)
