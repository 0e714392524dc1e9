"""Record what PyTorch gives, so that the tests mean the same where it is not installed.

    python tests/golden/record.py

writes ``vectors.npz``: for every cell of the matrix and every family of grids the inputs, the output and both
gradients in float64, the outputs at coordinates that are not finite in float32, and affine grids with their
gradients. It needs torch 2.13.0. The file holds inputs too, so nothing depends on a random generator.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import cells

VECTORS = Path(__file__).with_name("vectors.npz")
SIZES = [(2, 3, 3, 4), (1, 1, 5, 1), (1, 1, 1, 1), (2, 1, 2, 3, 4), (1, 1, 1, 4, 1)]


def main() -> None:
    import torch

    functional = torch.nn.functional
    vectors: dict[str, np.ndarray] = {}
    for cell in cells.PYTORCH_CELLS:
        rank, *how = cell
        for index in (0, len(cells.IMAGES[rank]) - 1):
            shape = cells.IMAGES[rank][index]
            for family in (*cells.FAMILIES, "nonfinite"):
                dtype = np.float32 if family == "nonfinite" else np.float64
                case = f"{cells.cell_id(cell)}/{index}/{family}"
                inputs = f"{rank}/{index}/{family}/{cell[3]}"
                vectors[f"{inputs}/x"] = cells.image(shape, dtype)
                vectors[f"{inputs}/grid"] = cells.grid(family, shape, cell[3], dtype)
                vectors[f"{inputs}/grad_out"] = cells.grad_out(shape, dtype)
                x = torch.tensor(vectors[f"{inputs}/x"], requires_grad=True)
                grid = torch.tensor(vectors[f"{inputs}/grid"], requires_grad=True)
                y = functional.grid_sample(x, grid, *how)
                vectors[f"{case}/y"] = y.detach().numpy()
                if family != "nonfinite":  # there PyTorch's backward may crash
                    y.backward(torch.tensor(vectors[f"{inputs}/grad_out"]))
                    vectors[f"{case}/grad_x"] = x.grad.numpy()
                    vectors[f"{case}/grad_grid"] = grid.grad.numpy()
    for size in SIZES:
        d = len(size) - 2
        for align_corners in (False, True):
            case = f"affine/{'x'.join(map(str, size))}/{align_corners}"
            rng = cells.generator("theta", size)
            theta = torch.tensor(rng.standard_normal((size[0], d, d + 1)), requires_grad=True)
            grid = functional.affine_grid(theta, size, align_corners=align_corners)
            vectors[f"{case}/theta"] = theta.detach().numpy()
            vectors[f"{case}/grid"] = grid.detach().numpy()
            vectors[f"{case}/grad_grid"] = rng.standard_normal(grid.shape)
            grid.backward(torch.tensor(vectors[f"{case}/grad_grid"]))
            vectors[f"{case}/grad_theta"] = theta.grad.numpy()
    np.savez_compressed(VECTORS, **vectors)
    print(f"{VECTORS}: {len(vectors)} arrays, {VECTORS.stat().st_size / 1e6:.2f} MB, torch {torch.__version__}")


if __name__ == "__main__":
    main()
