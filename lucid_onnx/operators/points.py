"""Where the points of a grid read: their cells along every axis, and the first tap of each as the number of a pixel.

The image is extended by what the points may reach (`cells.extend`); S is the number of its pixels, margins included,
and P that of the points of all grids.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import onnx_ir as ir

from lucid_onnx.operators import cells
from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    count,
    dims,
    ints,
    joined,
    known_ints,
    known_shape,
    named,
    reshape,
    scope,
)
from lucid_onnx.operators.coordinates import unnormalize


class Points:
    """The points of a grid in an image.

    Attributes
    ----------
    batch, channels : Value
        Dimensions of the image, (1,) of int64.
    lengths, sizes : list of Value
        Pixels along each axis of the image as it was, (1,) of int64 and of the coordinates' dtype.
    cells : list of Cell
        What is read along each axis.
    first : Value
        (P,) number of the pixel of the first tap, within its image.
    index_dtype : onnx_ir.DataType
        Of such numbers.
    extended : list of Value
        Pixels along each axis of the extended image, (1,) of int64.
    """

    def __init__(
        self,
        op: Builder,
        x: Value,
        grid: Value,
        mode: str,
        padding_mode: str,
        align_corners: bool,
        dtype: ir.DataType,
        assume_finite: bool = False,
        harmless: bool = False,
    ) -> None:
        self._op, self._x, self._grid = op, x, grid
        self._how = (mode, padding_mode, align_corners)
        shape = known_shape(x, "x")
        self.rank = len(shape)
        self.batch, self.channels = dims(op, x, 0, 1), dims(op, x, 1, 2)
        self.lengths = [dims(op, x, axis, axis + 1) for axis in range(2, self.rank)]
        self.extended = [cells.extended(op, length, mode, padding_mode) for length in self.lengths]
        self.sizes: list[Value] = []
        self.cells: list[cells.Cell] = []
        planes = coordinate_planes(op, grid, dtype)
        for length, plane, letter in zip(self.lengths, planes, "zyx"[5 - self.rank :], strict=True):
            with scope(op, letter):
                size = named(op.Cast(length, to=int(dtype)), f"{letter}_size")
                pixel = named(unnormalize(op, plane, size, align_corners), f"{letter}_pixel")
                how = (mode, padding_mode, align_corners, self.rank, assume_finite, harmless)
                self.cells.append(cells.cell(op, pixel, size, *how))
            self.sizes.append(size)
        before, _ = cells.EXTENSION[mode, padding_mode]
        self.index_dtype = cells.index_dtype(shape)
        self._strides = [self._pixels(self.extended[axis + 1 :]) for axis in range(self.rank - 3)]
        self.first = self._flat([op.Add(cell.first, float(before)) if before else cell.first for cell in self.cells])

    def _flat(self, along: Sequence[Value]) -> Value:
        """Numbers of pixels, within their image, whose coordinates are given: (P,) of integers."""
        op = self._op
        *outer, index = (op.Cast(pixels, to=int(self.index_dtype)) for pixels in along)
        for pixels, stride in zip(outer, self._strides, strict=True):
            index = op.Add(op.Mul(pixels, op.Cast(stride, to=int(self.index_dtype))), index)
        return index

    def _pixels(self, lengths: Sequence[Value]) -> Value:
        """Product of lengths, (1,)."""
        return count(self._op, joined(self._op, *lengths))

    def distance(self, tap: Sequence[int]) -> Value:
        """Pixels between the first tap of a point and another, (1,)."""
        op = self._op
        strides = [known_ints(stride) for stride in self._strides]
        if None not in strides or not any(tap):
            steps = [*(stride[0] for stride in strides if stride), 1]
            pixels = sum(t * step for t, step in zip(tap, steps, strict=False))
            return op.Constant(value=ir.tensor([pixels], dtype=self.index_dtype))
        terms = [op.Mul(stride, ints(op, [t])) for stride, t in zip(self._strides, tap, strict=False) if t]
        if tap[-1]:
            terms.append(ints(op, [tap[-1]]))
        return op.Cast(reduce(op.Add, terms), to=int(self.index_dtype))

    def images(self) -> Value:
        """The extended image, (N, C, …)."""
        return cells.extend(self._op, self._x, self.lengths, *self._how)

    def rows(self) -> Value:
        """Pixels of all extended images as rows of all channels, (N*S, C)."""
        op = self._op
        # A margin around rows is copied 3 times as fast as one around planes.
        moved = channels_last(op, self._x, self.rank)
        return reshape(op, cells.extend(op, moved, self.lengths, *self._how, axis=1), self.all_pixels(), self.channels)

    def pixels(self) -> Value:
        """S, (1,)."""
        return self._pixels(self.extended)

    def all_pixels(self) -> Value:
        """N*S, (1,)."""
        return self._pixels([self.batch, *self.extended])

    def in_batch(self) -> Value:
        """`first` among the pixels of all images, (P,)."""
        op = self._op
        if known_shape(self._grid, "grid")[0] == 1:
            return self.first
        images = op.Mul(op.Range(0, op.Squeeze(self.batch), 1), self.pixels())
        index = reshape(op, self.first, self.batch, count(op, self.shape()))
        index = op.Add(index, op.Cast(op.Unsqueeze(images, [1]), to=int(self.index_dtype)))
        return reshape(op, index, op.Shape(self.first))

    def shape(self) -> Value:
        """Spatial shape of a grid."""
        return dims(self._op, self._grid, 1, self.rank - 1)


def channels_last(op: Builder, images: Value, rank: int) -> Value:
    """(N, C, …) as (N, …, C)."""
    return op.Transpose(images, perm=[0, *range(2, rank), 1])


def coordinate_planes(op: Builder, grid: Value, dtype: ir.DataType) -> list[Value]:
    """Normalised coordinates of all points, (P,) for each axis, outermost first."""
    axes = len(known_shape(grid, "grid")) - 2
    planes = named(op.Transpose(op.Reshape(cast(op, grid, dtype), [-1, axes]), perm=[1, 0]), "coordinates")
    return [op.Gather(planes, axis, axis=0) for axis in reversed(range(axes))]
