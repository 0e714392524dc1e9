"""Comparison of forward and backward results with the reference, by the tolerance rule."""

from __future__ import annotations

import cells
import numpy as np

from lucid_onnx.conformance.tolerance import as_computed, image_limits, image_range, judge, undecided
from lucid_onnx.reference import grid_sample_nd, grid_sample_nd_backward
from lucid_onnx.reference.schema import float_dtype


class Case:
    """One call of grid_sample, and what the reference says of it."""

    def __init__(self, x, grid, grad_out, mode, padding_mode, align_corners, dtype):
        self.x, self.grid = x, grid
        self.how = (mode, padding_mode, align_corners)
        self.dtype = dtype
        sizes = x.shape[2:]
        self.seen = as_computed(grid, sizes, align_corners, dtype)
        self.doubtful = undecided(self.seen, sizes, *self.how, dtype)
        self.doubtful_slope = undecided(self.seen, sizes, *self.how, dtype, derivative=True)
        # A point that may land on either of two pixels must not count when gradients of pixels are compared.
        self.grad_out = np.where(self.doubtful[:, None], 0, grad_out).astype(grad_out.dtype)

    @classmethod
    def drawn(cls, family, shape, mode, padding_mode, align_corners, dtype):
        """The case of `cells` for an image of `shape` and a family of grids, all of `dtype`."""
        working = np.dtype(float_dtype(dtype, "Case", "dtype"))
        x = cells.image(shape, working)
        grid = cells.grid(family, shape, align_corners, working)
        grad_out = cells.grad_out(shape, working)
        return cls(x, grid, grad_out, mode, padding_mode, align_corners, working.name)

    def judge_y(self, y):
        def compute(dtype):
            return grid_sample_nd(self.x.astype(dtype), self._grid(dtype), *self.how)

        mode = self.how[0]
        limits = None if mode == "bicubic" else image_limits(self.x)
        scale = image_range(self.x)
        return judge(y, compute, self.dtype, scale, self.doubtful[:, None], mode == "nearest", limits)

    def judge_grad_x(self, grad_x):
        # Where many points share a pixel, a sum is rounded to what goes into it, in whatever order.
        load = float(np.abs(self.grad_out.astype(np.float64)).sum()) / max(self.x.size, 1)
        scale = max(self._largest(self.grad_out), load)
        return judge(grad_x, lambda dtype: self._backward(dtype)[0], self.dtype, scale)

    def judge_grad_grid(self, grad_grid):
        doubtful = (self.doubtful | self.doubtful_slope)[..., None]
        working = "float64" if self.dtype == "float64" else self.grid.dtype
        # The terms that make it up, which may cancel: pixels times gradients, per normalised unit.
        scale = self._largest(self.x) * self._largest(self.grad_out) * max(self.x.shape[2:]) / 2
        return judge(grad_grid, lambda dtype: self._backward(dtype)[1], working, scale, doubtful)

    @staticmethod
    def _largest(array):
        return float(np.abs(array.astype(np.float64)).max(initial=0))

    def _backward(self, dtype):
        return grid_sample_nd_backward(self.grad_out.astype(dtype), self.x.astype(dtype), self._grid(dtype), *self.how)

    def _grid(self, dtype):
        """The grid beside an image of `dtype`: a half-precision image may have a wider grid."""
        if dtype == np.float64:
            return self.seen
        return self.grid.astype(np.float32) if self.grid.dtype == np.float64 else self.grid
