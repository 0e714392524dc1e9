"""The graphs in onnxruntime against the reference, over the whole matrix, by the tolerance rule."""

import cells
import ml_dtypes
import numpy as np
import pytest
from judging import Case
from opsets import newest_running_opset

import lucid_onnx as lo
from lucid_onnx.conformance.tolerance import judge
from lucid_onnx.operators.finishing import DEFAULT_OPSET
from lucid_onnx.reference import affine_grid, affine_grid_backward

DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
SIZES = {
    4: [(2, 3, 3, 4), (1, 1, 1, 5), (2, 1, 1, 1), (0, 1, 2, 2), (1, 1, 0, 3)],
    5: [(2, 2, 2, 3, 4), (1, 1, 1, 1, 5)],
}


OTHER_OPSETS = sorted({16, 17, 18, 21, 22, newest_running_opset()})
VARIANTS = [
    pytest.param(cell, dtype, opset, id=f"{cells.cell_id(cell)}-{dtype}-{opset}")
    for cell in cells.CELLS
    for dtype in DTYPES
    for opset in (DEFAULT_OPSET, *OTHER_OPSETS)
]
"""The whole product: 36 cells, 4 dtypes and 7 opsets."""


def sessions(cell, dtype, opset, threads=1):
    rank, mode, padding_mode, align_corners = cell
    arguments = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    return [
        lo.session(lo.operator_model(name, rank, **arguments, dtype=dtype, opset=opset), threads=threads)
        for name in ("GridSample", "GridSampleGrad")
    ]


@pytest.mark.parametrize(("cell", "dtype", "opset"), VARIANTS)
def test_grid_sample_and_its_gradients(cell, dtype, opset):
    rank, *how = cell
    forward, backward = sessions(cell, dtype, opset)
    families = (*cells.FAMILIES, "nonfinite")
    shapes = cells.IMAGES[rank]
    if opset != DEFAULT_OPSET:
        # The graphs differ in nothing but the version of their operators: fewer inputs show a kernel that does.
        families, shapes = ("outside", "nonfinite"), shapes[:1]
    for shape in shapes:
        for family in families:
            case = Case.drawn(family, shape, *how, dtype)
            feed = {"X": case.x, "grid": case.grid}
            (y,) = forward.run(None, feed)
            grad_x, grad_grid = backward.run(None, {**feed, "dY": case.grad_out})
            assert y.dtype == grad_x.dtype == grad_grid.dtype == DTYPES[dtype]
            for verdict in (case.judge_y(y), case.judge_grad_x(grad_x), case.judge_grad_grid(grad_grid)):
                assert verdict.ok, (shape, family, verdict)


@pytest.mark.parametrize("channels", [1, 2, 9])
@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_gradients_of_known_shapes(cell, channels):
    rank, *how = cell
    arguments = dict(zip(("mode", "padding_mode", "align_corners"), how, strict=True))
    batch, _, *sizes = cells.IMAGES[rank][0]
    shape = (batch, channels, *sizes)
    shapes = {"X": shape, "grid": (batch, *cells.POINTS[rank], rank - 2)}
    session = lo.session(lo.operator_model("GridSampleGrad", rank, **arguments, shapes=shapes))
    for family in ("outside", "borders", "ties", "nonfinite"):
        case = Case.drawn(family, shape, *how, "float32")
        grad_x, grad_grid = session.run(None, {"dY": case.grad_out, "X": case.x, "grid": case.grid})
        for verdict in (case.judge_grad_x(grad_x), case.judge_grad_grid(grad_grid)):
            assert verdict.ok, (family, verdict)


@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_nothing_to_sample_runs(cell):
    rank = cell[0]
    forward, backward = sessions(cell, "float32", DEFAULT_OPSET)
    d = rank - 2
    for batch, channels, size, points in ((0, 2, 3, 2), (2, 0, 3, 2), (2, 2, 3, 0), (0, 2, 0, 2), (0, 0, 0, 0)):
        x = np.ones((batch, channels, *[size] * d), np.float32)
        grid = np.ones((batch, *[points] * d, d), np.float32)
        (y,) = forward.run(None, {"X": x, "grid": grid})
        assert y.shape == (batch, channels, *[points] * d)
        grad_x, grad_grid = backward.run(None, {"dY": y, "X": x, "grid": grid})
        np.testing.assert_array_equal(grad_x, np.zeros_like(x))
        np.testing.assert_array_equal(grad_grid, np.zeros_like(grid))


@pytest.mark.parametrize("operator", ["GridSample", "GridSampleGrad"])
@pytest.mark.parametrize("grid", [(2, 0, 4, 2), (0, 3, 4, 2), ("N", 0, "Wo", 2), (2, 0, 0, 2)])
def test_an_empty_grid_may_be_known_beforehand(operator, grid):
    session = lo.session(lo.operator_model(operator, shapes={"grid": grid}))
    sizes = {"N": 2, "Wo": 3}
    points = np.ones([sizes.get(d, d) for d in grid], np.float32)
    feed = {"X": np.ones((len(points), 3, 4, 5), np.float32), "grid": points}
    if operator == "GridSampleGrad":
        feed["dY"] = np.ones((len(points), 3, *points.shape[1:-1]), np.float32)
    assert not any(result.any() for result in session.run(None, feed))


def test_the_grid_of_a_half_image_is_not_rounded_to_half():
    x = (np.indices((64, 64)).sum(axis=0) % 2).astype(np.float16)[None, None]
    grid = cells.generator("fine").uniform(-1, 1, (1, 8, 8, 2)).astype(np.float32)
    grad_out = np.ones((1, 1, 8, 8), np.float16)
    case = Case(x, grid, grad_out, "bilinear", "zeros", False)
    model = lo.operator_model("GridSample", dtype="float16", grid_dtype="float32")
    assert case.judge_y(lo.session(model).run(None, {"X": x, "grid": grid})[0]).ok
    rounded = grid.astype(np.float16).astype(np.float32)
    assert not case.judge_y(lo.session(model).run(None, {"X": x, "grid": rounded})[0]).ok


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_a_half_image_with_a_float32_grid(cell, dtype):
    rank, mode, padding_mode, align_corners = cell
    shape = cells.IMAGES[rank][0]
    x = cells.image(shape, DTYPES[dtype])
    grid = cells.grid("outside", shape, align_corners, np.float32)
    arguments = {"rank": rank, "mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    arguments |= {"dtype": dtype, "grid_dtype": "float32"}
    (y,) = lo.session(lo.operator_model("GridSample", **arguments)).run(None, {"X": x, "grid": grid})
    assert y.dtype == DTYPES[dtype]
    case = Case(x, grid, cells.grad_out(shape, DTYPES[dtype]), mode, padding_mode, align_corners)
    feed = {"dY": case.grad_out, "X": x, "grid": grid}
    grad_x, grad_grid = lo.session(lo.operator_model("GridSampleGrad", **arguments)).run(None, feed)
    assert (grad_x.dtype, grad_grid.dtype) == (DTYPES[dtype], np.float32)
    for verdict in (case.judge_y(y), case.judge_grad_x(grad_x), case.judge_grad_grid(grad_grid)):
        assert verdict.ok, verdict


@pytest.mark.parametrize("opset", [DEFAULT_OPSET, *OTHER_OPSETS])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("rank", [4, 5])
def test_affine_grid_and_its_gradient(rank, align_corners, dtype, opset):
    d = rank - 2
    arguments = {"rank": rank, "align_corners": align_corners, "dtype": dtype, "opset": opset}
    forward = lo.session(lo.operator_model("AffineGrid", **arguments))
    backward = lo.session(lo.operator_model("AffineGridGrad", **arguments))
    for size in SIZES[rank]:
        rng = cells.generator("theta", size)
        theta = rng.standard_normal((size[0], d, d + 1)).astype(DTYPES[dtype])
        (grid,) = forward.run(None, {"theta": theta, "size": np.array(size)})
        assert grid.shape == (size[0], *size[2:], d)
        verdict = judge(grid, lambda t: affine_grid(theta.astype(t), size, align_corners), dtype)  # noqa: B023
        assert verdict.ok, (size, verdict)
        dgrid = rng.standard_normal(grid.shape).astype(DTYPES[dtype])
        (dtheta,) = backward.run(None, {"dgrid": dgrid, "size": np.array(size)})
        assert dtheta.dtype == DTYPES[dtype]
        verdict = judge(dtheta, lambda t: affine_grid_backward(dgrid.astype(t), size, align_corners), dtype)  # noqa: B023
        assert verdict.ok, (size, verdict)


def test_affine_grid_takes_nonfinite_maps_as_the_reference_does():
    theta = np.array([[[np.nan, 0, 0], [np.inf, 1, 0]]], np.float32)
    (grid,) = lo.session(lo.operator_model("AffineGrid")).run(None, {"theta": theta, "size": np.array([1, 1, 2, 3])})
    np.testing.assert_allclose(grid, affine_grid(theta, (1, 1, 2, 3)), rtol=1e-6)


@pytest.mark.parametrize("coordinate", [5e9 + 2.3, -7e9 - 0.4, 1e12 + 0.7])
@pytest.mark.parametrize("rank", [4, 5])
def test_float64_reflects_far_coordinates_rightly(rank, coordinate):
    x = np.arange(1.0, 5).reshape((1,) * (rank - 1) + (4,))
    grid = np.zeros((1,) * (rank - 1) + (rank - 2,))
    grid[..., 0] = coordinate
    model = lo.operator_model("GridSample", rank, padding_mode="reflection", dtype="float64")
    (y,) = lo.session(model, threads=1).run(None, {"X": x, "grid": grid})
    assert y.item() == pytest.approx(1 + cells.reflected_home(coordinate, 4), abs=1e-3)
