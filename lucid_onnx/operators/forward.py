"""The forward of grid_sample: pixels gathered from an image that is extended by what its padding makes of it.

`operators.cells` says where each point reads. Nearest chooses elements; the others sum rows of all channels, one
for each tap, so that no more than one corner is in memory at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product

import onnx_ir as ir

from lucid_onnx.operators import cells
from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    compute_dtype,
    count,
    dims,
    float_dtype_of,
    ints,
    known_shape,
    named,
    reshape,
    scope,
    typed,
)
from lucid_onnx.operators.coordinates import unnormalize
from lucid_onnx.reference.schema import TAPS, as_flag, check_grid_sample

_MOST_INDICES = 2**25
"""128 MB of them."""


class Forward:
    """The forward: P points an image, and S pixels an image, that image extended by what the points may reach."""

    def __init__(
        self,
        op: Builder,
        x: Value,
        grid: Value,
        mode: str,
        padding_mode: str,
        align_corners: bool | None,
        assume_finite: bool,
    ) -> None:
        shape = known_shape(x, "x")
        check_grid_sample(shape, known_shape(grid, "grid"), mode, padding_mode, "grid_sample")
        self.rank, self._shape = len(shape), shape
        dtype = compute_dtype(float_dtype_of(x, "grid_sample", "x"), float_dtype_of(grid, "grid_sample", "grid"))
        self.op = op = typed(op, dtype)
        self._grid, self._mode = grid, mode
        corners = as_flag(align_corners, "grid_sample")
        # Pixels that are only chosen need no arithmetic, and so no wider dtype; but few runtimes pad bfloat16.
        x = x if mode == "nearest" and x.dtype != ir.DataType.BFLOAT16 else cast(op, x, dtype)
        lengths = [dims(op, x, axis, axis + 1) for axis in range(2, self.rank)]
        self._image = cells.extend(op, x, lengths, mode, padding_mode, corners)
        self._cells: list[cells.Cell] = []
        planes = coordinate_planes(op, grid, dtype)
        for length, plane, letter in zip(lengths, planes, "zyx"[5 - self.rank :], strict=True):
            with scope(op, letter):
                size = named(op.Cast(length, to=int(dtype)), f"{letter}_size")
                pixel = named(unnormalize(op, plane, size, corners), f"{letter}_pixel")
                how = (mode, padding_mode, corners, self.rank, assume_finite)
                self._cells.append(cells.cell(op, pixel, size, *how))
        before, behind = cells.EXTENSION[mode, padding_mode]
        self._extended = [None if d is None else before + d + behind for d in shape[2:]]
        self._index_dtype = cells.index_dtype(shape)
        self._strides = [count(op, dims(op, self._image, axis + 1, self.rank)) for axis in range(2, self.rank - 1)]
        self._first = self._flat([op.Add(cell.first, float(before)) if before else cell.first for cell in self._cells])

    def _flat(self, along: Sequence[Value]) -> Value:
        """Numbers of pixels, within their image, whose coordinates are given: (N*P,) of integers."""
        op = self.op
        *outer, index = (op.Cast(pixels, to=int(self._index_dtype)) for pixels in along)
        for pixels, stride in zip(outer, self._strides, strict=True):
            index = op.Add(op.Mul(pixels, op.Cast(stride, to=int(self._index_dtype))), index)
        return index

    def chosen(self) -> Value:
        """One pixel a point: those of all channels by one index, which is repeated for each."""
        op = self.op
        batch, channels = dims(op, self._image, 0, 1), dims(op, self._image, 1, 2)
        points = count(op, self._points())
        index = reshape(op, self._first, batch, [1], points)
        index = op.Expand(index, op.Concat(batch, channels, points, axis=0))
        pixels = reshape(op, self._image, batch, channels, count(op, dims(op, self._image, 2, self.rank)))
        y = named(op.GatherElements(pixels, index, axis=2), "chosen_pixels")
        return reshape(op, y, batch, channels, self._points())

    def is_large(self) -> bool:
        """Whether an index for every element of the result would weigh too much beside it, or is not made at all.

        onnxruntime takes an Expand to no channels for one that may be left out.
        """
        channels, points = self._shape[1], known_shape(self._grid, "grid")[:-1]
        if channels == 0:
            return True
        if channels is None or None in points:
            return False
        return channels > 1 and channels * math.prod(d for d in points if d is not None) > _MOST_INDICES

    def gathered(self) -> Value:
        """Weighted sum of pixels: rows of all channels, since whole rows are what is gathered fastest."""
        op = self.op
        rows, first = self._rows()
        weights = [[op.Unsqueeze(weight, [1]) for weight in cell.weights] for cell in self._cells]
        products = []
        for k, tap in enumerate(product(range(TAPS[self._mode]), repeat=self.rank - 2)):
            with scope(op, f"corner_{k}"):
                at = first if k == 0 else op.Add(first, self._distance(tap))
                pixels = named(op.Gather(rows, at, axis=0), f"corner_{k}_pixels")
                if self._mode == "nearest":
                    products.append(pixels)
                    continue
                if tap[-1] == 0:
                    outer = reduce(op.Mul, [along[t] for along, t in zip(weights[:-1], tap, strict=False)])
                products.append(op.Mul(pixels, op.Mul(outer, weights[-1][tap[-1]])))
        # The sum stands behind all of its terms: of the inputs of a node onnxruntime computes first what is listed
        # last, so it adds each term before it makes the next. The other way round it holds all of them at once.
        y = reduce(op.Add, products)
        channels = self.rank - 1
        y = reshape(op, y, dims(op, self._grid, 0, channels), dims(op, self._image, 1, 2))
        return op.Transpose(y, perm=[0, channels, *range(1, channels)])

    def _rows(self) -> tuple[Value, Value]:
        """Pixels of the batch, (N*S, C), and the row of the first tap of each point, (N*P,)."""
        op = self.op
        moved = op.Transpose(self._image, perm=[0, *range(2, self.rank), 1])
        pixels = count(op, dims(op, moved, 1, self.rank - 1))
        batch, channels = dims(op, moved, 0, 1), dims(op, moved, self.rank - 1, self.rank)
        rows = named(reshape(op, moved, op.Mul(batch, pixels), channels), "pixels")
        if known_shape(self._grid, "grid")[0] == 1:
            return rows, self._first
        images = op.Mul(op.Range(0, op.Squeeze(batch), 1), pixels)
        index = reshape(op, self._first, batch, count(op, self._points()))
        index = op.Add(index, op.Cast(op.Unsqueeze(images, [1]), to=int(self._index_dtype)))
        return rows, reshape(op, index, op.Shape(self._first))

    def _distance(self, tap: Sequence[int]) -> Value:
        """Rows between the first tap of a point and another."""
        op = self.op
        if None not in self._extended:
            strides = [math.prod(d for d in self._extended[axis + 1 :] if d) for axis in range(len(tap))]
            rows = sum(t * stride for t, stride in zip(tap, strides, strict=True))
            return op.Constant(value=ir.tensor([rows], dtype=self._index_dtype))
        terms = [op.Mul(stride, ints(op, [t])) for stride, t in zip(self._strides, tap, strict=False) if t]
        if tap[-1]:
            terms.append(ints(op, [tap[-1]]))
        return op.Cast(reduce(op.Add, terms), to=int(self._index_dtype))

    def _points(self) -> Value:
        return dims(self.op, self._grid, 1, self.rank - 1)


def coordinate_planes(op: Builder, grid: Value, dtype: ir.DataType) -> list[Value]:
    """Normalised coordinates of all points, (N*P,) for each axis, outermost first."""
    axes = len(known_shape(grid, "grid")) - 2
    planes = named(op.Transpose(op.Reshape(cast(op, grid, dtype), [-1, axes]), perm=[1, 0]), "coordinates")
    return [op.Gather(planes, axis, axis=0) for axis in reversed(range(axes))]
