"""Every documented fault of PyTorch: what the reference does there, and that PyTorch still does it."""

import math
import subprocess
import sys

import cells
import numpy as np
import pytest

from lucid_onnx.reference import grid_sample, grid_sample_backward
from lucid_onnx.reference.pytorch_faults import FAULTS

CASES = [
    pytest.param(fault, mode, padding_mode, coordinate, id=f"{fault.rank}d-{mode}-{padding_mode}-{coordinate}")
    for fault in FAULTS
    for mode in fault.modes
    for padding_mode in fault.padding_modes
    for coordinate in fault.coordinates
]

SOUND = [case for case in CASES if not case.values[0].crashes]
CRASHING = [case for case in CASES if case.values[0].crashes]

IN_A_PROCESS_OF_ITS_OWN = """
import sys, torch
nan, inf = float("nan"), float("inf")
x, grid, *how = eval(sys.argv[1])
x, grid = torch.tensor(x, requires_grad=True), torch.tensor(grid, requires_grad=True)
y = torch.nn.functional.grid_sample(x, grid, *how, False)
print(y.item(), flush=True)
y.backward(torch.ones_like(y))
print(x.grad.sum().item(), flush=True)
"""


def call(fault, coordinate):
    """Image of 1, 2, 3, 4 along x, in a single row, and a point that is off along x only."""
    x = np.arange(1.0, 5, dtype=fault.dtype).reshape((1,) * (fault.rank - 1) + (4,))
    grid = np.zeros((1,) * (fault.rank - 1) + (fault.rank - 2,), fault.dtype)
    grid[..., 0] = coordinate
    return x, grid


@pytest.mark.parametrize(("fault", "mode", "padding_mode", "coordinate"), CASES)
def test_the_reference_is_sound(fault, mode, padding_mode, coordinate):
    x, grid = call(fault, coordinate)
    y = grid_sample(x, grid, mode, padding_mode).item()
    grad_x, grad_grid = grid_sample_backward(np.ones((1,) * fault.rank, fault.dtype), x, grid, mode, padding_mode)
    assert np.isfinite(grad_x).all()
    if mode == "bicubic" or padding_mode == "zeros":
        assert math.isnan(y)
        assert not grad_x.any()
        assert np.isnan(grad_grid).all()
    else:
        assert math.isclose((grad_x * x).sum(), y)
        assert math.isclose(grad_x.sum(), 1)
        if fault.dtype == "float32":
            assert grad_grid.ravel()[0] == 0
    if fault.dtype == "float64":
        home = cells.reflected_home(coordinate, 4)
        assert y == pytest.approx(1 + (round(home) if mode == "nearest" else home), abs=1e-5)


def pytorch(x, grid, mode, padding_mode):
    torch = pytest.importorskip("torch", reason="PyTorch is the witness")
    x, grid = torch.tensor(x, requires_grad=True), torch.tensor(grid, requires_grad=True)
    y = torch.nn.functional.grid_sample(x, grid, mode, padding_mode, False)
    y.backward(torch.ones_like(y))
    return y.item(), x.grad.numpy(), grid.grad.numpy().ravel()


@pytest.mark.parametrize(("fault", "mode", "padding_mode", "coordinate"), SOUND)
def test_pytorch_still_has_the_fault(fault, mode, padding_mode, coordinate):
    x, grid = call(fault, coordinate)
    y, grad_x, grad_grid = pytorch(x, grid, mode, padding_mode)
    ours = grid_sample(x, grid, mode, padding_mode).item()
    if fault.dtype == "float64":
        assert abs(y - ours) > 0.5
        return
    np.testing.assert_equal(y, ours)
    if padding_mode == "zeros":
        assert np.isnan(grad_grid).tolist() == [False, True]
    elif mode == "bicubic":
        assert np.isnan(grad_x).any()
    else:
        assert not grad_x.any()


@pytest.mark.parametrize(("fault", "mode", "padding_mode", "coordinate"), CRASHING)
def test_the_backward_of_pytorch_still_crashes(fault, mode, padding_mode, coordinate):
    pytest.importorskip("torch", reason="PyTorch is the witness")
    x, grid = call(fault, coordinate)
    words = repr((x.tolist(), grid.tolist(), mode, padding_mode))
    witness = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, words], capture_output=True, text=True, check=False
    )
    y, *rest = map(float, witness.stdout.split())
    assert y == grid_sample(x, grid, mode, padding_mode).item()
    # What is out of bounds need not belong to somebody else; then the gradient is gone all the same.
    assert witness.returncode != 0 or rest != [1.0]
