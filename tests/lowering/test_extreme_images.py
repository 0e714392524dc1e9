"""Images that kernels refuse or get wrong: of integers, without pixels, of infinite pixels, very wide ones."""

import cells
import numpy as np
import onnx
import pytest
from lowering.sampling import parsed, run

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import grid_sample
from lucid_onnx.reference.schema import ONNX_MODES, PADDING_MODES

GRID = cells.generator("grid").uniform(-1.3, 1.3, (1, 6, 7, 2)).astype(np.float32)


def lowered_sampling(target, x, grid, dtype="float", mode="linear", padding="zeros", corners=0):
    """A GridSample of two shapes, lowered."""
    y = (*x[:2], *grid[1:-1])
    model = parsed(f"""
        g ({dtype}{[*x]} x, float{[*grid]} grid) => ({dtype}{[*y]} y)
        {{ y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}> (x, grid) }}""")
    lowered, _ = lower(model, target)
    onnx.checker.check_model(lowered, full_check=True)
    return lowered


@pytest.mark.parametrize("padding", ["border", "reflection"])
@pytest.mark.parametrize("mode", ONNX_MODES)
@pytest.mark.parametrize("target", TARGETS)
def test_a_white_image_of_integers_stays_white(target, mode, padding):
    x = np.full((1, 2, 5, 4), 255, np.uint8)
    (y,) = run(lowered_sampling(target, x.shape, GRID.shape, "uint8", mode, padding), {"x": x, "grid": GRID})
    np.testing.assert_array_equal(y, np.full_like(y, 255))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
@pytest.mark.parametrize("padding", PADDING_MODES)
@pytest.mark.parametrize("mode", ONNX_MODES)
@pytest.mark.parametrize("target", TARGETS)
def test_integers_are_rounded_and_do_not_wrap_around(target, mode, padding, dtype):
    limits = np.iinfo(dtype)
    # Black and white, so that cubic overshoots both.
    x = np.where(cells.generator("black and white").random((1, 2, 5, 4)) < 0.5, limits.min, limits.max).astype(dtype)
    (y,) = run(lowered_sampling(target, x.shape, GRID.shape, dtype, mode, padding), {"x": x, "grid": GRID})
    expected = grid_sample(x.astype(np.float64), GRID, ONNX_MODES[mode], padding)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, np.rint(expected).clip(limits.min, limits.max))


@pytest.mark.parametrize("mode", ONNX_MODES)
@pytest.mark.parametrize(
    ("x", "grid"),
    [((1, 7, 0, 5), (1, 0, 3, 2)), ((1, 0, 4, 5), (1, 2, 3, 2))],
    ids=["no pixels", "no channels"],
)
@pytest.mark.parametrize("target", TARGETS)
def test_an_image_without_pixels_or_channels_gives_nothing(target, x, grid, mode):
    lowered = lowered_sampling(target, x, grid, mode=mode)
    (y,) = run(lowered, {"x": np.zeros(x, np.float32), "grid": np.zeros(grid, np.float32)})
    assert y.shape == (*x[:2], *grid[1:-1])


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("target", TARGETS)
def test_an_affine_grid_without_points_is_empty(target, corners):
    model = parsed(f"""
        g (float[2, 2, 3] theta) => (float[2, 0, 4, 2] grid) <int64[4] size = {{2, 1, 0, 4}}>
        {{ grid = AffineGrid <align_corners = {corners}> (theta, size) }}""")
    (grid,) = run(lower(model, target)[0], {"theta": np.ones((2, 2, 3), np.float32)})
    assert grid.shape == (2, 0, 4, 2)


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("target", ["onnxruntime-cpu", "onnxruntime-cuda", "portable"])
def test_an_infinite_pixel_beside_the_last_does_no_harm(target, corners):
    x = np.full((1, 1, 1, 102), np.inf, np.float32)
    x[..., -1] = 2
    grid = np.float32([[[[1, 0], [2, 0], [1e3, 0]]]])
    lowered = lowered_sampling(target, x.shape, grid.shape, padding="border", corners=corners)
    np.testing.assert_array_equal(run(lowered, {"x": x, "grid": grid})[0], np.full((1, 1, 1, 3), 2))


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable"])
def test_the_last_pixel_of_an_image_wider_than_float32_counts_is_found(target):
    x = np.zeros((1, 1, 1, 2**24 + 3), np.float32)
    x[..., -1] = 1
    grid = np.float32([[[[1, 0]]]])
    lowered = lowered_sampling(target, x.shape, grid.shape, mode="nearest", padding="border")
    assert run(lowered, {"x": x, "grid": grid})[0] == 1
