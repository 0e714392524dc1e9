"""Whether a result is right: a sample of it against the reference, by the tolerance rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lucid_onnx.bench.cases import Cell
from lucid_onnx.conformance.tolerance import Verdict, as_computed, image_limits, image_range, judge, undecided
from lucid_onnx.reference import grid_sample, grid_sample_backward
from lucid_onnx.reference.schema import ONNX_MODES, Array

POINTS = 2000
"""Points of each image that are judged; all of a large result in float64 would take longer than its timing."""

CHANNELS = 3
"""Channels of each image that are judged."""


def judge_sampled(results: Sequence[Array], x: Array, grid: Array, cell: Cell) -> list[Verdict]:
    """Compare results of one cell with the reference, at `POINTS` points of `CHANNELS` channels of every image.

    Points and channels are drawn once, and the first and last of both are among them.

    Examples
    --------
    >>> from lucid_onnx.bench.cases import inputs, parse_shapes
    >>> (shape,) = parse_shapes(["1x2x4x4"])
    >>> x, grid = inputs(shape, "smooth")
    >>> y = grid_sample(x, grid)
    >>> [verdict.ok for verdict in judge_sampled([y, y + 1], x, grid, Cell(shape, "smooth", "linear", "zeros", False))]
    [True, False]
    """
    mode = ONNX_MODES[cell.mode]
    points, channels = _some(math.prod(cell.shape.points), POINTS), _some(x.shape[1], CHANNELS)
    some_x, some_grid = x[:, channels], _at(points, grid)
    how = (mode, cell.padding_mode, cell.align_corners)
    seen = as_computed(some_grid, x.shape[2:], cell.align_corners, "float32")
    truths: dict[np.dtype[Any], Array] = {}

    def compute(dtype: np.dtype[Any]) -> Array:
        if dtype not in truths:
            given = seen if dtype == np.float64 else some_grid
            truths[dtype] = grid_sample(some_x.astype(dtype), given, *how)
        return truths[dtype]

    doubtful = undecided(seen, x.shape[2:], *how, "float32")[:, None]
    limits = None if mode == "bicubic" else image_limits(some_x)
    shape = (*some_x.shape[:2], *some_grid.shape[1:-1])
    verdicts = []
    for result in results:
        got = result.reshape(*x.shape[:2], -1)[:, channels][:, :, points].reshape(shape)
        verdicts.append(judge(got, compute, "float32", image_range(some_x), doubtful, mode == "nearest", limits))
    return verdicts


def judge_gradients(
    grad_x: Array, grad_grid: Array, x: Array, grid: Array, grad_out: Array, cell: Cell
) -> tuple[Verdict, Verdict]:
    """Compare both gradients of one cell with the reference.

    That of the image is judged in `CHANNELS` channels, that of the grid at `POINTS` points of every image.

    Examples
    --------
    >>> from lucid_onnx.bench.cases import inputs, parse_shapes
    >>> from lucid_onnx.reference import grid_sample_backward
    >>> (shape,) = parse_shapes(["1x2x4x4"])
    >>> x, grid = inputs(shape, "smooth")
    >>> cell = Cell(shape, "smooth", "linear", "zeros", False)
    >>> grad_x, grad_grid = grid_sample_backward(x, x, grid)
    >>> [verdict.ok for verdict in judge_gradients(grad_x, grad_grid + 1, x, grid, x, cell)]
    [True, False]
    """
    sizes, how = x.shape[2:], (ONNX_MODES[cell.mode], cell.padding_mode, cell.align_corners)
    points, channels = _some(math.prod(cell.shape.points), POINTS), _some(x.shape[1], CHANNELS)

    def backward(grad_out: Array, x: Array, grid: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        given = as_computed(grid, sizes, cell.align_corners, "float32") if dtype == np.float64 else grid
        return grid_sample_backward(grad_out.astype(dtype), x.astype(dtype), given, *how)

    def compute_grad_x(dtype: np.dtype[Any]) -> Array:
        return backward(grad_out[:, channels], x[:, channels], grid, dtype)[0]

    some_grid = _at(points, grid)
    some_grad_out = np.moveaxis(_at(points, np.moveaxis(grad_out, 1, -1)), -1, 1)

    def compute_grad_grid(dtype: np.dtype[Any]) -> Array:
        return backward(some_grad_out, x, some_grid, dtype)[1]

    seen = as_computed(some_grid, sizes, cell.align_corners, "float32")
    doubtful = undecided(seen, sizes, *how, "float32") | undecided(seen, sizes, *how, "float32", derivative=True)
    largest, of_image = float(np.abs(grad_out).max()), float(np.abs(x).max())
    # The terms that make up the gradient of the grid may cancel: pixels times gradients, per normalised unit.
    terms = of_image * largest * max(sizes) / 2
    return (
        judge(grad_x[:, channels], compute_grad_x, "float32", largest),
        judge(_at(points, grad_grid), compute_grad_grid, "float32", terms, doubtful[..., None]),
    )


def _at(points: Array, values: Array) -> Array:
    """Some of the points of (N, …, C), as (N, 1, …, P, C)."""
    between = (1,) * (values.ndim - 3)
    return values.reshape(len(values), -1, values.shape[-1])[:, points].reshape(
        len(values), *between, len(points), values.shape[-1]
    )


def _some(count: int, most: int) -> Array:
    """Numbers below `count`: all of them, or `most` drawn ones in their order, the first and the last included."""
    if count <= most:
        return np.arange(count)
    drawn = np.random.default_rng(0).choice(np.arange(1, count - 1), most - 2, replace=False)
    return np.concatenate([[0], np.sort(drawn), [count - 1]])
