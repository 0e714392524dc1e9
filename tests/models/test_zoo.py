"""The zoo without its twins: how models start, what they export with, and what they refuse."""

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.models import ZOO, SpatialTransformer


def test_a_spatial_transformer_starts_at_the_identity(tmp_path):
    lo.export("spatial_transformer", tmp_path / "st.onnx", sizes=(12, 10), channels=2)
    x = np.random.default_rng(0).standard_normal((2, 2, 12, 10)).astype(np.float32)
    y, theta = lo.session(tmp_path / "st.onnx").run(None, {"X": x})
    np.testing.assert_array_equal(theta, np.tile(np.eye(2, 3, dtype=np.float32), (2, 1, 1)))
    np.testing.assert_allclose(y, x, atol=1e-5)


def test_the_seed_decides_on_the_weights():
    first, again, other = (SpatialTransformer(seed=seed).state_dict() for seed in (1, 1, 2))
    name = "localization.conv1.weight"
    np.testing.assert_array_equal(first[name].numpy(), again[name].numpy())
    assert (first[name].numpy() != other[name].numpy()).any()


@pytest.mark.parametrize("name", ZOO)
def test_every_model_of_the_zoo_exports_with_its_defaults(tmp_path, name):
    model = lo.export(name, tmp_path / "model.onnx")
    lo.session(tmp_path / "model.onnx")
    assert {node.domain for node in model.graph.node} == {""}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("stn", {"sizes": (3, 28)}, "sizes must be .* each 4 or more"),
        ("spatial_transformer", {"sizes": (28,)}, r"sizes must be \(H, W\) or \(D, H, W\)"),
        ("spatial_transformer", {"output_sizes": (3, 3, 3)}, r"output_sizes must be \(H, W\)"),
        ("affine_warp", {"mode": "linear"}, "mode must be one of"),
        ("affine_warp", {"channels": 0}, "channels must be 1 or more.*got 0"),
        ("affine_warp", {"rank": 5, "sizes": (4, 4)}, r"sizes must be \(D, H, W\).*got \(4, 4\)"),
        ("stn", {"sizes": 28}, "sizes must be.*got 28"),
        ("stn", {"sizes": (28.0, 28.0)}, "sizes must be"),
        ("stn", {"sizes": (2**40, 4)}, "less than 2147483648"),
        ("stn", {"seed": -1}, "seed must be 0 or more"),
        ("stn", {"classes": True}, "classes must be 1 or more.*got True"),
        ("stn", {"channels": "3"}, "channels must be 1 or more.*got '3'"),
        ("stn", {"channels": None}, "channels must be 1 or more.*got None"),
        ("stn", {"classes": None}, "classes must be 1 or more.*got None"),
        ("spatial_transformer", {"seed": None}, "seed must be 0 or more.*got None"),
        ("affine_warp", {"rank": 3}, "rank must be 4 or 5; got 3"),
        ("stn", {"classes": 0}, "classes must be 1 or more.*got 0"),
        ("stn", {"size": (28, 28)}, "the model stn has no argument size; it takes sizes, channels"),
    ],
)
def test_wrong_arguments_say_what_was_expected(tmp_path, name, arguments, message):
    with pytest.raises(ValueError, match=message):
        lo.export(name, tmp_path / "model.onnx", **arguments)
    assert not list(tmp_path.iterdir())
