"""Networks that PyTorch exported, lowered for every target: they give what PyTorch gives."""

import numpy as np
import onnx
import pytest
from lowering.networks import NETWORKS, exported
from lowering.sampling import left, operators, opset_of, run

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.verification import verify

SAMPLED = [(name, target) for name in NETWORKS for target in TARGETS]


def check(lowered, name):
    _, feed, expected = exported(name)
    for got, wanted in zip(run(lowered, feed), expected, strict=True):
        assert got.dtype == wanted.dtype
        tolerance = NETWORKS[name].tolerance
        np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_network_samples(name):
    assert "GridSample" in operators(exported(name)[0])


@pytest.mark.parametrize("finite", [False, True], ids=["guarded", "finite"])
@pytest.mark.parametrize(("name", "target"), SAMPLED)
def test_agrees_with_pytorch(name, target, finite):
    lowered, report = lower(exported(name)[0], target, assume_finite=finite)
    assert len(report.entries) == len(left(exported(name)[0]))
    check(lowered, name)


@pytest.mark.parametrize(("name", "target"), SAMPLED)
def test_is_verified(name, target):
    model = exported(name)[0]
    result = verify(model, lower(model, target)[0])
    assert result.ok
    assert result.notes == []
    assert len(result.outputs) == len(model.graph.output)


@pytest.mark.parametrize("opset", [20, 22])
@pytest.mark.parametrize("name", NETWORKS)
def test_agrees_at_another_opset(name, opset):
    lowered, _ = lower(exported(name)[0], "portable", opset=opset)
    assert opset_of(lowered) == opset
    check(lowered, name)


@pytest.mark.parametrize("name", NETWORKS)
def test_portable_holds_neither_operator(name):
    assert left(lower(exported(name)[0], "portable")[0]) == []


@pytest.mark.parametrize(("name", "target"), SAMPLED)
def test_inputs_outputs_and_weights_stay(name, target):
    model = exported(name)[0]
    lowered, _ = lower(model, target)
    assert [*lowered.graph.input] == [*model.graph.input]
    assert [*lowered.graph.output] == [*model.graph.output]
    weights = {tensor.name: tensor for tensor in lowered.graph.initializer}
    used = {
        name for node in model.graph.node if node.op_type not in ("GridSample", "AffineGrid") for name in node.input
    }
    # What nothing but a folded or expanded node used may go, and half-precision grids go to float32.
    grids = {"Add", "Sub", "Mul", "Div", "Concat"} if name.endswith("float16") else set()
    spared = {name for node in model.graph.node if node.op_type in grids for name in node.input}
    for tensor in model.graph.initializer:
        if tensor.name in used - spared:
            assert weights[tensor.name] == tensor


@pytest.mark.parametrize("name", NETWORKS)
def test_the_callers_model_is_unchanged(name):
    model = exported(name)[0]
    before = model.SerializeToString()
    for target in TARGETS:
        lower(model, target)
    assert model.SerializeToString() == before
    onnx.checker.check_model(model)
