"""A runtime's own GridSample behind arithmetic on the grid that makes it right, and fast.

All padding can be done to the normalised coordinates, before the kernel sees them. With s pixels along an
axis:

1. reflection is the triangle wave through (-1, -1) and (1, 1), of period 4;
2. border clips to the centres of the outermost pixels: to ±(1 - 1/s), or ±1 with align_corners;
3. align_corners is a factor: ``n (1 - 1/s)`` is the coordinate without it of what n is with it.

So every linear cell becomes that of zeros without align_corners, the one that runtimes have made fast; and as
taps beyond the image are not read there, an infinite pixel under a tap without weight does no harm. Nearest
must be exact, also at ties: its pixel is computed here, and the kernel is handed the centre of it. Cubic with
reflection reads an image that is extended by two mirrored pixels. Where the coordinate is not finite, it is
replaced by where it should land; where NaN should come out, that is added to the result.

The price: beside -1 a float32 has steps of 2^-24, so a coordinate there is known to n * 2^-25 pixels once it has
been moved, however small its distance from the edge was before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.lowering.rows import RENAMED
from lucid_onnx.operators import cells
from lucid_onnx.operators.building import Builder, Value, dims, known_shape, named, reshape
from lucid_onnx.operators.coordinates import unnormalize
from lucid_onnx.reference.schema import ONNX_MODES

OUTSIDE = 3.0
"""A normalised coordinate beyond all pixels, whatever their number."""

FAR = 1e4
"""So far out that no kernel of any mode reads a pixel, and so near that every one knows where it is."""


@dataclass(frozen=True)
class Cell:
    """What tells one kernel call from another."""

    mode: str
    padding_mode: str
    align_corners: bool


def home_cell(cell: Cell) -> Cell:
    """The cell in which the kernel is called once the coordinates have been brought home."""
    if cell.mode == "bicubic" and cell.padding_mode != "reflection":
        return cell
    return Cell(cell.mode, "zeros", False)


def guarded_cell(cell: Cell) -> Cell:
    """The cell in which the kernel is called if its coordinates are guarded, but not for speed."""
    return cell if cell.mode == "bicubic" else home_cell(cell)


def spelled(mode: str, opset: int) -> str:
    """A mode as `opset` spells it."""
    names = {ours: theirs for theirs, ours in ONNX_MODES.items()}
    return names[mode] if opset >= RENAMED else mode


def plain(op: Builder, x: Value, grid: Value, cell: Cell, opset: int) -> Value:
    """The node as `opset` spells it."""
    how = {
        "mode": spelled(cell.mode, opset),
        "padding_mode": cell.padding_mode,
        "align_corners": int(cell.align_corners),
    }
    y: Value = op.GridSample(x, grid, **how)
    return y


def homed(op: Builder, x: Value, grid: Value, cell: Cell, opset: int, guard: bool, extend: bool) -> Value:
    """`grid_sample` by the kernel, behind the arithmetic that the module describes.

    Parameters
    ----------
    op
        The builder.
    x, grid : Value
        Image and grid; the grid of at least float32, the image of the same dtype or a narrower one.
    cell : Cell
        What is sampled.
    opset : int
        Opset of the model, which decides on the spelling of the mode.
    guard : bool
        Whether coordinates that are not finite must land where the reference lets them.
    extend : bool
        Whether cubic with reflection reads an extended image, so that the kernel reflects nothing.
    """
    points = _Points(op, x, grid, cell)
    called = cell
    if cell.mode == "nearest":
        points.to_centres(guard)
        called = home_cell(cell)
    elif cell.mode == "bilinear":
        points.to_cell_of_zeros(guard)
        called = home_cell(cell)
    else:
        extend = extend and cell.padding_mode == "reflection"
        points.to_cubic(guard, extend)
        if extend:
            lengths = [dims(op, x, axis, axis + 1) for axis in range(2, len(known_shape(x, "x")))]
            x = cells.extend(op, x, lengths, cell.mode, cell.padding_mode, cell.align_corners)
            called = home_cell(cell)
    y = plain(op, x, points.as_grid(), called, opset)
    # Volumes give 0 where images give NaN, which the coordinates have been brought to already.
    nan_is_nan = cell.mode == "bicubic" or (cell.mode == "bilinear" and cell.padding_mode == "zeros")
    if guard and nan_is_nan and points.rank == 4:
        y = op.Add(y, op.CastLike(points.poison(), y))
    return y


class _Points:
    """The coordinates on their way to the kernel.

    All axes are worked on at once: as they lie, (N, …, d), where they have one size, so that every constant is a
    number, and else as planes (d, N*P) beside constants (d, 1). A constant (d,) beside (N*P, d) costs 20 times
    as much in onnxruntime.
    """

    def __init__(self, op: Builder, x: Value, grid: Value, cell: Cell) -> None:
        sizes = known_shape(x, "x")[2:]
        assert grid.dtype is not None
        self.rank, self._op, self._grid, self._cell, self._dtype = len(sizes) + 2, op, grid, cell, grid.dtype
        self._in_planes = None in sizes or len(set(sizes)) > 1
        if self._in_planes:
            points = op.Transpose(op.Reshape(grid, [-1, len(sizes)]), perm=[1, 0])
            innermost_first = op.Slice(dims(op, x, 2, self.rank), [-1], [-1 - len(sizes)], [0], [-1])
            size = op.Unsqueeze(innermost_first, [1])
        else:
            points, size = grid, op.Squeeze(dims(op, x, 2, 3))
        self._given = self._home = points
        self._size = op.Cast(size, to=int(self._dtype))

    def to_cell_of_zeros(self, guard: bool) -> None:
        """Linear: padding and align_corners are done to the coordinates."""
        op, padding = self._op, self._cell.padding_mode
        edge = self._edge()
        bound = 1.0 if self._cell.align_corners else edge
        if padding == "reflection":
            self._home = self._wave()
        if padding != "zeros":
            # The wave of what is not finite is NaN already, but for what only overflows as a pixel.
            self._home = self._clip(self._home, bound, guard and padding == "border")
        if self._cell.align_corners:
            self._home = op.Mul(self._home, edge)
        if guard and padding == "zeros":
            self._home = op.Where(op.Less(op.Abs(self._home), FAR), self._home, OUTSIDE)
        elif guard and padding == "reflection":
            self._home = op.Where(self._is_finite(), self._home, edge if self.rank == 5 else op.Neg(edge))

    def _edge(self) -> Value:
        """The centre of the last pixel, or the float beyond it where that falls short once it is a pixel again.

        Then the kernel would read the pixel before it, too; what lies beyond the last one it does not read.
        """
        op, size = self._op, self._size
        edge = op.Sub(1.0, op.Div(1.0, size))
        pixel = unnormalize(op, edge, size, align_corners=False)
        ulp = 2.0**-53 if self._dtype == ir.DataType.DOUBLE else 2.0**-24
        return op.Where(op.Less(pixel, op.Sub(size, 1.0)), op.Add(edge, ulp), edge)

    def to_centres(self, guard: bool) -> None:
        """Nearest: each coordinate becomes the centre of its pixel, which no rounding takes away."""
        op, padding = self._op, self._cell.padding_mode
        coordinate = self._wave() if padding == "reflection" else self._given
        pixel = unnormalize(op, coordinate, self._size, self._cell.align_corners)
        low, high = (-1.0, self._size) if padding == "zeros" else (0.0, op.Sub(self._size, 1.0))
        nan_is_last = self.rank == 5 and padding != "zeros"
        if guard and padding == "reflection":
            pixel = op.Where(self._is_finite(), pixel, high if nan_is_last else low)
        pixel = cells.clamp(op, pixel, low, high, not guard, nan_is_last)
        twice = op.Mul(op.Round(pixel), 2.0)
        self._home = op.Sub(op.Div(op.Add(twice, 1.0), self._size), 1.0)

    def to_cubic(self, guard: bool, extend: bool) -> None:
        """Cubic: only reflection is done to the coordinates, by the symmetry of the kernel."""
        op = self._op
        if self._cell.padding_mode == "reflection":
            self._home = self._wave()
            if extend:
                pixels = op.Sub(self._size, 1.0) if self._cell.align_corners else self._size
                self._home = op.Mul(self._home, op.Div(pixels, op.Add(self._size, 4.0)))
        if guard:
            near = op.Max(op.Min(self._home, FAR), -FAR)
            self._home = op.Where(self._is_finite(), near, 0.0)

    def as_grid(self) -> Value:
        """The coordinates as a grid again."""
        if not self._in_planes:
            return self._home
        op = self._op
        return named(reshape(op, op.Transpose(self._home, perm=[1, 0]), op.Shape(self._grid)), "home")

    def poison(self) -> Value:
        """NaN where a coordinate is not finite, and 0 elsewhere: (N, 1, …)."""
        op = self._op
        reach = self._reach()
        poison = op.Sub(reach, reach)
        axis = 0 if self._in_planes else self.rank - 1
        along = [op.Gather(poison, k, axis=axis) for k in range(self.rank - 2)]
        total = along[0]
        for other in along[1:]:
            total = op.Add(total, other)
        return reshape(op, total, dims(op, self._grid, 0, 1), [1], dims(op, self._grid, 1, self.rank - 1))

    def _reach(self) -> Value:
        """What overflows where the pixel coordinate does, and is NaN where that is."""
        op = self._op
        factor = op.Div(op.Sub(self._size, 1.0), 2.0) if self._cell.align_corners else self._size
        return op.Mul(self._given, factor)

    def _is_finite(self) -> Value:
        op = self._op
        return op.Less(op.Abs(self._reach()), math.inf)

    def _wave(self) -> Value:
        """1 of the module. Exact within ±1, and wherever the coordinate is a tie."""
        op = self._op
        offset = op.Sub(self._given, op.Mul(op.Round(op.Mul(self._given, 0.25)), 4.0))
        clipped = op.Max(op.Min(offset, 1.0), -1.0)
        return op.Sub(op.Mul(clipped, 2.0), offset)

    def _clip(self, values: Value, bound: Value | float, guard: bool) -> Value:
        """2 of the module; where a NaN lands decides the order."""
        op = self._op
        high = op.Cast(bound, to=int(self._dtype))
        return cells.clamp(op, values, op.Neg(high), high, not guard, nan_is_last=self.rank == 5)
