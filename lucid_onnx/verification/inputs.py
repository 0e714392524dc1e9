"""Inputs for a model, made from what it declares: sizes for its symbols, and values that suit its samplings."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from lucid_onnx.lowering.nodes import is_sampling, read, walk
from lucid_onnx.lowering.precision import holds_values
from lucid_onnx.reference.schema import FLOAT_DTYPES, Array, LucidError, UnsupportedError

REACH = 1.2
"""Grids are drawn up to here: mostly inside the image, and somewhat outside."""

BORDERS = (-1.0, 1.0, 0.0)
FAR = (math.nan, math.inf, -math.inf, 1e10, -1e10, 3e38)


@dataclass(frozen=True)
class Sizes:
    """What dimensions without a size get.

    Parameters
    ----------
    batch : int
        Where a name says batch, and along the first axis.
    unit, step : int
        Others get ``unit``, ``unit + step`` and ``unit + 2 * step`` in turn, so that a swap of two is found.
    """

    batch: int
    unit: int
    step: int


SIZES = (Sizes(2, 8, 4), Sizes(1, 8, 4), Sizes(2, 32, 16), Sizes(1, 32, 16), Sizes(2, 64, 0), Sizes(1, 64, 0))
"""In the order in which they are tried: networks of many levels need larger images, some only batches of one."""


@dataclass(frozen=True)
class Role:
    """What an input is for a sampling.

    Parameters
    ----------
    kind : {"grid", "theta", "size"}
        The input of GridSample or AffineGrid that it becomes.
    axes : int
        Spatial axes of the image.
    own : bool
        Whether the operator reads it as it is.
    theta : onnx_ir.Value, optional
        For a size, the theta beside it, whose batch it must name.
    """

    kind: str
    axes: int
    own: bool
    theta: ir.Value | None = None


def roles(model: ir.Model) -> dict[ir.Value, Role]:
    """Inputs that reach the coordinates of a sampling through rearrangement and elementwise arithmetic only.

    The model must be typed.
    """
    found: dict[ir.Value, Role] = {}
    for node in filter(is_sampling, walk(model.graph)):
        try:
            axes = read(node).rank - 2
        except LucidError:
            continue
        first, second = node.inputs[:2]
        sources = {"grid": second} if node.op_type == "GridSample" else {"theta": first, "size": second}
        for kind, value in sources.items():
            if value is None:
                continue
            for source in {value} if kind == "size" else _sources(value):
                if source.is_graph_input() and not source.is_initializer():
                    found.setdefault(source, Role(kind, axes, source is value, first))
    return found


def _sources(value: ir.Value) -> Iterator[ir.Value]:
    """The values that `value` is made of by rearrangement and elementwise arithmetic."""
    waiting, seen = [value], set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        yield here
        node = here.producer()
        if node is None or node.domain != "":
            continue
        if node.op_type == "MatMul":
            continue
        waiting += [
            source
            for position, source in enumerate(node.inputs)
            if source is not None and (node.op_type == "Cast" or holds_values(node, position))
        ]


def make_inputs(model: ir.Model, sizes: Sizes, seed: int, special: Iterable[float] = ()) -> dict[str, Array]:
    """Values for every input that must be given.

    Parameters
    ----------
    model : onnx_ir.Model
        The model, typed.
    sizes : Sizes
        For dimensions without a size; each symbol has one size in all inputs.
    seed : int
        What is drawn depends on it and on the name of the input only.
    special : iterable of float
        Coordinates that every third one of a grid is replaced by. With any of them the first theta is the identity,
        and with NaN among them the second one holds it.

    Raises
    ------
    UnsupportedError
        An input for which nothing can be made: it must be given.

    Examples
    --------
    >>> model = ir.from_onnx_text('''
    ...     <ir_version: 9, opset_import: ["" : 20]>
    ...     warp (float[N, 3, H, W] x, float[N, 4, 4, 2] grid) => (float[N, 3, 4, 4] y) { y = GridSample (x, grid) }''')
    >>> feed = make_inputs(model, SIZES[0], seed=0)
    >>> feed["x"].shape, feed["grid"].shape, bool(abs(feed["grid"]).max() <= REACH)
    ((2, 3, 8, 12), (2, 4, 4, 2), True)
    """
    maker = _Maker(model, sizes, tuple(special))
    return {value.name: maker.make(value, seed) for value in model.graph.inputs if value.name and is_needed(value)}


def is_needed(value: ir.Value) -> bool:
    """Whether an input must be given: it has no default, and is not optional."""
    return not value.is_initializer() and not isinstance(value.type, ir.OptionalType)


class _Maker:
    def __init__(self, model: ir.Model, sizes: Sizes, special: tuple[float, ...]) -> None:
        self._sizes, self._special = sizes, special
        self._roles = roles(model)
        self._symbols: dict[str, int] = {}
        self._others = 0

    def make(self, value: ir.Value, seed: int) -> Array:
        if not isinstance(value.type, ir.TensorType) or value.shape is None or value.dtype is None:
            raise UnsupportedError(
                f"verify: nothing can be made for input {value.name!r}, which is no tensor of known rank; give feeds"
            )
        role = self._roles.get(value)
        rng = np.random.default_rng([seed, zlib.crc32((value.name or "").encode())])
        shape = [self._size(dimension, axis) for axis, dimension in enumerate(value.shape)]
        dtype = _dtype(value)
        if role is None or (dtype.name not in FLOAT_DTYPES) != (role.kind == "size"):
            return _plain(rng, shape, dtype)
        if role.kind == "size":
            return self._image_size(role, dtype)
        if role.kind == "theta":
            values = self._theta(rng, role, shape)
        else:
            if role.own and not isinstance(value.shape[-1], int):
                shape[-1] = role.axes
            values = self._grid(rng, shape)
        with np.errstate(over="ignore"):
            return values.astype(dtype)

    def _size(self, dimension: int | ir.SymbolicDim, axis: int) -> int:
        if isinstance(dimension, int):
            return dimension
        sizes, name = self._sizes, dimension.value or ""
        if not name:
            return sizes.batch if axis == 0 else sizes.unit + axis % 3 * sizes.step
        if name not in self._symbols:
            if axis == 0 or name.lower() in ("n", "b", "bs") or "batch" in name.lower():
                self._symbols[name] = sizes.batch
            else:
                self._symbols[name] = sizes.unit + self._others % 3 * sizes.step
                self._others += 1
        return self._symbols[name]

    def _grid(self, rng: np.random.Generator, shape: list[int]) -> Array:
        grid = rng.uniform(-REACH, REACH, shape)
        if self._special:
            taken = grid.reshape(-1)[::3]
            taken[:] = np.resize(self._special, taken.shape)
        return grid

    def _theta(self, rng: np.random.Generator, role: Role, shape: list[int]) -> Array:
        """Maps near the identity; where the shape is not that of theta, it becomes one by a Reshape, or by a sum."""
        identity = np.eye(role.axes, role.axes + 1)
        theta = 0.1 * rng.standard_normal(shape)
        if math.prod(shape[1:]) != identity.size:
            return theta
        identity = identity.reshape(shape[1:])
        theta += identity
        if self._special:
            theta[:1] = identity
        if any(map(math.isnan, self._special)):
            theta.reshape(shape[0], -1)[1:2, 0] = math.nan
        return theta

    def _image_size(self, role: Role, dtype: np.dtype[np.generic]) -> Array:
        shape = None if role.theta is None else role.theta.shape
        batch = self._sizes.batch if shape is None else self._size(shape[0], 0)
        spatial = [self._sizes.unit + axis * self._sizes.step for axis in range(role.axes)]
        return np.array([batch, 1, *spatial], dtype)


def _dtype(value: ir.Value) -> np.dtype[np.generic]:
    assert value.dtype is not None
    try:
        dtype: np.dtype[np.generic] = value.dtype.numpy()
    except TypeError:
        dtype = np.dtype(object)
    if dtype.name not in FLOAT_DTYPES and (dtype.kind not in "iub" or value.dtype.bitwidth < 8):
        raise UnsupportedError(f"verify: nothing can be made for input {value.name!r} of {value.dtype}; give feeds")
    return dtype


def _plain(rng: np.random.Generator, shape: list[int], dtype: np.dtype[np.generic]) -> Array:
    if dtype.name in FLOAT_DTYPES:
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 4, shape).astype(dtype)
