"""Gradients of GridSample and AffineGrid nodes, over the whole matrix, against the reference."""

import cells
import ml_dtypes
import numpy as np
import onnx
import pytest
from gradient.checking import run, slopes_agree
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import Case
from onnx_ir.passes import common as passes
from opsets import newest_running_opset

import lucid_onnx as lo
from lucid_onnx.conformance.tolerance import judge
from lucid_onnx.reference import affine_grid_backward

DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
ONNX_DTYPES = {"float32": "float", "float64": "double"}
MODES = {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")}
BOTH = ["x_grad", "grid_grad"]


def grid_sample_model(cell, dtype, opset, shape=None, points=None):
    """A model of one GridSample, of known shapes or of none."""
    rank, mode, padding_mode, align_corners = cell
    axes = "DHW"[5 - rank :]
    x = ("N", "C", *axes) if shape is None else shape
    grid = ("N", *(f"{axis}o" for axis in axes), rank - 2) if points is None else points
    kind = ONNX_DTYPES.get(dtype, dtype)
    spelled = MODES[16 if opset < 20 else 20][("bilinear", "nearest", "bicubic").index(mode)]
    y = (*x[:2], *grid[1:-1])
    listed = [",".join(map(str, dimensions)) for dimensions in (x, grid, y)]
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : {opset}]>
        sample ({kind}[{listed[0]}] x, {kind}[{listed[1]}] grid) => ({kind}[{listed[2]}] y)
        {{ y = GridSample <mode = "{spelled}", padding_mode = "{padding_mode}", align_corners = {int(align_corners)}>
              (x, grid) }}"""
    )


def check(model, case):
    session = lo.session(model)
    grad_x, grad_grid = session.run(BOTH, {"x": case.x, "grid": case.grid, "y_grad": case.grad_out})
    assert grad_x.dtype == grad_grid.dtype == case.x.dtype
    for verdict in (case.judge_grad_x(grad_x), case.judge_grad_grid(grad_grid)):
        assert verdict.ok, (case.x.shape, verdict)


WAYS = [
    ("onnxruntime-cpu", "float32", False),
    ("onnxruntime-cpu", "float32", True),
    ("onnxruntime-cpu", "float64", False),
    ("onnxruntime-cpu", "float16", False),
    ("onnxruntime-cpu", "bfloat16", True),
    ("portable", "float32", False),
]
"""Target, dtype, and whether the shapes are known beforehand."""


@pytest.mark.parametrize(("target", "dtype", "known"), WAYS)
@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_grid_sample(cell, target, dtype, known):
    rank, *how = cell
    shapes = cells.IMAGES[rank][:1] if known else cells.IMAGES[rank][:3]
    points = (shapes[0][0], *cells.POINTS[rank], rank - 2)
    model = grid_sample_model(cell, dtype, 20, *((shapes[0], points) if known else ()))
    model = lo.gradient(model, target=target)
    for shape in shapes:
        for family in ("outside", "borders", "nonfinite"):
            check(model, Case.drawn(family, shape, *how, dtype))


@pytest.mark.parametrize("opset", [16, 19, newest_running_opset()])
@pytest.mark.parametrize("cell", [cell for cell in cells.CELLS if cell[0] == 4], ids=cells.cell_id)
def test_grid_sample_at_other_opsets(cell, opset):
    case = Case.drawn("outside", cells.IMAGES[4][0], *cell[1:], "float32")
    check(lo.gradient(grid_sample_model(cell, "float32", opset)), case)


@pytest.mark.parametrize("wrt", ["x", "grid"])
def test_only_what_is_wanted_is_built(wrt):
    model = grid_sample_model((4, "bilinear", "zeros", False), "float32", 20)
    both = len(lo.gradient(model).graph.node)
    one = lo.gradient(model, wrt)
    assert len(one.graph.node) < both
    case = Case.drawn("outside", cells.IMAGES[4][0], "bilinear", "zeros", False, "float32")
    (grad,) = lo.session(one).run([f"{wrt}_grad"], {"x": case.x, "grid": case.grid, "y_grad": case.grad_out})
    assert (case.judge_grad_x if wrt == "x" else case.judge_grad_grid)(grad).ok


@pytest.mark.parametrize("known", [False, True], ids=["symbolic", "static"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 3, 4), (1, 1, 1, 5), (2, 1, 1, 1), (2, 2, 2, 3, 4), (1, 1, 1, 1, 5)])
def test_affine_grid(size, align_corners, dtype, known):
    d = len(size) - 2
    theta_shape = (size[0], d, d + 1)
    grid = ",".join(map(str, (size[0], *size[2:], d)))
    kind = ONNX_DTYPES.get(dtype, dtype)
    given, node = f", int64[{d + 2}] size", ""
    if known:
        given, node = "", f"size = Constant<value_ints = [{','.join(map(str, size))}]>()"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["" : 20]>
        affine ({kind}[{",".join(map(str, theta_shape))}] theta{given}) => ({kind}[{grid}] grid)
        {{ {node} grid = AffineGrid <align_corners = {int(align_corners)}> (theta, size) }}"""
    )
    rng = cells.generator("gradient of theta", size)
    dgrid = rng.standard_normal((size[0], *size[2:], d)).astype(DTYPES[dtype])
    feed = {"theta": rng.standard_normal(theta_shape).astype(DTYPES[dtype]), "grid_grad": dgrid}
    feed |= {} if known else {"size": np.array(size)}
    (dtheta,) = lo.session(lo.gradient(model, "theta")).run(["theta_grad"], feed)
    verdict = judge(dtheta, lambda t: affine_grid_backward(dgrid.astype(t), size, align_corners), dtype)
    assert dtheta.dtype == DTYPES[dtype]
    assert verdict.ok, verdict


SAMPLERS = {
    cell: lo.session(lo.gradient(grid_sample_model(cell, "float64", 20), "x"))
    for cell in cells.CELLS
    if cell[3] is False and cell[:2] != (5, "bicubic")
}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_gradient_of_the_image_is_the_adjoint_of_sampling(data):
    cell = data.draw(st.sampled_from(list(SAMPLERS)))
    rank = cell[0]
    sizes = st.lists(st.integers(1, 5), min_size=rank - 2, max_size=rank - 2)
    batch, channels = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    x = rng.standard_normal((batch, channels, *data.draw(sizes)))
    grid = rng.uniform(-2, 2, (batch, *data.draw(sizes), rank - 2))
    y_grad = rng.standard_normal((batch, channels, *grid.shape[1:-1]))
    y, x_grad = SAMPLERS[cell].run(["y", "x_grad"], {"x": x, "grid": grid, "y_grad": y_grad})
    np.testing.assert_allclose(np.sum(x_grad * x), np.sum(y_grad * y), rtol=1e-9, atol=1e-9)


GRIDS = {
    "every point on one pixel": lambda rng, n: np.full((1, n, n, 2), 0.1),
    "random": lambda rng, n: rng.uniform(-1.2, 1.2, (1, n, n, 2)),
}


@pytest.mark.parametrize(("channels", "points", "runs"), [(256, 256, 2), (64, 128, 20), (3, 256, 20)])
@pytest.mark.parametrize("grid", GRIDS)
def test_many_points_on_few_pixels_are_added_without_a_race(grid, channels, points, runs):
    rng = np.random.default_rng(12)
    shape = (1, channels, 64, 64)
    x = rng.standard_normal(shape).astype(np.float32)
    grid = GRIDS[grid](rng, points).astype(np.float32)
    y_grad = rng.standard_normal((*shape[:2], points, points)).astype(np.float32)
    feed = {"x": x, "grid": grid, "y_grad": y_grad}
    model = lo.gradient(grid_sample_model((4, "bilinear", "zeros", False), "float32", 20, shape, grid.shape))
    seen = set()
    for threads in (1, 2, 4):
        session = lo.session(model, threads=threads)
        for _ in range(runs):
            results = session.run(BOTH, feed)
            seen.add(tuple(hash(result.tobytes()) for result in results))
    assert len(seen) == 1
    case = Case(x, grid, y_grad, "bilinear", "zeros", False)
    assert case.judge_grad_x(results[0]).ok
    assert case.judge_grad_grid(results[1]).ok


@pytest.mark.parametrize("channels", [2, 9])
def test_one_nan_upstream_spoils_only_its_own_pixels(channels):
    rng = np.random.default_rng(3)
    x, grid = rng.standard_normal((1, channels, 9, 9)), rng.uniform(-1, 1, (1, 6, 6, 2))
    y_grad = rng.standard_normal((1, channels, 6, 6))
    spoilt = y_grad.copy()
    spoilt[0, 1, 2, 3] = np.nan
    session = lo.session(lo.gradient(grid_sample_model((4, "bilinear", "border", False), "float64", 20, x.shape)))
    (right, _), (got, grad_grid) = (session.run(BOTH, {"x": x, "grid": grid, "y_grad": g}) for g in (y_grad, spoilt))
    bad = np.isnan(got)
    assert 0 < bad.sum() <= 4
    assert not bad[0, [c for c in range(channels) if c != 1]].any()
    np.testing.assert_array_equal(got[~bad], right[~bad])
    assert np.isnan(grad_grid).any(axis=-1).sum() == 1


@pytest.mark.parametrize("channels", [2, 9])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(("rank", "mode"), [(4, "bilinear"), (4, "bicubic"), (5, "bilinear")])
def test_the_second_derivative_is_the_slope_of_the_first(rank, mode, padding_mode, channels):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((2, channels, *(5, 4, 6)[: rank - 2]))
    points = (2, *(3, 2, 2)[: rank - 2], rank - 2)
    feed = {"x": x, "grid": rng.uniform(-1.3, 1.3, points), "y_grad": rng.standard_normal((2, channels, *points[1:-1]))}
    shapes = (x.shape, points) if channels == 2 else ()
    first = lo.gradient(grid_sample_model((rank, mode, padding_mode, False), "float64", 20, *shapes))
    second = lo.gradient(first, list(feed), BOTH)
    new = [[value.name for value in values] for values in (second.graph.input[3:], second.graph.output[3:])]
    seeds = {name: rng.standard_normal(feed[of].shape) for name, of in zip(new[0], ("x", "grid"), strict=True)}
    grads = run(second, {**feed, **seeds}, new[1])
    slopes_agree(first, feed, list(feed), BOTH, seeds, grads)


def test_the_points_are_not_followed_when_shapes_are_inferred(monkeypatch):
    followed = []
    inference = passes.ShapeInferencePass

    def remembered(**options):
        followed.append(options["data_prop"])
        return inference(**options)

    monkeypatch.setattr(passes, "ShapeInferencePass", remembered)
    # It would take 2 GB.
    shape, points = (8, 64, 256, 256), (8, 256, 256, 2)
    lo.gradient(grid_sample_model((4, "bilinear", "zeros", False), "float32", 20, shape, points))
    assert followed
    assert not any(followed)
