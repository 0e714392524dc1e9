"""Samplings inside If, Loop and Scan: each is lowered where it stands, for every target."""

import numpy as np
import onnx
import pytest
from lowering.sampling import nodes, parsed, run

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import affine_grid, grid_sample

IF = """
    g (bool c, float[N, 2, H, W] x, float[N, 3, 4, 2] grid) => (float[N, 2, 3, 4] y) {
        [if] y = If (c) <
            then_branch = then () => (float[N, 2, 3, 4] t) {
                [linear] t = GridSample <mode = "linear", padding_mode = "border"> (x, grid) },
            else_branch = other () => (float[N, 2, 3, 4] e) {
                half = Constant <value_float = 0.5> ()
                nearer = Mul (grid, half)
                [cubic] e = GridSample <mode = "cubic", align_corners = 1> (x, nearer) }>
    }"""
LOOP = """
    g (float[N, 2, H, W] x, float[N, H, W, 2] grid) => (float[N, 2, H, W] y) <int64 n = {3}, bool c = {1}> {
        [loop] y = Loop (n, c, x) <body = b (int64 i, bool go, float[N, 2, H, W] v)
          => (bool on, float[N, 2, H, W] w) {
            on = Identity (go)
            [again] w = GridSample <mode = "linear", padding_mode = "reflection"> (v, grid) }>
    }"""
SCAN = """
    g (float[2, 3, 4, 5] x, float[3, 2, 2, 3] thetas) => (float[3, 2, 3, 4, 5] y) <int64[4] size = {2, 3, 4, 5}> {
        [scan] y = Scan <num_scan_inputs = 1, body = b (float[2, 2, 3] theta) => (float[2, 3, 4, 5] o) {
            [a] grid = AffineGrid <align_corners = 1> (theta, size)
            [s] o = GridSample <mode = "nearest", padding_mode = "zeros", align_corners = 1> (x, grid) }> (thetas)
    }"""
NESTED = """
    g (bool c, bool d, float[2, 2, 4, 4] x, float[2, 3, 4, 2] grid) => (float[2, 2, 3, 4] y) {
        [outer] y = If (c) <
            then_branch = then () => (float[2, 2, 3, 4] t) {
                [inner] t = If (d) <
                    then_branch = then2 () => (float[2, 2, 3, 4] t2) { [s] t2 = GridSample (x, grid) },
                    else_branch = else2 () => (float[2, 2, 3, 4] e2) {
                        [s] e2 = GridSample <padding_mode = "border"> (x, grid) }> },
            else_branch = other () => (float[2, 2, 3, 4] e) { [s] e = GridSample <mode = "nearest"> (x, grid) }>
    }"""

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 2, 5, 4)).astype(np.float32)
SQUARE = RNG.normal(size=(2, 2, 4, 4)).astype(np.float32)
GRID = RNG.uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
GRIDS = {"finite": GRID, "nonfinite": np.where(RNG.random(GRID.shape) < 0.3, np.float32(np.nan), GRID)}


def same(model, feed, expected):
    onnx.checker.check_model(model, full_check=True)
    np.testing.assert_allclose(run(model, feed)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", GRIDS)
@pytest.mark.parametrize("target", TARGETS)
def test_both_branches_of_if(target, kind):
    grid = GRIDS[kind]
    lowered, report = lower(parsed(IF), target)
    assert sorted(entry.node for entry in report.entries) == ["cubic", "linear"]
    same(lowered, {"c": np.array(True), "x": X, "grid": grid}, grid_sample(X, grid, "bilinear", "border"))
    expected = grid_sample(X, 0.5 * grid, "bicubic", "zeros", True)
    same(lowered, {"c": np.array(False), "x": X, "grid": grid}, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_body_of_loop(target):
    lowered, report = lower(parsed(LOOP), target)
    assert [entry.node for entry in report.entries] == ["again"]
    grid = np.random.default_rng(1).uniform(-1.3, 1.3, (2, 5, 4, 2)).astype(np.float32)
    expected = X
    for _ in range(3):
        expected = grid_sample(expected, grid, "bilinear", "reflection")
    same(lowered, {"x": X, "grid": grid}, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_body_of_scan(target):
    lowered, report = lower(parsed(SCAN), target)
    assert [entry.op for entry in report.entries] == ["AffineGrid", "GridSample"]
    x = RNG.normal(size=(2, 3, 4, 5)).astype(np.float32)
    thetas = RNG.normal(size=(3, 2, 2, 3)).astype(np.float32)
    grids = [affine_grid(theta, x.shape, True) for theta in thetas]
    same(lowered, {"x": x, "thetas": thetas}, [grid_sample(x, grid, "nearest", "zeros", True) for grid in grids])


@pytest.mark.parametrize("target", TARGETS)
def test_branches_within_branches(target):
    lowered, report = lower(parsed(NESTED), target)
    assert [entry.node for entry in report.entries] == ["s", "s", "s"]
    cases = [(1, 1, "bilinear", "zeros"), (1, 0, "bilinear", "border"), (0, 0, "nearest", "zeros")]
    for c, d, *how in cases:
        feed = {"c": np.array(bool(c)), "d": np.array(bool(d)), "x": SQUARE, "grid": GRID}
        same(lowered, feed, grid_sample(SQUARE, GRID, *how))


@pytest.mark.parametrize("opset", [16, 22])
@pytest.mark.parametrize(
    ("text", "count"), [(IF, 2), (LOOP, 1), (SCAN, 2), (NESTED, 3)], ids=["If", "Loop", "Scan", "If in If"]
)
def test_portable_leaves_none_in_any_body(text, count, opset):
    lowered, report = lower(parsed(text), "portable", opset=opset)
    assert len(report.entries) == count
    assert not {"GridSample", "AffineGrid"} & {node.op_type for node in nodes(lowered)}
    onnx.checker.check_model(lowered, full_check=True)


@pytest.mark.parametrize("text", [IF, LOOP, SCAN, NESTED], ids=["If", "Loop", "Scan", "If in If"])
@pytest.mark.parametrize("target", TARGETS)
def test_no_name_hides_another(text, target):
    lowered, _ = lower(parsed(text), target)
    outputs = [name for node in nodes(lowered) for name in node.output]
    assert len(set(outputs)) == len(outputs)


@pytest.mark.parametrize("target", TARGETS)
def test_a_half_precision_grid_of_the_outer_graph_is_raised(target):
    half = "wide = Constant <value_float = 0.5> ()\n half = CastLike (wide, grid)"
    text = IF.replace("float[", "float16[").replace("half = Constant <value_float = 0.5> ()", half)
    lowered, _ = lower(parsed(text), target)
    x, grid = X.astype(np.float16), GRID.astype(np.float16)
    for c, how, factor in ((True, ("bilinear", "border"), 1), (False, ("bicubic", "zeros", True), 0.5)):
        (y,) = run(lowered, {"c": np.array(c), "x": x, "grid": grid})
        expected = grid_sample(x.astype(np.float32), factor * grid.astype(np.float32), *how)
        np.testing.assert_allclose(y.astype(np.float32), expected, rtol=2e-3, atol=2e-3)


def test_an_initializer_of_a_branch_may_be_the_grid():
    text = """
        g (bool c, float[1, 2, 4, 5] x) => (float[1, 2, 1, 2] y) {
            y = If (c) <
                then_branch = then () => (float[1, 2, 1, 2] t) <float[1, 1, 2, 2] grid = {0.1, -0.4, 2.0, 0.3}> {
                    t = GridSample <padding_mode = "border"> (x, grid) },
                else_branch = other () => (float[1, 2, 1, 2] e) {
                    points = Constant <value = float[1, 1, 2, 2] {0.5, 0.25, -0.6, 0.7}> ()
                    e = GridSample (x, points) }>
        }"""
    x = RNG.normal(size=(1, 2, 4, 5)).astype(np.float32)
    grids = np.float32([[[[0.1, -0.4], [2.0, 0.3]]]]), np.float32([[[[0.5, 0.25], [-0.6, 0.7]]]])
    for target in TARGETS:
        lowered, _ = lower(parsed(text), target)
        same(lowered, {"c": np.array(True), "x": x}, grid_sample(x, grids[0], padding_mode="border"))
        same(lowered, {"c": np.array(False), "x": x}, grid_sample(x, grids[1]))
