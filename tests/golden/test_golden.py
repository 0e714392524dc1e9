"""The reference against vectors that were recorded from PyTorch 2.13: no PyTorch needed."""

import cells
import numpy as np
import pytest
import record

from lucid_onnx.reference import affine_grid, affine_grid_backward, grid_sample, grid_sample_backward


@pytest.fixture(scope="module")
def vectors():
    with np.load(record.VECTORS) as archive:
        return {name: archive[name] for name in archive.files}


@pytest.mark.parametrize("family", [*cells.FAMILIES, "nonfinite"])
@pytest.mark.parametrize("cell", cells.PYTORCH_CELLS, ids=cells.cell_id)
def test_recorded_samples(vectors, cell, family):
    rank, *how = cell
    for index in (0, len(cells.IMAGES[rank]) - 1):
        x, grid, grad_out = (vectors[f"{rank}/{index}/{family}/{cell[3]}/{name}"] for name in ("x", "grid", "grad_out"))
        case = f"{cells.cell_id(cell)}/{index}/{family}"
        expected = [vectors[f"{case}/{name}"] for name in ("y", "grad_x", "grad_grid") if f"{case}/{name}" in vectors]
        got = (grid_sample(x, grid, *how), *grid_sample_backward(grad_out, x, grid, *how))[: len(expected)]
        finite = np.abs(grid[np.isfinite(grid) & (np.abs(grid) < 1e30)]).max()
        reach = 1 + finite * max(x.shape[2:])
        for ours, theirs in zip(got, expected, strict=True):
            assert ours.dtype == theirs.dtype
            scale = 1 + np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=32 * np.finfo(x.dtype).eps * reach * scale)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", record.SIZES)
def test_recorded_affine_grids(vectors, size, align_corners):
    case = f"affine/{'x'.join(map(str, size))}/{align_corners}"
    grid = affine_grid(vectors[f"{case}/theta"], size, align_corners)
    np.testing.assert_allclose(grid, vectors[f"{case}/grid"], rtol=0, atol=1e-14)
    grad_theta = affine_grid_backward(vectors[f"{case}/grad_grid"], size, align_corners)
    np.testing.assert_allclose(grad_theta, vectors[f"{case}/grad_theta"], rtol=0, atol=1e-14)


def test_the_file_stays_small():
    assert record.VECTORS.stat().st_size < 2e6
