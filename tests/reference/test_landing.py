"""The table of where a coordinate lands that is not finite, or whose pixel overflows: one test a row."""

import cells
import numpy as np
import pytest

from lucid_onnx.reference import grid_sample, grid_sample_nd

NAN = float("nan")
FIRST, LAST = "first", "last"
TABLE = [
    # rank, mode, padding, NaN, +inf, -inf, overflow
    (4, "bilinear", "zeros", NAN, NAN, NAN, NAN),
    (4, "bilinear", "border", FIRST, LAST, FIRST, LAST),
    (4, "bilinear", "reflection", FIRST, FIRST, FIRST, FIRST),
    (4, "nearest", "zeros", 0.0, 0.0, 0.0, 0.0),
    (4, "nearest", "border", FIRST, LAST, FIRST, LAST),
    (4, "nearest", "reflection", FIRST, FIRST, FIRST, FIRST),
    (4, "bicubic", "zeros", NAN, NAN, NAN, NAN),
    (4, "bicubic", "border", NAN, NAN, NAN, NAN),
    (4, "bicubic", "reflection", NAN, NAN, NAN, NAN),
    (5, "bilinear", "zeros", 0.0, 0.0, 0.0, 0.0),
    (5, "nearest", "zeros", 0.0, 0.0, 0.0, 0.0),
    (5, "bilinear", "border", LAST, LAST, FIRST, LAST),
    (5, "nearest", "border", LAST, LAST, FIRST, LAST),
    (5, "bilinear", "reflection", LAST, LAST, LAST, LAST),
    (5, "nearest", "reflection", LAST, LAST, LAST, LAST),
    (5, "bicubic", "zeros", NAN, NAN, NAN, NAN),
    (5, "bicubic", "border", NAN, NAN, NAN, NAN),
    (5, "bicubic", "reflection", NAN, NAN, NAN, NAN),
]
ROWS = [
    (rank, mode, padding_mode, coordinate, landing)
    for rank, mode, padding_mode, *landings in TABLE
    for coordinate, landing in zip(cells.NONFINITE, landings, strict=True)
]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(("rank", "mode", "padding_mode", "coordinate", "landing"), ROWS)
def test_landing(rank, mode, padding_mode, coordinate, landing, align_corners):
    # 5 pixels an axis, so that 3e38 overflows either way; other coordinates on the middle pixel.
    x = np.arange(1.0, 1 + 5 ** (rank - 2), dtype=np.float32).reshape(1, 1, *[5] * (rank - 2))
    for axis in range(rank - 2):
        grid = np.zeros((1,) * (rank - 1) + (rank - 2,), np.float32)
        grid[..., rank - 3 - axis] = coordinate
        pixel = [2] * (rank - 2)
        pixel[axis] = {FIRST: 0, LAST: 4}.get(landing, 0)
        expected = x[(0, 0, *pixel)] if landing in (FIRST, LAST) else landing
        y = grid_sample_nd(x, grid, mode, padding_mode, align_corners)
        np.testing.assert_array_equal(y.item(), expected)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("coordinate", [1e3, 1e6, 1e10, 1e20])
def test_far_coordinates_are_ordinary(mode, coordinate):
    x = np.float32([[[[1, 2, 3]]]])
    grid = np.float32([[[[coordinate, 0], [-coordinate, 0]]]])
    assert grid_sample(x, grid, mode, "zeros").ravel().tolist() == [0, 0]
    assert grid_sample(x, grid, mode, "border").ravel().tolist() == [3, 1]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("coordinate", [2.0**24, 1e10, 1e20, -1e10])
def test_reflection_that_cannot_be_resolved_gives_a_value_of_the_image(mode, coordinate, align_corners):
    x = np.float32([[[[1, 2, 3, 4]]]])
    y = grid_sample(x, np.float32([[[[coordinate, 0]]]]), mode, "reflection", align_corners)
    assert 1 <= y.item() <= 4


def test_pixel_under_an_outside_tap_of_zero_weight_is_not_read():
    x = np.float32([[[[1, np.inf]]]])
    assert grid_sample(x, np.float32([[[[1, 0]]]]), "bilinear", "border", True).item() == np.inf


def test_nearest_rounds_half_to_even_after_padding():
    x = np.float32([[[[1, 2, 3, 4]]]])
    ties = np.float32([[[[-0.5, 0], [0, 0], [0.5, 0]]]])  # pixels 0.5, 1.5 and 2.5
    assert grid_sample(x, ties, "nearest").ravel().tolist() == [1, 3, 3]
    outside = np.float32([[[[2.0, 0], [-2.0, 0]]]])  # pixels 5.5 and -2.5, mirrored to 1.5
    assert grid_sample(x, outside, "nearest", "reflection").ravel().tolist() == [3, 3]
