"""Samplings in model-local functions: a copy for each way in which a function is called."""

import numpy as np
import onnx
import pytest
from lowering.sampling import nodes, run
from onnx import helper, numpy_helper

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import grid_sample

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 2, 5, 4)).astype(np.float32)
GRID = RNG.uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
VOLUME = RNG.normal(size=(2, 2, 3, 5, 4)).astype(np.float32)
POINTS = RNG.uniform(-1.3, 1.3, (2, 2, 3, 4, 3)).astype(np.float32)

ATTRIBUTES = """
    g (float[N, 2, H, W] x, float[N, 3, 4, 2] grid)
      => (float[N, 2, 3, 4] a, float[N, 2, 3, 4] b, float[N, 2, 3, 4] c, float[N, 2, 3, 4] d) {
        [a] a = local.Warp <how = "linear", edge = "border"> (x, grid)
        [b] b = local.Warp <how = "cubic", edge = "reflection", corners = 1> (x, grid)
        [c] c = local.Warp <how = "nearest"> (x, grid)
        [d] d = local.Warp <how = "linear", edge = "border"> (x, grid)
    }
    <domain: "local", opset_import: ["" : 20]>
    Warp <how, edge: string = "zeros", corners: int = 0> (image, points) => (y) {
        [s] y = GridSample <mode: string = @how, padding_mode: string = @edge, align_corners: int = @corners>
            (image, points)
    }"""

RANKS = """
    g (float[N, 2, H, W] x, float[N, 3, 4, 2] grid, float16[N, 2, H, W] half, float16[N, 3, 4, 2] half_grid,
       float[N, 2, D, H, W] volume, float[N, 2, 3, 4, 3] points)
      => (float[N, 2, 3, 4] a, float16[N, 2, 3, 4] b, float[N, 2, 2, 3, 4] c) {
        a = local.Warp (x, grid)
        b = local.Warp (half, half_grid)
        c = local.Warp (volume, points)
    }
    <domain: "local", opset_import: ["" : 20]> Warp (image, points) => (y) {
        [s] y = GridSample <padding_mode = "border"> (image, points)
    }"""

NESTED = """
    g (float[N, 2, H, W] x, float[N, 3, 4, 2] grid) => (float[N, 2, 3, 4] y) {
        y = local.Twice <outer = "nearest"> (x, grid)
    }
    <domain: "local", opset_import: ["" : 20, "local" : 1]> Twice <outer> (image, points) => (y) {
        a = local.Warp <how: string = @outer> (image, points)
        b = local.Warp <how = "linear"> (image, points)
        y = Add (a, b)
    }
    <domain: "local", opset_import: ["" : 20]> Warp <how> (image, points) => (y) {
        [s] y = GridSample <mode: string = @how, padding_mode = "border"> (image, points)
    }"""

UNCALLED = """
    g (float[N, 2, H, W] x, float[N, 3, 4, 2] grid) => (float[N, 2, 3, 4] y) { y = GridSample (x, grid) }
    <domain: "local", opset_import: ["" : 20]> Warp (image, points) => (y) { y = GridSample (image, points) }
    <domain: "local", opset_import: ["" : 20]> Other (a) => (b) { b = Relu (a) }"""

BRANCHES = """
    g (bool c, float[N, 2, H, W] x, float[N, 3, 4, 2] grid) => (float[N, 2, 3, 4] y) { y = local.Choose (c, x, grid) }
    <domain: "local", opset_import: ["" : 20]> Choose (c, image, points) => (y) {
        y = If (c) <
            then_branch = then () => (t) { t = GridSample <padding_mode = "border"> (image, points) },
            else_branch = other () => (e) { e = GridSample <mode = "nearest"> (image, points) }>
    }"""
LOCAL = ', "local" : 1'


def model(text):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20{LOCAL}]>\n{text}')


def check(lowered, feed, *expected, tolerance=1e-5):
    onnx.checker.check_model(lowered)
    for got, wanted in zip(run(lowered, feed), expected, strict=True):
        np.testing.assert_allclose(got.astype(np.float32), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("target", TARGETS)
def test_attributes_of_the_call(target):
    lowered, report = lower(model(ATTRIBUTES), target)
    assert len(report.entries) == 3  # one of the four calls is as another
    hows = [("bilinear", "border", False), ("bicubic", "reflection", True), ("nearest", "zeros", False)]
    results = [grid_sample(X, GRID, *how) for how in hows]
    check(lowered, {"x": X, "grid": GRID}, *results, results[0])


def check_ranks(lowered):
    """Images of float32 and float16, and volumes."""
    half, half_grid = X.astype(np.float16), GRID.astype(np.float16)
    feed = {"x": X, "grid": GRID, "half": half, "half_grid": half_grid, "volume": VOLUME, "points": POINTS}
    results = [
        grid_sample(image.astype(np.float32), grid.astype(np.float32), padding_mode="border")
        for image, grid in ((X, GRID), (half, half_grid), (VOLUME, POINTS))
    ]
    check(lowered, feed, *results, tolerance=2e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_dtypes_and_ranks_of_the_call(target):
    lowered, report = lower(model(RANKS), target)
    assert [entry.what.split()[0] for entry in report.entries] == ["4-D", "4-D", "5-D"]
    check_ranks(lowered)


@pytest.mark.parametrize("target", TARGETS)
def test_functions_that_call_functions(target):
    lowered, _ = lower(model(NESTED), target)
    expected = sum(grid_sample(X, GRID, mode, "border") for mode in ("nearest", "bilinear"))
    check(lowered, {"x": X, "grid": GRID}, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_branches_in_a_function(target):
    lowered, _ = lower(model(BRANCHES), target)
    check(lowered, {"c": np.array(True), "x": X, "grid": GRID}, grid_sample(X, GRID, padding_mode="border"))
    check(lowered, {"c": np.array(False), "x": X, "grid": GRID}, grid_sample(X, GRID, "nearest"))


def test_a_function_that_samples_and_is_never_called_is_dropped_and_reported():
    lowered, report = lower(model(UNCALLED), "portable")
    assert report.dropped == ["Warp"]
    assert [function.name for function in lowered.functions] == ["Other"]
    check(lowered, {"x": X, "grid": GRID}, grid_sample(X, GRID))


@pytest.mark.parametrize(
    "text", [ATTRIBUTES, RANKS, NESTED, BRANCHES], ids=["attributes", "ranks", "nested", "branches"]
)
def test_portable_leaves_none_in_any_function(text):
    lowered, _ = lower(model(text), "portable")
    assert not {"GridSample", "AffineGrid"} & {node.op_type for node in nodes(lowered)}


@pytest.mark.parametrize("opset", [16, 22])
@pytest.mark.parametrize(
    "text", [ATTRIBUTES, RANKS, NESTED, BRANCHES], ids=["attributes", "ranks", "nested", "branches"]
)
def test_functions_follow_to_the_opset(text, opset):
    lowered, _ = lower(model(text), "tensorrt" if opset < 20 else "onnxruntime-cpu", opset=opset)
    assert {i.version for f in lowered.functions for i in f.opset_import if i.domain == ""} == {opset}
    onnx.checker.check_model(lowered)


def test_the_first_copy_keeps_the_name_and_the_report_says_where():
    lowered, report = lower(model(RANKS), "portable")
    assert [function.name for function in lowered.functions] == ["Warp", "Warp_1", "Warp_2"]
    assert [entry.where for entry in report.entries] == ["Warp", "Warp_1", "Warp_2"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_that_is_not_reached_by_types_is_one_clear_error(target):
    text = RANKS.replace("a = local.Warp (x, grid)", "u = other.Unknown (x) a = local.Warp (u, grid)")
    with pytest.raises((NotImplementedError, ValueError), match="GridSample node") as caught:
        lower(parsed_with_other(text), target)
    assert "\n" not in str(caught.value)


def parsed_with_other(text):
    """A model that calls an operator of another domain, of which nothing is known."""
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20{LOCAL}, "other" : 1]>\n{text}')


def large_grid(changed):
    """1250 numbers, of which the one in the middle may differ."""
    grid = np.random.default_rng(1).uniform(-1, 1, (1, 25, 25, 2)).astype(np.float32)
    grid[0, 12, 12] = changed
    return grid


@pytest.mark.parametrize("target", TARGETS)
def test_large_tensors_of_the_call_that_differ_in_the_middle_only(target):
    grids = [large_grid(0.25), large_grid(-0.5)]
    made = model("""
        g (float[1, 2, 5, 4] x) => (float[1, 2, 25, 25] a, float[1, 2, 25, 25] b)
        { a = local.Warp (x) b = local.Warp (x) }
        <domain: "local", opset_import: ["" : 20]> Warp <points> (image) => (y) {
            grid = Constant <value: tensor = @points> ()
            y = GridSample (image, grid)
        }""")
    for node, grid in zip(made.graph.node, grids, strict=True):
        node.attribute.append(helper.make_attribute("points", numpy_helper.from_array(grid)))
    lowered, report = lower(made, target)
    assert len(report.entries) == 2
    check(lowered, {"x": X[:1]}, *(grid_sample(X[:1], grid) for grid in grids))


@pytest.mark.parametrize(("inner", "mode"), [('how: string = "nearest"', "nearest"), ("how", "bilinear")])
@pytest.mark.parametrize("target", TARGETS)
def test_an_attribute_that_is_left_out_gets_the_default_of_the_inner_function(target, inner, mode):
    text = NESTED.replace(' <outer = "nearest">', "").replace("Warp <how> (", f"Warp <{inner}> (")
    lowered, _ = lower(model(text), target)
    expected = grid_sample(X, GRID, mode, "border") + grid_sample(X, GRID, "bilinear", "border")
    check(lowered, {"x": X, "grid": GRID}, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_of_another_opset_than_the_model(target):
    text = RANKS.replace('["" : 20]', '["" : 17]')
    made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 19{LOCAL}]>\n{text}')
    lowered, _ = lower(made, target)
    versions = {i.version for f in (lowered, *lowered.functions) for i in f.opset_import if i.domain == ""}
    assert len(versions) == 1
    check_ranks(lowered)


@pytest.mark.parametrize("target", TARGETS)
def test_a_main_graph_that_imports_the_domain_of_its_functions_only(target):
    made = model(NESTED)
    del made.opset_import[0]
    lowered, _ = lower(made, target)
    expected = sum(grid_sample(X, GRID, mode, "border") for mode in ("nearest", "bilinear"))
    check(lowered, {"x": X, "grid": GRID}, expected)
