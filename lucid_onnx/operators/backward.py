"""The two gradients of grid_sample, on the cells of `points`: one index a point, and fixed distances to its K taps.

Each tap gives every point a *dot*: the pixel that is read there times the upstream gradient, summed over the channels.
The gradient of the grid is the sum of the dots, with the weights along each axis and, along its own, their slopes. And
each tap takes from every point its weighted upstream gradient, which is added to that pixel of an image extended as the
sampled one was; in the end the margins are folded back.

There are two layouts. With few channels all numbers lie in one row, and each is added on its own. With many, pixels are
rows of all channels, and whole rows are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from itertools import product

import onnx_ir as ir

from lucid_onnx.operators import cells, interpolation
from lucid_onnx.operators.accumulate import OLDEST_OPSET_OF_LAYERS, layers, scatter_cells
from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    compute_dtype,
    constant,
    count,
    dims,
    dtype_of,
    float_dtype_of,
    joined,
    known_ints,
    known_shape,
    named,
    opset_of,
    reshape,
    typed,
)
from lucid_onnx.operators.coordinates import unnormalize_slope
from lucid_onnx.operators.points import Points, channels_last
from lucid_onnx.reference.schema import TAPS, as_flag, check_grad_out, check_grid_sample

FEW_CHANNELS = 6
"""Channels up to which numbers are added one by one: that takes 4 ns a number, a row some 25 ns and 0.4 a number."""

MOST_TAPS = 16
"""Taps up to which whole rows are added: for the 64 of a cubic volume that would be a graph of 3,000 nodes."""


class Backward:
    """The backward: P points of all grids, and S pixels an image, margins included."""

    def __init__(
        self,
        op: Builder,
        grad_out: Value,
        x: Value,
        grid: Value,
        mode: str,
        padding_mode: str,
        align_corners: bool | None,
    ) -> None:
        name = "grid_sample_backward"
        shape, points = known_shape(x, "x"), known_shape(grid, "grid")
        check_grid_sample(shape, points, mode, padding_mode, name)
        self.dtype = compute_dtype(float_dtype_of(x, name, "x"), float_dtype_of(grid, name, "grid"))
        float_dtype_of(grad_out, name, "grad_out")
        check_grad_out(shape, points, known_shape(grad_out, "grad_out"))
        self.op = op = typed(op, self.dtype)
        self.rank = len(shape)
        self._x, self._grid = x, grid
        self._mode, self._padding_mode, self._corners = mode, padding_mode, as_flag(align_corners, name)
        how = (mode, padding_mode, self._corners)
        self._points = Points(op, cast(op, x, self.dtype), grid, *how, self.dtype, harmless=True)
        taps = list(product(range(TAPS[mode]), repeat=self.rank - 2))
        distances = [self._points.distance(tap) for tap in taps]
        few = shape[1] is not None and shape[1] <= FEW_CHANNELS
        many = len(taps) > MOST_TAPS
        layout = Numbers if few or many or opset_of(op) < OLDEST_OPSET_OF_LAYERS else Rows
        self._layout = layout(op, self._points, cast(op, grad_out, self.dtype), distances, self.dtype)

    def grad_x(self) -> Value:
        """Gradient with respect to the image, of its dtype."""
        op = self.op
        weights = [cell.weights for cell in self._points.cells]
        products: list[Value | None] = []
        for k, tap in enumerate(product(range(TAPS[self._mode]), repeat=self.rank - 2)):
            factors = [along[t] for along, t in zip(weights, tap, strict=True) if along]
            products.append(named(reduce(op.Mul, factors), f"corner_{k}_weight") if factors else None)
        grad, axis = self._layout.added(products, self._kept())
        how = (self._mode, self._padding_mode, self._corners)
        grad = self._layout.as_images(cells.fold(op, grad, self._points.lengths, axis, *how))
        return cast(op, grad, dtype_of(self._x, "x"))

    def _kept(self) -> Value | None:
        """Whether a point adds to a pixel of the image, (P,) bool; None where all do.

        Without a test, what lies beyond zeros is added to the margins, which are cut off.
        """
        op = self.op
        if self._padding_mode != "zeros":
            return op.Equal(self._nothing, 0.0) if self._mode == "bicubic" else None
        if isinstance(self._layout, Numbers):
            return None
        before, _ = cells.EXTENSION[self._mode, "zeros"]
        tests = []
        for cell, size in zip(self._points.cells, self._points.sizes, strict=True):
            tests += [op.Greater(cell.first, float(-before)), op.Less(cell.first, size)]
        return reduce(op.And, tests)

    def grad_grid(self) -> Value:
        """Gradient with respect to the grid, of its dtype."""
        op = self.op
        if self._mode == "nearest":
            grad = op.Expand(constant(op, 0.0, self.dtype), op.Shape(self._grid))
            return cast(op, grad, dtype_of(self._grid, "grid"))
        planes = []
        axes = zip(self._along_axes(), self._points.cells, self._points.sizes, "zyx"[5 - self.rank :], strict=True)
        for along, cell, size, letter in axes:
            slope = cells.slope(op, cell, size, self._mode, self._padding_mode, self.rank)
            plane = along if slope is None else op.Mul(along, named(slope, f"{letter}_slope"))
            plane = op.Mul(plane, unnormalize_slope(op, size, self._corners))
            planes.append(op.Unsqueeze(plane if self._nothing is None else op.Add(plane, self._nothing), [0]))
        points = op.Transpose(op.Concat(*planes[::-1], axis=0), perm=[1, 0])
        return cast(op, reshape(op, points, op.Shape(self._grid)), dtype_of(self._grid, "grid"))

    @cached_property
    def _nothing(self) -> Value | None:
        """NaN where a point is not finite, and 0 elsewhere, (P,); None where such a point, too, reads numbers."""
        if self._mode == "bilinear" and (self._padding_mode != "zeros" or self.rank == 5):
            return None
        return reduce(self.op.Add, [self.op.Mul(cell.padded, 0.0) for cell in self._points.cells])

    def _along_axes(self) -> list[Value]:
        """Gradients with respect to what a point is beyond its cell, (P,) along each axis.

        Axis by axis, the innermost first, the taps along it are summed with their weights, or, for the gradient along
        that axis, with the derivatives of these.
        """
        taps = TAPS[self._mode]
        sums: dict[int | None, list[Value]] = {None: self._layout.dots()}
        for axis in reversed(range(self.rank - 2)):
            inner = sums
            sums = {}
            for sloped, values in inner.items():
                groups = [values[k : k + taps] for k in range(0, len(values), taps)]
                if sloped is None:
                    sums[axis] = [self._derivative(axis, group) for group in groups]
                if sloped is not None or axis > 0:
                    weights = self._points.cells[axis].weights
                    sums[sloped] = [_dot(self.op, weights, group) for group in groups]
        return [sums[axis][0] for axis in range(self.rank - 2)]

    def _derivative(self, axis: int, values: Sequence[Value]) -> Value:
        """Derivative of the weighted sum of the values at the taps along an axis."""
        if self._mode == "bilinear":
            first, second = values
            return self.op.Sub(second, first)
        beyond = self._points.cells[axis].beyond
        assert beyond is not None
        return _dot(self.op, interpolation.cubic_slopes(self.op, beyond), values)


class Numbers:
    """All numbers of all images in one row, (N*C*S,)."""

    def __init__(
        self, op: Builder, points: Points, grad_out: Value, distances: Sequence[Value], dtype: ir.DataType
    ) -> None:
        self._op, self._points, self._distances, self._rank = op, points, distances, points.rank
        self._zero = constant(op, 0.0, dtype)
        self._batch, self._channels = points.batch, points.channels
        self._count = count(op, points.shape())
        planes = op.Mul(self._batch, self._channels)
        pixels = op.Cast(points.pixels(), to=int(points.index_dtype))
        starts = op.Mul(op.Cast(op.Range(0, op.Squeeze(planes), 1), to=int(points.index_dtype)), pixels)
        starts = reshape(op, starts, self._batch, self._channels, [1])
        self._first = reshape(op, op.Add(self._per_point(points.first), starts), [-1])
        self._grad_out = reshape(op, grad_out, self._batch, self._channels, self._count)

    def _per_point(self, value: Value) -> Value:
        """(P,) as (N, 1, P/N)."""
        return reshape(self._op, value, self._batch, [1], self._count)

    def dots(self) -> list[Value]:
        """For each tap the product of pixel and upstream gradient, summed over the channels: (P,)."""
        op = self._op
        numbers = reshape(op, self._points.images(), [-1])
        shape = op.Shape(self._grad_out)
        single = known_ints(self._channels) == [1]
        dots = []
        for k, distance in enumerate(self._distances):
            pixels = op.GatherElements(numbers, op.Add(self._first, distance), axis=0)
            pixels = named(pixels, f"corner_{k}_pixels")
            products = op.Mul(op.Reshape(pixels, shape, allowzero=1), self._grad_out)
            dots.append(reshape(op, products if single else op.ReduceSum(products, [1], keepdims=0), [-1]))
        return dots

    def added(self, weights: Sequence[Value | None], kept: Value | None) -> tuple[Value, int]:
        """The gradient of the extended image, and the axis from which on its spatial ones are."""
        op = self._op
        points = self._points
        shape = joined(op, points.batch, points.channels, *points.extended)
        numbers = op.Expand(self._zero, count(op, shape))
        grad_out = self._grad_out if kept is None else op.Where(self._per_point(kept), self._grad_out, 0.0)
        updates = []
        for distance, weight in zip(self._distances, weights, strict=True):
            update = grad_out if weight is None else op.Mul(grad_out, self._per_point(weight))
            # Not the sum that `dots` makes: shared, all of them would be held until here.
            updates.append((op.Add(distance, self._first), reshape(op, update, [-1])))
        # Behind all of them, as in `accumulate`.
        for index, update in updates:
            numbers = op.ScatterElements(numbers, index, update, axis=0, reduction="add")
        return named(reshape(op, numbers, shape), "grad_pixels"), 2

    def as_images(self, grad: Value) -> Value:
        """(N, C, …) of what was added."""
        return grad


class Rows:
    """Pixels as rows of all channels, (N*S, C)."""

    def __init__(
        self, op: Builder, points: Points, grad_out: Value, distances: Sequence[Value], dtype: ir.DataType
    ) -> None:
        self._op, self._points, self._distances, self._rank = op, points, distances, points.rank
        self._zero = constant(op, 0.0, dtype)
        self._first = points.in_batch()
        rank, moved = points.rank, channels_last(op, grad_out, points.rank)
        self._grad_out = reshape(op, moved, count(op, dims(op, moved, 0, rank - 1)), dims(op, moved, rank - 1, rank))

    def dots(self) -> list[Value]:
        """For each tap the product of pixel and upstream gradient, summed over the channels: (P,)."""
        op = self._op
        image = self._points.rows()
        dots = []
        for k, distance in enumerate(self._distances):
            pixels = named(op.Gather(image, op.Add(self._first, distance), axis=0), f"corner_{k}_pixels")
            dots.append(op.ReduceSum(op.Mul(pixels, self._grad_out), [1], keepdims=0))
        return dots

    def added(self, weights: Sequence[Value | None], kept: Value | None) -> tuple[Value, int]:
        """The gradient of the extended image, and the axis from which on its spatial ones are."""
        op, points = self._op, self._points
        table = op.Expand(self._zero, joined(op, points.all_pixels(), points.channels))
        first = op.Cast(self._first, to=int(ir.DataType.INT64))
        depth = layers(count(op, points.shape()), count(op, joined(op, *points.lengths)))
        grad = scatter_cells(op, table, self._grad_out, first, self._distances, weights, depth, kept)
        grad = reshape(op, grad, joined(op, points.batch, *points.extended, points.channels))
        return named(grad, "grad_pixels"), 1

    def as_images(self, grad: Value) -> Value:
        """(N, C, …) of what was added."""
        return self._op.Transpose(grad, perm=[0, self._rank - 1, *range(1, self._rank - 1)])


def _dot(op: Builder, weights: Sequence[Value], values: Sequence[Value]) -> Value:
    return reduce(op.Add, [op.Mul(weight, value) for weight, value in zip(weights, values, strict=True)])
