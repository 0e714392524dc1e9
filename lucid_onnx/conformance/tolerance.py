"""How far a result may lie from the truth.

A fixed bound is too tight for a large image and too loose for a small one: float32 knows a pixel coordinate
only to about eps times the size of the axis. So the truth is the reference in float64 on the very same
inputs, and a result passes if its error, at the maximum and as root mean square, is at most 4 times the
error that the reference itself makes in the working dtype, plus 4 eps times the range of the values.
Values that are not finite must match exactly.

At a few points no float32 result is right or wrong: where the coordinate cannot be told from a tie of
"nearest", or from a kink when it is the derivative that is judged, and where it is so far out (2**23 pixels in
float32) that a reflection is not resolved to a pixel. `undecided` finds them, and a verdict counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from lucid_onnx.reference import coordinates
from lucid_onnx.reference.schema import ArgumentError, Array, float_dtype

FACTOR = 4
"""Multiple of the reference's own error, and of eps times the range, that is allowed."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of one comparison.

    Parameters
    ----------
    max_error, max_allowed, rms_error, rms_allowed : float
        Errors against the float64 truth over the values that were compared, and their bounds.
    compared, set_aside : int
        Number of values that were compared, and that were left out as undecided.
    mismatches : int
        Values that are not finite where the truth is, or the other way round, or another infinity; with
        `exact`, all that differ; and values set aside that are not finite or beyond `limits`.
    """

    max_error: float
    max_allowed: float
    rms_error: float
    rms_allowed: float
    compared: int
    set_aside: int
    mismatches: int

    @property
    def ok(self) -> bool:
        """Whether the result passes."""
        return self.mismatches == 0 and self.max_error <= self.max_allowed and self.rms_error <= self.rms_allowed


def judge(
    got: npt.ArrayLike,
    compute: Callable[[np.dtype[Any]], Array],
    dtype: npt.DTypeLike | str,
    value_range: float | None = None,
    undecided: Array | None = None,
    exact: bool = False,
    limits: tuple[float, float] | None = None,
) -> Verdict:
    """Compare a result with the reference.

    Parameters
    ----------
    got : array
        The result to judge.
    compute : callable
        Takes a dtype and returns what the reference makes of the same inputs, cast to that dtype.
    dtype : str or dtype
        The working dtype: the one in which `got` was asked for.
    value_range : float, optional
        Range of the values that the result is made of; by default the largest finite magnitude of the truth.
        Where large terms cancel, as in a gradient, it must be that of the terms.
    undecided : Array of bool, optional
        Values to leave out, broadcast against the result.
    exact : bool
        Whether values are chosen, as "nearest" does, and not computed: then none may differ.
    limits : tuple of float, optional
        Smallest and largest value that one left out may have: those of the image, if nothing overshoots.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> third = lambda dtype: np.ones(3, dtype) / dtype.type(3)
    >>> judge(np.full(3, 1 / 3, np.float32), third, "float32").ok
    True
    >>> judge(np.full(3, 0.3334, np.float32), third, "float32").ok
    False
    """
    return expectation(compute, dtype, value_range, undecided, exact, limits).judge(got)


@dataclass(frozen=True)
class Expectation:
    """The truth, and how far from it a result may lie.

    Parameters
    ----------
    truth : Array
        What the reference makes of the inputs in float64.
    own_error : Array
        The error that the reference itself makes in the working dtype.
    working : dtype
        The working dtype.
    slack : float
        What is allowed beside a multiple of that error: 4 eps times the range of the values.
    undecided : Array of bool
        Values that are left out.
    exact : bool
        Whether values are chosen, and not computed.
    limits : tuple of float
        Smallest and largest value that one left out may have.
    """

    truth: Array
    own_error: Array
    working: np.dtype[Any]
    slack: float
    undecided: Array
    exact: bool
    limits: tuple[float, float]

    def compared(self, got: Array) -> Array:
        """Values whose distance from the truth counts: finite both, and not left out."""
        return np.isfinite(self.truth) & np.isfinite(got) & ~self.undecided

    def mismatched(self, got: Array) -> Array:
        """Values that no distance describes: see `Verdict.mismatches`."""
        with np.errstate(over="ignore"):
            same = (got == self.truth.astype(self.working)) | (np.isnan(got) & np.isnan(self.truth))
        finite = np.isfinite(self.truth) & np.isfinite(got)
        low, high = self.limits
        astray = (np.isfinite(self.truth) & ~np.isfinite(got)) | (got < low) | (got > high)
        wrong: Array = ~same & np.where(self.undecided, astray, ~finite | self.exact)
        return wrong

    def errors(self, got: Array) -> Array:
        """Distance from the truth; 0 where it does not count."""
        distance = np.zeros(self.truth.shape)
        with np.errstate(invalid="ignore"):
            np.abs(got - self.truth, where=self.compared(got), out=distance)
        return distance

    def judge(self, got: npt.ArrayLike) -> Verdict:
        """Compare a result with the truth."""
        got = np.asarray(got).astype(np.float64)
        if got.shape != self.truth.shape:
            raise ArgumentError(f"judge: the result has shape {got.shape}, the reference {self.truth.shape}")
        compared = self.compared(got)
        error, own = self.errors(got)[compared], self.own_error[compared]
        return Verdict(
            max_error=float(error.max(initial=0)),
            max_allowed=FACTOR * float(own.max(initial=0)) + self.slack,
            rms_error=_rms(error),
            rms_allowed=FACTOR * _rms(own) + self.slack,
            compared=int(compared.sum()),
            set_aside=int(self.undecided.sum()),
            mismatches=int(self.mismatched(got).sum()),
        )


def expectation(
    compute: Callable[[np.dtype[Any]], Array],
    dtype: npt.DTypeLike | str,
    value_range: float | None = None,
    undecided: Array | None = None,
    exact: bool = False,
    limits: tuple[float, float] | None = None,
) -> Expectation:
    """What the reference expects of a result. Parameters are those of `judge`.

    Examples
    --------
    >>> third = expectation(lambda dtype: np.ones(3, dtype) / dtype.type(3), "float32")
    >>> third.judge(np.full(3, 1 / 3, np.float32)).ok
    True
    """
    working = float_dtype(dtype, "judge", "dtype")
    truth = np.asarray(compute(np.dtype(np.float64)), np.float64)
    eps, own = _own_error(compute, working, truth)
    if value_range is None:
        value_range = float(np.abs(truth[np.isfinite(truth)]).max(initial=0))
    slack = FACTOR * eps * value_range
    low, high = (-np.inf, np.inf) if limits is None else limits
    aside = np.zeros(truth.shape, bool) if undecided is None else np.broadcast_to(undecided, truth.shape)
    return Expectation(truth, own, working, slack, aside, exact, (low - slack, high + slack))


def undecided(
    grid: Array,
    sizes: Sequence[int],
    mode: str,
    padding_mode: str,
    align_corners: bool,
    dtype: npt.DTypeLike | str,
    derivative: bool = False,
) -> Array:
    """Points whose value, or whose derivative, the working dtype cannot decide.

    Parameters
    ----------
    grid : Array
        (N, …, 2) or (N, …, 3), normalised.
    sizes : sequence of int
        Spatial sizes of the image, outermost first.
    mode, padding_mode, align_corners
        As in `grid_sample`.
    dtype : str or dtype
        The working dtype; float16 and bfloat16 compute in float32.
    derivative : bool
        Whether the gradient with respect to the grid is judged, which has a kink at every pixel centre.

    Returns
    -------
    Array of bool
        (N, …). A coordinate that the working dtype computes without rounding is always decided.

    Examples
    --------
    >>> grid = np.float32([[[[0.0, 0.0], [1 / 3, 0.0]]]])  # pixels 1 and 1.5, the latter but for rounding
    >>> undecided(grid, (3, 3), "nearest", "zeros", False, "float32").tolist()
    [[[False, True]]]
    """
    compute = _arithmetic(dtype)
    eps = float(np.finfo(compute).eps)
    doubt = np.zeros(grid.shape[:-1], bool)
    with np.errstate(all="ignore"):
        for axis, size in enumerate(sizes):
            along = grid[..., -1 - axis]
            exact = coordinates.unnormalize(along.astype(np.float64), size, align_corners)
            if padding_mode == "reflection":
                doubt |= np.isfinite(exact) & (np.abs(exact) * eps > 1)
            kink = {"nearest": 0.5, "bilinear": 0.0 if derivative else None, "bicubic": None}[mode]
            if kink is None:
                continue
            rounded = coordinates.unnormalize(along.astype(compute), size, align_corners)
            padded, padded_exact = (
                coordinates.pad(pixel, size, padding_mode, align_corners, False) for pixel in (rounded, exact)
            )
            distance = np.abs(padded_exact - kink - np.rint(padded_exact - kink))
            reach = FACTOR * eps * (np.abs(exact) + size)
            doubt |= (distance <= reach) & (padded != padded_exact)
    return doubt


def as_computed(grid: Array, sizes: Sequence[int], align_corners: bool, dtype: npt.DTypeLike | str) -> Array:
    """`grid` in float64, with the infinity that a coordinate becomes when its pixel overflows the working dtype.

    3e38 is a float32, but 3e38 times a width of 3 is not: such a coordinate lands where an infinite one does,
    and the truth must land there too.

    Examples
    --------
    >>> as_computed(np.float32([[3e38, 0.5]]), (4, 4), False, "float32").tolist()
    [[inf, 0.5]]
    """
    compute = _arithmetic(dtype)
    wide = grid.astype(np.float64)
    with np.errstate(all="ignore"):
        for axis, size in enumerate(sizes):
            pixel = coordinates.unnormalize(grid[..., -1 - axis].astype(compute), size, align_corners)
            wide[..., -1 - axis] = np.where(np.isinf(pixel), pixel, wide[..., -1 - axis])
    return wide


def image_limits(x: npt.ArrayLike) -> tuple[float, float]:
    """Smallest and largest finite value of an image, and of the zero that padding may add.

    Examples
    --------
    >>> image_limits([2.0, 5.0, float("nan")])
    (0.0, 5.0)
    """
    values = np.asarray(x).astype(np.float64)
    values = values[np.isfinite(values)]
    return float(values.min(initial=0)), float(values.max(initial=0))


def image_range(x: npt.ArrayLike) -> float:
    """Range of the finite values of an image, zero included: it is what padding may add.

    Examples
    --------
    >>> image_range([2.0, 5.0, float("nan")])
    5.0
    """
    low, high = image_limits(x)
    return high - low


def _own_error(compute: Callable[[np.dtype[Any]], Array], working: np.dtype[Any], truth: Array) -> tuple[float, Array]:
    """Eps of the working dtype, and the error that the reference makes in it, 0 where it is not finite.

    There is nothing wider than float64 to measure float64 by; there the float32 error is scaled down.
    """
    probe = np.dtype(np.float32) if working == np.float64 else working
    eps, probe_eps = (float(ml_dtypes.finfo(dtype).eps) for dtype in (working, probe))  # type: ignore[no-untyped-call]
    with np.errstate(invalid="ignore"):
        own = np.abs(np.asarray(compute(probe)).astype(np.float64) - truth)
    own[~np.isfinite(own)] = 0
    return eps, own * (eps / probe_eps)


def _arithmetic(dtype: npt.DTypeLike | str) -> type[np.float32] | type[np.float64]:
    """Type in which results of the working dtype are computed."""
    return np.float64 if float_dtype(dtype, "tolerance", "dtype") == np.float64 else np.float32


def _rms(error: Array) -> float:
    return float(np.sqrt(np.mean(np.square(error)))) if error.size else 0.0
