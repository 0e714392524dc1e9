"""What the reference expects of a sampling and of its gradients."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from lucid_onnx.conformance.tolerance import Expectation, as_computed, expectation, image_range, undecided
from lucid_onnx.reference import grid_sample_nd, grid_sample_nd_backward
from lucid_onnx.reference.schema import Array

CUBIC_GAIN = 1.375
"""The most that the absolute values of the four cubic weights sum to: half-way between two pixels."""


class Sampling:
    """A call of grid_sample on given arrays.

    Parameters
    ----------
    x : Array
        (N, C, …), the image. Its dtype is the one in which a result is asked for.
    grid : Array
        (N, …, d), normalised. It may be wider than the image.
    mode, padding_mode, align_corners
        As in `grid_sample`.
    grad_out : Array, optional
        (N, C, …), where gradients are asked for.

    Examples
    --------
    >>> x, grid = np.float32([[[[1, 2, 3, 4]]]]), np.float32([[[[-0.5, 0], [2, 0]]]])
    >>> sampling = Sampling(x, grid, "bilinear", "border", False)
    >>> sampling.y().judge(np.float32([[[[1.5, 4]]]])).ok, sampling.y().judge(np.float32([[[[1.5, 3]]]])).ok
    (True, False)
    """

    def __init__(
        self,
        x: Array,
        grid: Array,
        mode: str,
        padding_mode: str,
        align_corners: bool,
        grad_out: Array | None = None,
    ) -> None:
        self.x, self.grid, self._grad_out = x, grid, grad_out
        self._how = (mode, padding_mode, align_corners)
        self._seen = as_computed(grid, x.shape[2:], align_corners, x.dtype)
        self._backward = functools.cache(self._gradients_in)

    @functools.cached_property
    def doubtful(self) -> Array:
        """Points (N, …) whose value the dtype cannot decide."""
        return undecided(self._seen, self.x.shape[2:], *self._how, self.x.dtype)

    @functools.cached_property
    def kinks(self) -> Array:
        """Points (N, …) whose slope the dtype cannot decide."""
        return self.doubtful | undecided(self._seen, self.x.shape[2:], *self._how, self.x.dtype, derivative=True)

    def y(self) -> Expectation:
        """Of the result."""
        mode, padding_mode, _ = self._how
        limits = None if mode == "bicubic" else _limits(self.x, padding_mode)
        # A sum is rounded to what goes into it, which cubic weights of both signs make larger than what comes of it.
        scale = image_range(self.x) * (CUBIC_GAIN ** (self.x.ndim - 2) if mode == "bicubic" else 1)
        return expectation(self._forward, self.x.dtype, scale, self.doubtful[:, None], mode == "nearest", limits)

    def gradients(self) -> tuple[Expectation, Expectation]:
        """Of the gradients of the image and of the grid."""
        assert self._grad_out is not None
        x, grad_out = self.x, self._grad_out.astype(np.float64)
        points = tuple(range(1, x.ndim - 1))
        largest = float(np.abs(grad_out).max(initial=0))
        # Where many points share a pixel, a sum is rounded to what goes into it, in whatever order.
        load = float(np.abs(grad_out).sum()) / max(x.size, 1)
        # A point that may land on either of two pixels leaves open what each pixel of its image gets.
        open_ = (self.doubtful & (grad_out != 0).any(axis=1)).any(axis=points).reshape(-1, *(1,) * (x.ndim - 1))
        # The terms of a slope, which may cancel: pixels times gradients, per normalised unit.
        slope = float(np.abs(x.astype(np.float64)).max(initial=0)) * largest * max(x.shape[2:]) / 2
        of_grid = x.dtype if x.dtype == np.float64 else self.grid.dtype
        return (
            expectation(lambda dtype: self._backward(dtype)[0], x.dtype, max(largest, load), open_),
            expectation(lambda dtype: self._backward(dtype)[1], of_grid, slope, self.kinks[..., None]),
        )

    def _forward(self, dtype: np.dtype[Any]) -> Array:
        return grid_sample_nd(self.x.astype(dtype), self._grid_beside(dtype), *self._how)

    def _gradients_in(self, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        assert self._grad_out is not None
        grad_out = self._grad_out.astype(dtype)
        return grid_sample_nd_backward(grad_out, self.x.astype(dtype), self._grid_beside(dtype), *self._how)

    def _grid_beside(self, dtype: np.dtype[Any]) -> Array:
        """The grid beside an image of `dtype`: one of half precision may have a wider grid."""
        if dtype == np.float64:
            return self._seen
        with np.errstate(over="ignore"):
            return self.grid.astype(np.float32) if self.grid.dtype == np.float64 else self.grid


def _limits(x: Array, padding_mode: str) -> tuple[float, float] | None:
    """What a value may be that float32 cannot place: any of the image, and the zero outside it."""
    values = x[np.isfinite(x)].astype(np.float64)
    if values.size == 0:
        return None
    around = [0.0] if padding_mode == "zeros" else []
    return min([float(values.min()), *around]), max([float(values.max()), *around])
