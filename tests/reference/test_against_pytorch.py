"""PyTorch as the live witness, over the whole matrix: forward and both gradients."""

import cells
import numpy as np
import pytest
from judging import Case

from lucid_onnx.reference import (
    affine_grid,
    affine_grid_backward,
    grid_sample,
    grid_sample_backward,
    grid_sample_nd,
    grid_sample_nd_backward,
)
from lucid_onnx.reference.pytorch_faults import FAULTS

torch = pytest.importorskip("torch", reason="PyTorch is the witness")
functional = torch.nn.functional


def pytorch(x, grid, grad_out, mode, padding_mode, align_corners):
    x, grid = torch.tensor(x, requires_grad=True), torch.tensor(grid, requires_grad=True)
    y = functional.grid_sample(x, grid, mode, padding_mode, align_corners)
    y.backward(torch.tensor(grad_out))
    return y.detach().numpy(), x.grad.numpy(), grid.grad.numpy()


@pytest.mark.parametrize("family", cells.FAMILIES)
@pytest.mark.parametrize("cell", cells.PYTORCH_CELLS, ids=cells.cell_id)
def test_float64_agrees_to_rounding(cell, family):
    rank, *how = cell
    for shape in cells.IMAGES[rank]:
        x = cells.image(shape, np.float64)
        grid = cells.grid(family, shape, cell[3], np.float64)
        grad_out = cells.grad_out(shape, np.float64)
        expected = pytorch(x, grid, grad_out, *how)
        got = (grid_sample(x, grid, *how), *grid_sample_backward(grad_out, x, grid, *how))
        # A coordinate is known to eps times its size in pixels, and so is everything interpolated there.
        reach = 1 + np.abs(grid).max() * max(shape[2:])
        for ours, theirs in zip(got, expected, strict=True):
            scale = 1 + np.abs(theirs).max()
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=32 * np.finfo(np.float64).eps * reach * scale)


@pytest.mark.parametrize("family", cells.FAMILIES)
@pytest.mark.parametrize("cell", cells.PYTORCH_CELLS, ids=cells.cell_id)
def test_float32_is_within_the_tolerance_of_the_reference(cell, family):
    rank, *how = cell
    for shape in cells.IMAGES[rank]:
        case = Case.drawn(family, shape, *how, "float32")
        y, grad_x, grad_grid = pytorch(case.x, case.grid, case.grad_out, *how)
        for verdict in (case.judge_y(y), case.judge_grad_x(grad_x), case.judge_grad_grid(grad_grid)):
            assert verdict.ok, (shape, verdict)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("cell", cells.PYTORCH_CELLS, ids=cells.cell_id)
def test_nonfinite_coordinates_land_where_they_do_in_pytorch(cell, dtype):
    rank, *how = cell
    for shape in cells.IMAGES[rank]:
        x = cells.image(shape, dtype)
        grid = cells.grid("nonfinite", shape, cell[3], dtype)
        if dtype == "float64":
            grid[grid == 3e38] = 1.7e308
        case = Case(x, grid, cells.grad_out(shape, dtype), *how)
        y = functional.grid_sample(torch.tensor(x), torch.tensor(grid), *how).numpy()
        verdict = case.judge_y(y)
        assert verdict.ok, (shape, verdict)


def sound_coordinates(rank, mode, padding_mode):
    """What is not finite, but for the coordinates on which PyTorch's backward is broken."""
    broken = [
        str(coordinate)
        for fault in FAULTS
        if fault.rank == rank and mode in fault.modes and padding_mode in fault.padding_modes
        for coordinate in fault.coordinates
    ]
    return [coordinate for coordinate in cells.NONFINITE if str(coordinate) not in broken]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "cell", [cell for cell in cells.PYTORCH_CELLS if sound_coordinates(*cell[:3])], ids=cells.cell_id
)
def test_gradients_at_nonfinite_coordinates_agree_where_pytorch_is_sound(cell, dtype):
    rank, *how = cell
    coordinates = [{3e38: 1.7e308}.get(c, c) if dtype == "float64" else c for c in sound_coordinates(*cell[:3])]
    for shape in cells.IMAGES[rank]:
        x = cells.image(shape, dtype)
        grad_out = cells.grad_out(shape, dtype)
        for axis in range(rank - 2):
            if cell[3] and shape[-1 - axis] == 1:
                continue  # an infinite coordinate is a pixel coordinate of inf * 0, and NaN is not sound
            grid = cells.grid("inside", shape, cell[3], dtype)
            grid[..., axis].reshape(-1)[::2] = np.resize(coordinates, grid[..., axis].reshape(-1)[::2].shape)
            expected = pytorch(x, grid, grad_out, *how)
            got = grid_sample_backward(grad_out, x, grid, *how)
            for ours, theirs in zip(got, expected[1:], strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=256 * np.finfo(dtype).eps)


@pytest.mark.parametrize("family", cells.FAMILIES)
@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_float32_of_the_reference_is_float64_to_rounding(cell, family):
    """The tolerance rule measures by the reference's own float32; this bounds that by itself."""
    rank, *how = cell
    for shape in cells.IMAGES[rank]:
        case = Case.drawn(family, shape, *how, "float32")
        x, grid = case.x, case.grid
        reach = 1 + np.abs(grid).max() * max(shape[2:])
        eps = np.finfo(np.float32).eps
        doubtful, kinks = case.sampling.doubtful, case.sampling.kinks
        narrow, wide = (
            (
                np.where(doubtful[:, None], 0, grid_sample_nd(x.astype(t), grid.astype(t), *how)),
                (backward := grid_sample_nd_backward(case.grad_out.astype(t), x.astype(t), grid.astype(t), *how))[0],
                np.where(kinks[..., None], 0, backward[1]),
            )
            for t in (np.float32, np.float64)
        )
        for ours, truth in zip(narrow, wide, strict=True):
            np.testing.assert_allclose(ours, truth, rtol=0, atol=32 * eps * reach * (1 + np.abs(truth).max()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize(
    "size", [(2, 3, 3, 4), (1, 1, 1, 5), (3, 1, 6, 1), (1, 1, 1, 1), (2, 1, 2, 3, 4), (1, 1, 1, 4, 1), (1, 1, 1, 1, 1)]
)
def test_affine_grid_and_its_gradient(size, align_corners, dtype):
    d = len(size) - 2
    rng = cells.generator("theta", size)
    theta = rng.standard_normal((size[0], d, d + 1)).astype(dtype)
    grad_grid = rng.standard_normal((size[0], *size[2:], d)).astype(dtype)
    witness = torch.tensor(theta, requires_grad=True)
    expected = functional.affine_grid(witness, size, align_corners=align_corners)
    expected.backward(torch.tensor(grad_grid))
    atol = 64 * np.finfo(dtype).eps
    np.testing.assert_allclose(affine_grid(theta, size, align_corners), expected.detach(), rtol=0, atol=atol)
    grad_theta = affine_grid_backward(grad_grid, size, align_corners)
    np.testing.assert_allclose(grad_theta, witness.grad, rtol=0, atol=atol)
