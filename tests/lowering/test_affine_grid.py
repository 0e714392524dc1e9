"""AffineGrid: kept, expanded or folded, and right on every target."""

import cells
import numpy as np
import onnx
import pytest
from lowering.sampling import DTYPES, ELEMENTS, grid_sample_model, left, operators, opset_of, parsed, run, single
from onnx import TensorProto, helper, numpy_helper

from lucid_onnx.conformance.tolerance import judge
from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import affine_grid, grid_sample
from lucid_onnx.reference.schema import MODES, ONNX_MODES

SIZES = {
    4: [(2, 3, 3, 4), (1, 1, 1, 5), (2, 1, 4, 1), (1, 1, 1, 1)],
    5: [(2, 2, 2, 3, 4), (1, 1, 1, 1, 5), (1, 1, 3, 1, 1)],
}
KEEPING = ("onnxruntime-cpu", "openvino")
"""Targets that have a kernel."""


def affine_model(rank, align_corners, dtype, theta=None, size=None, opset=20):
    """One AffineGrid; theta and size are inputs unless they are given."""
    axes = rank - 2
    node = helper.make_node("AffineGrid", ["theta", "size"], ["grid"], "warp", align_corners=int(align_corners))
    inputs = [
        helper.make_tensor_value_info("theta", ELEMENTS[dtype], ["N", axes, axes + 1]),
        helper.make_tensor_value_info("size", TensorProto.INT64, [rank]),
    ]
    given = {"theta": theta, "size": None if size is None else np.array(size)}
    grid = helper.make_tensor_value_info("grid", ELEMENTS[dtype], [None] * rank)
    model = single(node, [value for value in inputs if given[value.name] is None], grid, opset)
    model.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in given.items() if v is not None)
    return model


def drawn_theta(size, dtype):
    axes = len(size) - 2
    return cells.generator("theta", size).standard_normal((size[0], axes, axes + 1)).astype(DTYPES[dtype])


def check(grid, theta, size, align_corners, dtype):
    assert grid.dtype == DTYPES[dtype]
    verdict = judge(grid, lambda working: affine_grid(theta.astype(working), size, align_corners), dtype)
    assert verdict.ok, (size, verdict)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("align_corners", [False, True], ids=["edges", "corners"])
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("target", TARGETS)
def test_agrees_with_the_reference(target, rank, align_corners, dtype):
    dynamic, _ = lower(affine_model(rank, align_corners, dtype), target)
    for size in SIZES[rank]:
        theta = drawn_theta(size, dtype)
        constant, _ = lower(affine_model(rank, align_corners, dtype, size=size), target)
        for model, feed in ((dynamic, {"theta": theta, "size": np.array(size)}), (constant, {"theta": theta})):
            onnx.checker.check_model(model, full_check=True)
            check(run(model, feed)[0], theta, size, align_corners, dtype)


@pytest.mark.parametrize("opset", [16, 18, 22])
@pytest.mark.parametrize("target", TARGETS)
def test_goes_to_any_opset_from_16_up(target, opset):
    lowered, _ = lower(affine_model(4, False, "float32"), target, opset=opset)
    theta = drawn_theta(SIZES[4][0], "float32")
    assert opset_of(lowered) == opset
    assert opset >= 20 or left(lowered) == []
    check(run(lowered, {"theta": theta, "size": np.array(SIZES[4][0])})[0], theta, SIZES[4][0], False, "float32")


@pytest.mark.parametrize("target", TARGETS)
def test_only_targets_with_a_kernel_keep_it(target):
    lowered, _ = lower(affine_model(4, False, "float32", size=(2, 3, 4, 5)), target)
    assert left(lowered) == (["AffineGrid"] if target in KEEPING else [])


@pytest.mark.parametrize("target", KEEPING)
@pytest.mark.parametrize(
    ("size", "align_corners", "kept"),
    [
        ((1, 1, 3, 4), True, True),
        ((1, 1, 3, 1), True, False),
        (None, True, False),
        ((1, 1, 3, 1), False, True),
        (None, False, True),
    ],
)
def test_kernel_is_kept_unless_an_axis_may_have_one_pixel(target, size, align_corners, kept):
    lowered, report = lower(affine_model(4, align_corners, "float32", size=size), target)
    assert left(lowered) == (["AffineGrid"] if kept else [])
    assert [entry.action for entry in report.entries] == ["kept" if kept else "expanded"]
    assert ("axis of one pixel" in report.entries[0].why) == (not kept)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("target", TARGETS)
def test_constant_theta_and_size_are_folded(target, rank, dtype):
    size = SIZES[rank][0]
    theta = drawn_theta(size, dtype)
    lowered, report = lower(affine_model(rank, True, dtype, theta, size), target)
    assert report.entries[0].action == "folded"
    assert operators(lowered) == ["Identity"]
    assert [tensor.dims for tensor in lowered.graph.initializer] == [[size[0], *size[2:], rank - 2]]
    check(run(lowered, {})[0], theta, size, True, dtype)


def test_initializers_that_are_inputs_are_no_constants():
    size, theta = SIZES[4][0], drawn_theta(SIZES[4][0], "float32")
    model = affine_model(4, False, "float32", theta, size)
    model.graph.input.append(helper.make_tensor_value_info("theta", TensorProto.FLOAT, theta.shape))
    lowered, report = lower(model, "portable")
    assert report.entries[0].action == "expanded"
    check(run(lowered, {"theta": 2 * theta})[0], 2 * theta, size, False, "float32")


def test_theta_of_nan_and_infinity_is_folded_as_the_reference_has_it():
    theta = np.array([[[np.nan, 0, 0], [np.inf, 1, 0]]], np.float32)
    lowered, report = lower(affine_model(4, False, "float32", theta, (1, 1, 2, 3)))
    assert report.entries[0].action == "folded"
    np.testing.assert_allclose(run(lowered, {})[0], affine_grid(theta, (1, 1, 2, 3)), rtol=1e-6)


TRANSFORMER = """
    stn (float[2, 3, 8, 9] x) => (float[2, 3, 3, 4] y)
    <int64[4] size = {2, 3, 3, 4}, float[2, 2, 3] theta = {0.9, 0.1, 0, -0.1, 1.1, 0.2, 1, 0, 0, 0.2, 0.8, -0.3}> {
        grid = AffineGrid (theta, size)
        y = GridSample <mode = "MODE", padding_mode = "border"> (x, grid)
    }"""


@pytest.mark.parametrize("mode", ONNX_MODES)
@pytest.mark.parametrize("target", TARGETS)
def test_sampling_behind_a_folded_grid_agrees(target, mode):
    model = parsed(TRANSFORMER.replace("MODE", mode))
    theta, size = (
        numpy_helper.to_array(tensor) for tensor in sorted(model.graph.initializer, key=lambda t: -len(t.dims))
    )
    x = cells.image((2, 3, 8, 9), np.float32)
    lowered, report = lower(model, target)
    assert report.entries[0].action == "folded"
    expected = grid_sample(x, affine_grid(theta, size), ONNX_MODES[mode], "border")
    np.testing.assert_allclose(run(lowered, {"x": x})[0], expected, rtol=1e-5, atol=1e-5)


def test_folded_grid_leaves_constants_instead_of_arithmetic():
    lowered, _ = lower(parsed(TRANSFORMER.replace("MODE", "nearest")), "portable")
    assert not {"Round", "Floor", "MatMul", "AffineGrid", "Min", "Max"} & set(operators(lowered))


def border_model(mode="bilinear", points=None):
    """A border sampling, whose grid is an initializer if `points` are given."""
    model = grid_sample_model((4, mode, "border", False), "float32", 20, (1, 2, 4, 5), (2, 3))
    if points is not None:
        model.graph.input.pop()
        model.graph.initializer.append(numpy_helper.from_array(points, "grid"))
    return model


POINTS = cells.generator("constant grid").uniform(-1.2, 1.2, (1, 2, 3, 2)).astype(np.float32)
WITH_NAN = np.where(np.arange(12).reshape(1, 2, 3, 2) % 5 == 0, np.float32(np.nan), POINTS)


@pytest.mark.parametrize(
    ("points", "guarded"), [(POINTS, False), (WITH_NAN, True), (POINTS * 1e6, True)], ids=["finite", "NaN", "far"]
)
def test_a_constant_grid_is_guarded_unless_it_is_finite_and_near(points, guarded):
    _, report = lower(border_model(points=points), "tensorrt")
    assert ("non-finite" in report.entries[0].why) == guarded


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("points", [POINTS, WITH_NAN, POINTS * 1e6], ids=["finite", "NaN", "far"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_grid_agrees(target, points, mode):
    x = cells.image((1, 2, 4, 5), np.float32)
    lowered, _ = lower(border_model(mode, points), target)
    expected = grid_sample(x, points, mode, "border")
    np.testing.assert_allclose(run(lowered, {"X": x})[0], expected, rtol=1e-5, atol=2e-5)


def test_indices_of_a_constant_grid_are_folded():
    dynamic, _ = lower(border_model("nearest"), "portable")
    constant, _ = lower(border_model("nearest", POINTS), "portable")
    assert "Round" in operators(dynamic)
    assert not {"Round", "Mul", "Div", "Max", "Min"} & {*operators(constant)}
    assert len(constant.graph.node) < len(dynamic.graph.node) / 2
