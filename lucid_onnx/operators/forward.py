"""The forward of grid_sample: pixels gathered from an image that is extended by what its padding makes of it.

`operators.cells` says where each point reads. Nearest chooses elements; the others sum rows of all channels, one
for each tap, so that no more than one corner is in memory at a time.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import product

import onnx_ir as ir

from lucid_onnx.operators.building import (
    Builder,
    Value,
    cast,
    compute_dtype,
    count,
    dims,
    float_dtype_of,
    known_shape,
    named,
    reshape,
    scope,
    typed,
)
from lucid_onnx.operators.points import Points
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
        self._points = Points(op, x, grid, mode, padding_mode, corners, dtype, assume_finite)

    def chosen(self) -> Value:
        """One pixel a point: those of all channels by one index, which is repeated for each."""
        op = self.op
        batch, channels = self._points.batch, self._points.channels
        points = count(op, self._points.shape())
        index = reshape(op, self._points.first, batch, [1], points)
        index = op.Expand(index, op.Concat(batch, channels, points, axis=0))
        pixels = reshape(op, self._points.images(), batch, channels, self._points.pixels())
        y = named(op.GatherElements(pixels, index, axis=2), "chosen_pixels")
        return reshape(op, y, batch, channels, self._points.shape())

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
        rows, first = named(self._points.rows(), "pixels"), self._points.in_batch()
        weights = [[op.Unsqueeze(weight, [1]) for weight in cell.weights] for cell in self._points.cells]
        products = []
        for k, tap in enumerate(product(range(TAPS[self._mode]), repeat=self.rank - 2)):
            with scope(op, f"corner_{k}"):
                at = first if k == 0 else op.Add(first, self._points.distance(tap))
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
        y = reshape(op, y, dims(op, self._grid, 0, channels), self._points.channels)
        return op.Transpose(y, perm=[0, channels, *range(1, channels)])
