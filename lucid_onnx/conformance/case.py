"""A conformance case: one call of an operator, as data."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from lucid_onnx.conformance.draws import seed_of, whole
from lucid_onnx.conformance.families import FAMILIES, OVERFLOW, Family, coordinates
from lucid_onnx.conformance.nodes import node_model
from lucid_onnx.conformance.sampling import Sampling
from lucid_onnx.operators import operator_model
from lucid_onnx.reference.schema import Array, float_dtype

OPERATORS = ("GridSample", "GridSampleGrad", "AffineGrid", "AffineGridGrad")
"""What is judged: the two operators as nodes, and their gradients as graphs of standard operators."""

CORNERS = {False: "edges", True: "corners"}
"""What -1 and 1 are, by align_corners, as ids have it."""


@dataclass(frozen=True)
class Case:
    """One call of an operator.

    Parameters
    ----------
    op : {"GridSample", "GridSampleGrad", "AffineGrid", "AffineGridGrad"}
        The operator. A gradient is a graph of standard operators, as `operator_model` builds it.
    rank : {4, 5}
        Rank of the image.
    mode, padding_mode : str
        As in `grid_sample`; empty for AffineGrid.
    align_corners : bool
        As in both operators.
    dtype : str
        Of every tensor of floats.
    opset : int
        Of the model.
    shapes : {"symbolic", "static"}
        Whether the model's dimensions are names or numbers. With numbers the size of an AffineGrid is a constant.
    family : str
        What the inputs are, a key of `FAMILIES`; "report" or "onnx" for inputs that are written down.

    Examples
    --------
    >>> case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "ties")
    >>> case.id
    'GridSample-4d-nearest-zeros-edges-float32-opset20-symbolic-ties'
    >>> case.probes
    'points half-way between two pixels, inside and outside'
    >>> {name: array.shape for name, array in case.inputs().items()}
    {'X': (2, 2, 4, 8), 'grid': (2, 4, 5, 2)}
    """

    op: str
    rank: int
    mode: str
    padding_mode: str
    align_corners: bool
    dtype: str
    opset: int
    shapes: str
    family: str

    @property
    def id(self) -> str:
        """The name of the case, which never changes."""
        how = [part for part in (self.mode, self.padding_mode, CORNERS[self.align_corners]) if part]
        setting = (self.dtype, f"opset{self.opset}", self.shapes)
        return "-".join((self.op, f"{self.rank}d", *how, *setting, self.family))

    @property
    def seed(self) -> int:
        """What the inputs are drawn from: cases that differ in mode, padding, dtype or opset share their inputs."""
        return seed_of(f"{self.rank}d-{CORNERS[self.align_corners]}-{self.family}")

    @property
    def probes(self) -> str:
        """What the case probes, in words."""
        return FAMILIES[self.family].probes

    @property
    def ordinary(self) -> bool:
        """Whether every coordinate is finite and near, so that runtimes are expected to agree."""
        return FAMILIES[self.family].ordinary

    @property
    def model_key(self) -> tuple[object, ...]:
        """Cases of one key have one model."""
        family = self.family if self.shapes == "static" else ""
        return (*self._variant, self.dtype, self.opset, self.shapes, family)

    @property
    def data_key(self) -> tuple[object, ...]:
        """Cases of one key have the same inputs, and the same is expected of them."""
        return (*self._variant, self.dtype, self.family)

    @property
    def task_key(self) -> tuple[object, ...]:
        """Cases of one key are best run one after the other: they share models or what is expected."""
        return (*self._variant, self.dtype)

    @property
    def _variant(self) -> tuple[object, ...]:
        return (self.op, self.rank, self.mode, self.padding_mode, self.align_corners)

    def inputs(self) -> dict[str, Array]:
        """Every input of the operator by name, those that the model holds as constants included."""
        dtype = float_dtype(self.dtype, "conformance", "dtype")
        cast = {name: _cast(array, dtype) for name, array in _drawn(self).items()}
        if self.op == "GridSampleGrad":
            # A point that may land on either of two pixels would leave open what all pixels of its image get.
            how = (self.mode, self.padding_mode, self.align_corners)
            doubtful = Sampling(cast["X"], cast["grid"], *how).doubtful[:, None]
            cast["dY"] = np.where(doubtful, np.zeros((), dtype), cast["dY"])
        return cast

    def model(self) -> onnx.ModelProto:
        """The model that is run."""
        inputs = self.inputs() if self.shapes == "static" else {}
        how = (self.rank, self.mode or "bilinear", self.padding_mode or "zeros", self.align_corners, self.dtype)
        if self.op in ("GridSample", "AffineGrid"):
            return node_model(self.op, *how, self.opset, inputs)
        shapes = {name: array.shape for name, array in inputs.items()}
        return operator_model(self.op, *how, self.opset, shapes=shapes)


@dataclass(frozen=True)
class WrittenCase(Case):
    """A case whose inputs are written down, and not drawn."""

    @property
    def seed(self) -> int:
        """0: nothing is drawn."""
        return 0

    @property
    def model_key(self) -> tuple[object, ...]:
        """Each case has its own model."""
        return (self.id,)

    @property
    def data_key(self) -> tuple[object, ...]:
        """Each case has its own inputs."""
        return (self.id,)


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    """Of `dtype`, unless it holds sizes; what float16 is too narrow for becomes its largest number."""
    if array.dtype == np.int64:
        return array
    largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    narrowed = np.where(np.abs(array) < OVERFLOW, np.clip(array, -largest, largest), array)
    with np.errstate(over="ignore"):
        cast: Array = narrowed.astype(dtype)
    return cast


@functools.lru_cache(maxsize=64)
def _drawn_once(op: str, rank: int, align_corners: bool, family: str, seed: int) -> dict[str, Array]:
    """Inputs, in float64."""
    about = FAMILIES[family]
    shape = about.image_shape(rank, align_corners)
    if op == "AffineGrid":
        theta = _coordinates(about, seed, (shape[0], rank - 2, rank - 1), (1,) * (rank - 1), align_corners)
        # A map that overflows, overflows or not by the order of its sum.
        return {"theta": np.where(theta == OVERFLOW, 0.5, theta), "size": np.array(shape)}
    if op == "AffineGridGrad":
        dgrid = whole(seed, (shape[0], *shape[2:], rank - 2), -128, 128) / 128
        return {"dgrid": dgrid, "size": np.array(shape)}
    points = about.output_sizes(rank)
    grid = _coordinates(about, seed, (shape[0], *points, rank - 2), shape[:1:-1], align_corners)
    # Whole numbers of 256ths, which every dtype holds; none is 0, which is what a lost pixel would be.
    image = whole(seed - 1, shape, 64, 256) / 256
    if op == "GridSample":
        return {"X": image, "grid": grid}
    return {"dY": whole(seed - 2, (*shape[:2], *points), -128, 128) / 128, "X": image, "grid": grid}


def _drawn(case: Case) -> dict[str, Array]:
    return _drawn_once(case.op, case.rank, case.align_corners, case.family, case.seed)


def _coordinates(
    family: Family, seed: int, shape: tuple[int, ...], sizes: tuple[int, ...], align_corners: bool
) -> Array:
    """Coordinates whose last axis goes over `sizes`, that of x first."""
    columns = [coordinates(family, seed + k, size, align_corners, shape[:-1]) for k, size in enumerate(sizes)]
    return np.stack(columns, axis=-1)
