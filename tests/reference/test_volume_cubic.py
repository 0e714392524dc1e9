"""Cubic interpolation of volumes, which PyTorch lacks, against the cubic of its slices, which it has."""

import cells
import numpy as np
import pytest

from lucid_onnx.reference import grid_sample, grid_sample_backward, grid_sample_nd, grid_sample_nd_backward


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_volume_that_is_constant_along_an_axis_is_its_slice(axis, padding_mode, align_corners):
    how = ("bicubic", padding_mode, align_corners)
    plane = cells.image((2, 3, 5, 4), np.float64)
    points = cells.generator("plane", axis).uniform(-1.5, 1.5, (2, 3, 4, 2))
    grad_out = cells.generator("grad", axis).standard_normal((2, 3, 3, 4))
    volume = np.repeat(np.expand_dims(plane, 2 + axis), 6, axis=2 + axis)
    # Along the constant axis the middle of 6 pixels, where all taps are inside.
    grid = np.insert(points, 2 - axis, 0.1, axis=-1)[:, None]
    expected = grid_sample(plane, points, *how)
    np.testing.assert_allclose(grid_sample_nd(volume, grid, *how)[:, :, 0], expected, atol=1e-13)
    grad_x, grad_grid = grid_sample_nd_backward(grad_out[:, :, None], volume, grid, *how)
    expected_x, expected_grid = grid_sample_backward(grad_out, plane, points, *how)
    np.testing.assert_allclose(grad_x.sum(axis=2 + axis), expected_x, atol=1e-13)
    np.testing.assert_allclose(np.delete(grad_grid[:, 0], 2 - axis, axis=-1), expected_grid, atol=1e-12)
    np.testing.assert_allclose(grad_grid[..., 2 - axis], 0, atol=1e-12)


def test_the_axes_are_not_confused():
    volume = cells.image((1, 1, 4, 5, 6), np.float64)
    grid = cells.generator("axes").uniform(-1, 1, (1, 2, 3, 4, 3))
    turned = np.transpose(volume, (0, 1, 4, 2, 3))
    expected = grid_sample_nd(volume, grid, "bicubic", "border")
    np.testing.assert_allclose(grid_sample_nd(turned, grid[..., [1, 2, 0]], "bicubic", "border"), expected, atol=1e-13)
