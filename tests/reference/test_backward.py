"""The backward is the adjoint of the forward and its derivative: properties over shapes and values."""

import cells
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lucid_onnx.reference import (
    affine_grid,
    affine_grid_backward,
    grid_sample_nd,
    grid_sample_nd_backward,
)

cell = st.sampled_from(cells.CELLS)
seed = st.integers(0, 2**32 - 1)


@st.composite
def calls(draw, coordinates):
    """A cell of the matrix, an image of up to 5 pixels an axis, and a grid of drawn coordinates."""
    rank, *how = draw(cell)
    axes = rank - 2
    batch, channels = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    sizes = draw(st.tuples(*[st.integers(1, 5)] * axes))
    points = draw(st.tuples(*[st.integers(1, 2)] * axes))
    rng = np.random.default_rng(draw(seed))
    x = rng.standard_normal((batch, channels, *sizes))
    count = batch * int(np.prod(points)) * axes
    grid = np.array(draw(st.lists(coordinates, min_size=count, max_size=count)))
    grad_out = rng.standard_normal((batch, channels, *points))
    return x, grid.reshape(batch, *points, axes), grad_out, how


@settings(deadline=None, max_examples=300)
@given(calls(st.floats(-3, 3) | st.sampled_from([0.0, 1.0, -1.0, 1e3, 1e10, np.nan, np.inf, -np.inf])))
def test_gradient_of_the_image_is_the_adjoint_of_sampling(call):
    x, grid, grad_out, how = call
    y = grid_sample_nd(x, grid, *how)
    finite = np.isfinite(y)
    grad_x, _ = grid_sample_nd_backward(np.where(finite, grad_out, 0), x, grid, *how)
    assert np.isfinite(grad_x).all()
    products = np.where(finite, y, 0) * grad_out
    magnitude = np.abs(products).sum() + np.abs(grad_x * x).sum()
    assert abs((grad_x * x).sum() - products.sum()) <= 1e-12 * (1 + magnitude)


@settings(deadline=None, max_examples=300)
@given(calls(st.floats(-3, 3)), seed)
def test_gradient_of_the_grid_is_the_slope(call, direction_seed):
    x, grid, grad_out, how = call
    step = 1e-6
    direction = np.random.default_rng(direction_seed).uniform(-1, 1, grid.shape)
    smooth = _away_from_kinks(grid, x.shape[2:], how, 4 * step)
    grad_out = np.where(smooth[:, None], grad_out, 0)
    _, grad_grid = grid_sample_nd_backward(grad_out, x, grid, *how)
    ahead, behind = (grid_sample_nd(x, grid + sign * step * direction, *how) for sign in (1, -1))
    slope = (grad_out * (ahead - behind)).sum() / (2 * step)
    magnitude = 1 + np.abs(grad_out).sum() * np.abs(x).max() * max(x.shape[2:])
    assert abs((grad_grid * direction).sum() - slope) <= 1e-8 * magnitude


def _away_from_kinks(grid, sizes, how, reach):
    """Points none of whose pixel coordinates is near a whole or half one, where a derivative may jump."""
    smooth = np.ones(grid.shape[:-1], bool)
    for axis, size in enumerate(sizes):
        twice = (grid[..., -1 - axis] + 1) * (size - 1) if how[2] else (grid[..., -1 - axis] + 1) * size - 1
        # With one pixel and align_corners a coordinate has no effect, and so no kink.
        smooth &= (np.abs(twice - np.rint(twice)) > reach * size) | (how[2] and size == 1)
    return smooth


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 3), st.integers(0, 2), st.booleans(), seed, st.data())
def test_gradient_of_theta_is_the_adjoint_of_affine_grid(axes, batch, align_corners, key, data):
    sizes = data.draw(st.tuples(*[st.integers(0, 4)] * axes))
    rng = np.random.default_rng(key)
    theta = rng.standard_normal((batch, axes, axes + 1))
    grid = affine_grid(theta, (batch, 1, *sizes), align_corners)
    grad_grid = rng.standard_normal(grid.shape)
    grad_theta = affine_grid_backward(grad_grid, (batch, 1, *sizes), align_corners)
    assert grad_theta.shape == theta.shape
    assert abs((grad_theta * theta).sum() - (grad_grid * grid).sum()) <= 1e-12 * (1 + np.abs(grad_grid * grid).sum())


@pytest.mark.parametrize(
    "cell", [cell for cell in cells.CELLS if cell[1] == "bilinear" and cell[2] != "zeros"], ids=cells.cell_id
)
def test_coordinate_on_the_border_counts_as_clipped(cell):
    rank, mode, padding_mode, align_corners = cell
    x = cells.image((1, 1, *[4] * (rank - 2)), np.float64)
    edge = 1.0 if align_corners else 0.75
    for end in (edge, -edge):
        grid = np.full((1,) * (rank - 1) + (rank - 2,), end)
        _, grad_grid = grid_sample_nd_backward(np.ones((1,) * rank), x, grid, mode, padding_mode, align_corners)
        assert not grad_grid.any()


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_nearest_has_no_slope_whatever_the_pixels_are(rank, padding_mode):
    x = np.resize([1, np.inf, np.nan, -np.inf], (1, 1, *[2] * (rank - 2)))
    grid = cells.grid("inside", x.shape, False, np.float64)
    for upstream in (1.0, np.inf, np.nan):
        grad_out = np.full((1, 1, *grid.shape[1:-1]), upstream)
        assert not grid_sample_nd_backward(grad_out, x, grid, "nearest", padding_mode)[1].any()


@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_a_nan_in_the_upstream_gradient_stays_with_its_own_pixels(cell):
    rank, *how = cell
    shape = cells.IMAGES[rank][0]
    x = cells.image(shape, np.float64)
    grid = cells.grid("inside", shape, cell[3], np.float64)
    clean = cells.grad_out(shape, np.float64)
    dirty = clean.copy()
    dirty[(0,) * rank] = np.nan
    first_alone = np.zeros_like(clean)
    first_alone[(0,) * rank] = 1
    reached, _ = grid_sample_nd_backward(first_alone, x, grid, *how)
    grad_x, grad_grid = grid_sample_nd_backward(dirty, x, grid, *how)
    expected_x, expected_grid = grid_sample_nd_backward(clean, x, grid, *how)
    # A pixel that is read with a weight of 0 gets 0 times NaN: the taps bound the damage.
    spoiled = np.isnan(grad_x)
    assert spoiled[reached != 0].all()
    assert spoiled.sum() <= {"nearest": 1, "bilinear": 2, "bicubic": 4}[cell[1]] ** (rank - 2)
    np.testing.assert_array_equal(grad_x[~spoiled], expected_x[~spoiled])
    others = np.ones(grad_grid.shape, bool)
    others[(0,) * (rank - 1)] = False
    np.testing.assert_array_equal(grad_grid[others], expected_grid[others])
