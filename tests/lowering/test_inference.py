"""What is inferred serves the rewriting: what a model says of its values stays, and what fails is no noise."""

import numpy as np
import onnx
import pytest
from lowering.sampling import parsed, run

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import affine_grid, grid_sample

RNG = np.random.default_rng(0)

DECLARED = """
    warp (float[2, 3, 8, 9] x, float[2, 2, 3] theta, int64[4] size) => (float[A, B, C, D] y, float[E, F, G, H] z)
    <float[P, Q, R, 2] grid, float[I, J, K, L] warped, float[S, T, U, V] smooth> {
        grid = AffineGrid (theta, size)
        warped = GridSample <mode = "linear", padding_mode = "border"> (x, grid)
        smooth = Gelu (warped)
        y = GridSample <mode = "nearest"> (smooth, grid)
        z = Gelu (y)
    }"""


@pytest.mark.parametrize("opset", [None, 16, 22])
@pytest.mark.parametrize("target", TARGETS)
def test_values_that_are_replaced_stay_as_declared(target, opset):
    original = parsed(DECLARED)
    lowered, _ = lower(original, target, opset=opset)
    declared = {value.name: value for value in original.graph.value_info}
    assert {value.name: value for value in lowered.graph.value_info if value.name in declared} == declared


@pytest.mark.parametrize("opset", [None, 16, 22])
@pytest.mark.parametrize("shape", ["symbolic", "none"])
@pytest.mark.parametrize("target", TARGETS)
def test_outputs_stay_as_declared(target, shape, opset):
    original = parsed(DECLARED)
    if shape == "none":
        for output in original.graph.output:
            output.type.tensor_type.ClearField("shape")
    lowered, _ = lower(original, target, opset=opset)
    assert [*lowered.graph.output] == [*original.graph.output]


@pytest.mark.parametrize("target", TARGETS)
def test_the_size_of_an_affine_grid_may_lie_in_a_file(target, tmp_path, monkeypatch):
    model = parsed("""
        stn (float[2, 3, 8, 9] x, float[2, 2, 3] theta) => (float[2, 3, 4, 5] y) <int64[4] size = {2, 3, 4, 5}> {
            grid = AffineGrid (theta, size)
            y = GridSample <padding_mode = "border"> (x, grid)
        }""")
    monkeypatch.chdir(tmp_path)
    onnx.save(model, "model.onnx", save_as_external_data=True, location="model.data", size_threshold=0)
    lowered, _ = lower("model.onnx", target)
    onnx.save(lowered, "lowered.onnx")
    x, theta = (RNG.normal(size=shape).astype(np.float32) for shape in ((2, 3, 8, 9), (2, 2, 3)))
    expected = grid_sample(x, affine_grid(theta, (2, 3, 4, 5)), padding_mode="border")
    np.testing.assert_allclose(run("lowered.onnx", {"x": x, "theta": theta})[0], expected, rtol=1e-5, atol=1e-5)


def test_inference_that_fails_is_silent(capfd, caplog):
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 20]>
        warp (float[1, 2, 4, 5] x, float[1, 3, 4, 2] grid) => (float[1, 2, 3, 4] y, float[3] z) {
            y = GridSample (x, grid)
            z = own.Custom (x)
        }""")
    # ONNX infers nothing where a domain is not imported.
    with pytest.raises(onnx.shape_inference.InferenceError, match="domain own"):
        onnx.shape_inference.infer_shapes(model)
    _, report = lower(model, "portable")
    assert [entry.action for entry in report.entries] == ["expanded"]
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
