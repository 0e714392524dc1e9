"""Comparison of forward and backward results with the reference, by the tolerance rule."""

from __future__ import annotations

import cells
import numpy as np

from lucid_onnx.conformance.sampling import Sampling
from lucid_onnx.reference.schema import float_dtype


class Case:
    """One call of grid_sample, and what the reference says of it."""

    def __init__(self, x, grid, grad_out, mode, padding_mode, align_corners):
        self.x, self.grid = x, grid
        self.how = (mode, padding_mode, align_corners)
        doubtful = Sampling(x, grid, *self.how).doubtful
        # A point that may land on either of two pixels must not count when gradients of pixels are compared.
        self.grad_out = np.where(doubtful[:, None], 0, grad_out).astype(grad_out.dtype)
        self.sampling = Sampling(x, grid, *self.how, grad_out=self.grad_out)

    @classmethod
    def drawn(cls, family, shape, mode, padding_mode, align_corners, dtype):
        """The case of `cells` for an image of `shape` and a family of grids, all of `dtype`."""
        working = np.dtype(float_dtype(dtype, "Case", "dtype"))
        x = cells.image(shape, working)
        grid = cells.grid(family, shape, align_corners, working)
        grad_out = cells.grad_out(shape, working)
        return cls(x, grid, grad_out, mode, padding_mode, align_corners)

    def judge_y(self, y):
        return self.sampling.y().judge(y)

    def judge_grad_x(self, grad_x):
        return self.sampling.gradients()[0].judge(grad_x)

    def judge_grad_grid(self, grad_grid):
        return self.sampling.gradients()[1].judge(grad_grid)
