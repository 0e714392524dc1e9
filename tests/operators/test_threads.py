"""The same bytes at any number of threads, each time: no update of a pixel is lost or reordered."""

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.operators import OPERATORS
from lucid_onnx.reference import affine_grid_backward, grid_sample_backward

GRIDS = {
    "every point on one pixel": lambda rng, shape: np.full(shape, 0.1),
    "random": lambda rng, shape: rng.uniform(-1.2, 1.2, shape),
}


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("points", GRIDS)
def test_gradients_are_the_same_bytes_at_1_2_and_4_threads(points, mode):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2, 16, 16, 16)).astype(np.float32)
    grid = GRIDS[points](rng, (2, 64, 64, 2)).astype(np.float32)
    grad_out = rng.standard_normal((2, 16, 64, 64)).astype(np.float32)
    feed = {"dY": grad_out, "X": x, "grid": grid}
    model = lo.operator_model("GridSampleGrad", mode=mode, padding_mode="border")
    results = {
        tuple(array.tobytes() for array in session.run(None, feed))
        for session in (lo.session(model, threads=threads) for threads in (1, 2, 4))
        for _ in range(5)
    }
    assert len(results) == 1
    grad_x, _ = lo.session(model, threads=4).run(None, feed)
    expected, _ = grid_sample_backward(*(a.astype(np.float64) for a in (grad_out, x, grid)), mode, "border")
    # A sum of 8192 numbers on one pixel loses what float32 does; a lost update would be far off.
    np.testing.assert_allclose(grad_x, expected, rtol=0, atol=1e-4 * (1 + np.abs(expected).max()))


ARRAYS = {
    4: {"X": (2, 8, 24, 24), "grid": (2, 128, 128, 2), "dY": (2, 8, 128, 128), "theta": (2, 2, 3)},
    5: {"X": (2, 4, 8, 8, 8), "grid": (2, 16, 32, 32, 3), "dY": (2, 4, 16, 32, 32), "theta": (2, 3, 4)},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_gives_the_same_bytes_at_1_2_and_4_threads(operator, rank, mode, dtype):
    rng = np.random.default_rng(8)
    arrays = {name: rng.uniform(-1.2, 1.2, shape).astype(dtype) for name, shape in ARRAYS[rank].items()}
    arrays |= {"dgrid": arrays["grid"], "size": np.array([2, 1, *ARRAYS[rank]["grid"][1:-1]])}
    model = lo.operator_model(operator, rank, mode, "reflection", dtype=dtype)
    feed = {value.name: arrays[value.name] for value in model.graph.input}
    results = {
        tuple(array.tobytes() for array in session.run(None, feed))
        for session in (lo.session(model, threads=threads) for threads in (1, 2, 4))
        for _ in range(3)
    }
    assert len(results) == 1


@pytest.mark.parametrize("size", [(1, 1, 128, 128), (2, 1, 300, 7), (1, 1, 40, 40, 40)])
@pytest.mark.parametrize("align_corners", [False, True])
def test_the_gradient_of_theta_is_exact_over_many_points(size, align_corners):
    d = len(size) - 2
    dgrid = np.random.default_rng(9).standard_normal((size[0], *size[2:], d)).astype(np.float32)
    session = lo.session(lo.operator_model("AffineGridGrad", len(size), align_corners=align_corners), threads=2)
    (dtheta,) = session.run(None, {"dgrid": dgrid, "size": np.array(size)})
    expected = affine_grid_backward(dgrid.astype(np.float64), size, align_corners)
    np.testing.assert_allclose(dtheta, expected, rtol=0, atol=2e-7 * np.abs(dgrid).sum())
