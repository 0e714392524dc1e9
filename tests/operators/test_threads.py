"""The same bytes at any number of threads, each time: no update of a pixel is lost or reordered."""

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.reference import grid_sample_backward

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


@pytest.mark.parametrize("rank", [4, 5])
def test_samples_are_the_same_bytes_at_1_2_and_4_threads(rank):
    rng = np.random.default_rng(8)
    d = rank - 2
    x = rng.standard_normal((2, 8, *[12] * d)).astype(np.float32)
    grid = rng.uniform(-1.2, 1.2, (2, *[20] * d, d)).astype(np.float32)
    model = lo.operator_model("GridSample", rank=rank, padding_mode="reflection")
    results = {
        lo.session(model, threads=threads).run(None, {"X": x, "grid": grid})[0].tobytes()
        for threads in (1, 2, 4)
        for _ in range(5)
    }
    assert len(results) == 1
