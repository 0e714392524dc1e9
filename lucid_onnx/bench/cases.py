"""What is measured: shapes, grids, and every way to sample, as one-node models with their inputs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder

from lucid_onnx.operators.finishing import DEFAULT_OPSET, checked, declare_outputs, new_model
from lucid_onnx.operators.tensors import TensorSpec
from lucid_onnx.reference import affine_grid
from lucid_onnx.reference.schema import ONNX_MODES, PADDING_MODES, SPATIAL_AXES, ArgumentError, Array

GRIDS = ("uniform", "smooth")
"""Points drawn anew within ±1.1, and those of a mild affine warp, which reads neighbours one after the other."""

MOST_NUMBERS = 2**31 - 1
"""Numbers that an image, a grid or a result may hold: more is no benchmark but a test of patience."""


@dataclass(frozen=True)
class Shape:
    """Shape of an image, (N, C, H, W) or (N, C, D, H, W), and the spatial sizes of the result."""

    name: str
    image: tuple[int, ...]
    points: tuple[int, ...]

    @property
    def grid(self) -> tuple[int, ...]:
        """Shape of the grid."""
        return (self.image[0], *self.points, len(self.points))

    @property
    def result(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.image[:2], *self.points)

    def __str__(self) -> str:
        written = f"{_joined(self.image)} -> {_joined(self.points)}"
        return f"{self.name} {written}" if self.name in SHAPES else written


@dataclass(frozen=True)
class Cell:
    """One way to sample one shape.

    Parameters
    ----------
    shape : Shape
        Of what.
    grid : str
        One of `GRIDS`.
    mode : {"linear", "nearest", "cubic"}
        As ONNX calls it from opset 20 on.
    padding_mode, align_corners : str, bool
        As in `grid_sample`.
    """

    shape: Shape
    grid: str
    mode: str
    padding_mode: str
    align_corners: bool

    @property
    def is_basic(self) -> bool:
        """Whether it is the way that all others are compared with: linear, with zeros, by ONNX's defaults."""
        return (self.mode, self.padding_mode, self.align_corners) == ("linear", "zeros", False)


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("A", (1, 3, 256, 256), (256, 256)),
        Shape("B", (8, 64, 64, 64), (64, 64)),
        Shape("C", (1, 256, 64, 64), (128, 128)),
        Shape("D", (1, 1, 64, 64, 64), (64, 64, 64)),
        Shape("E", (1, 32, 16, 64, 64), (16, 64, 64)),
        Shape("F", (64, 1, 28, 28), (28, 28)),
    )
}
"""A picture; features of a network; features that are enlarged; a volume; features of a volume; a batch of digits."""

LOWERED_SHAPES = ("A", "B", "C", "D", "E")
"""Shapes that lowering is measured on."""


def parse_shapes(texts: Sequence[str]) -> list[Shape]:
    """Shapes by their letters, or written out.

    Parameters
    ----------
    texts : sequence of str
        Letters of `SHAPES`; or an image and, after a colon, the sizes of the result where they differ from
        those of the image: ``2x16x128x128:64x64``.

    Raises
    ------
    ArgumentError
        What is written is no shape, or there is none.

    Examples
    --------
    >>> [str(shape) for shape in parse_shapes(["b", "2x16x128x128:64x64"])]
    ['B 8x64x64x64 -> 64x64', '2x16x128x128 -> 64x64']
    """
    if not texts:
        raise ArgumentError(f"bench: name at least one shape; there are {', '.join(SHAPES)}")
    return list(dict.fromkeys(_shape(text.strip()) for text in texts))


def cells(shapes: Sequence[Shape]) -> list[Cell]:
    """Every cell of `shapes`: both grids and all modes and paddings that onnxruntime has a kernel for.

    Examples
    --------
    >>> len(cells([SHAPES["A"]])), len(cells([SHAPES["D"]]))
    (36, 24)
    """
    return [
        Cell(shape, *how)
        for shape in shapes
        for how in itertools.product(GRIDS, ONNX_MODES, PADDING_MODES, (False, True))
        if not (len(shape.image) == 5 and how[1] == "cubic")
    ]


def gradient_cells(shapes: Sequence[Shape]) -> list[Cell]:
    """The cells in which gradients are measured: linear with zeros on both grids first, then the others on one.

    Examples
    --------
    >>> [len(gradient_cells([SHAPES[name]])) for name in "AD"]
    [19, 13]
    """
    found = cells(shapes)
    basic = [cell for cell in found if cell.is_basic]
    return basic + [cell for cell in found if cell.grid == "uniform" and not cell.is_basic]


def inputs(shape: Shape, grid: str) -> tuple[Array, Array]:
    """An image of noise and a grid, both of float32, the same at every call.

    Examples
    --------
    >>> [array.shape for array in inputs(SHAPES["C"], "smooth")]
    [(1, 256, 64, 64), (1, 128, 128, 2)]
    """
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape.image, np.float32)
    if grid == "uniform":
        return x, rng.uniform(-1.1, 1.1, shape.grid).astype(np.float32)
    axes = len(shape.points)
    theta = np.eye(axes, axes + 1) + rng.uniform(-0.1, 0.1, (shape.image[0], axes, axes + 1))
    return x, affine_grid(theta.astype(np.float32), shape.result)


def kernel_model(cell: Cell) -> onnx.ModelProto:
    """GridSample alone, its shapes known.

    Examples
    --------
    >>> cell = Cell(SHAPES["A"], "uniform", "cubic", "border", False)
    >>> [node.op_type for node in kernel_model(cell).graph.node]
    ['GridSample']
    """
    specs = (
        TensorSpec("X", ir.DataType.FLOAT, cell.shape.image),
        TensorSpec("grid", ir.DataType.FLOAT, cell.shape.grid),
    )
    graph = ir.Graph(
        [spec.value() for spec in specs], [], nodes=[], opset_imports={"": DEFAULT_OPSET}, name="GridSample"
    )
    op = GraphBuilder(graph).op
    how = {"mode": cell.mode, "padding_mode": cell.padding_mode, "align_corners": int(cell.align_corners)}
    declare_outputs(
        op, graph, [op.GridSample(*graph.inputs, **how)], [TensorSpec("Y", ir.DataType.FLOAT, cell.shape.result)]
    )
    return checked(new_model(graph))


def _shape(text: str) -> Shape:
    if text.upper() in SHAPES:
        return SHAPES[text.upper()]
    if not re.fullmatch(r"\d+(x\d+)+(:\d+(x\d+)*)?", text, re.ASCII):
        raise ArgumentError(
            f"bench: {text!r} is no shape; write {', '.join(SHAPES)}, or an image and the sizes of the result, "
            "2x16x128x128:64x64"
        )
    written, _, points_written = text.partition(":")
    image = _sizes(written)
    points = _sizes(points_written) if points_written else image[2:]
    if len(image) not in SPATIAL_AXES or len(points) != len(image) - 2:
        raise ArgumentError(f"bench: {text!r} must be NxCxHxW:HoxWo or NxCxDxHxW:DoxHoxWo")
    shape = Shape(text, image, points)
    if 0 in (*image, *points):
        raise ArgumentError(f"bench: {text!r} has nothing to sample; every size must be at least 1")
    if max(math.prod(each) for each in (shape.image, shape.grid, shape.result)) > MOST_NUMBERS:
        raise ArgumentError(f"bench: {text!r} is too large; image, grid and result hold at most 2^31 - 1 numbers each")
    return shape


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split("x"))


def _joined(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))
