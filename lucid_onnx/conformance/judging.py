"""What the reference expects of a case, and the verdict on what a runtime gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.outcome import PASS, WRONG_FORM, WRONG_VALUE, Worst
from lucid_onnx.conformance.sampling import Sampling
from lucid_onnx.conformance.tolerance import Expectation, expectation, image_range
from lucid_onnx.reference import affine_grid, affine_grid_backward
from lucid_onnx.reference.schema import Array

CHANNELS_LAST = ("grid", "dgrid")
"""Outputs whose last axis is not one of points."""


@dataclass(frozen=True)
class Expected:
    """What the reference expects of one output.

    Parameters
    ----------
    name : str
        Name of the output.
    expectation : Expectation
        The truth, and how far from it a result may lie.
    grid : Array, optional
        The points that the values belong to, (N, …, d), if they belong to points.
    """

    name: str
    expectation: Expectation
    grid: Array | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the output."""
        return self.expectation.working

    @property
    def truth(self) -> Array:
        """In float64."""
        return self.expectation.truth

    @property
    def undecided(self) -> Array:
        """Values that are not judged."""
        return self.expectation.undecided

    @property
    def bound(self) -> float:
        """How far the furthest value may lie from the truth; 0 where values are chosen, and not computed."""
        return 0.0 if self.expectation.exact else self.expectation.judge(self.truth).max_allowed


def expect(case: Case, inputs: Mapping[str, Array]) -> list[Expected]:
    """What the reference expects of every output of a case.

    Parameters
    ----------
    case : Case
        The case.
    inputs : mapping of str to Array
        What `Case.inputs` returns.

    Examples
    --------
    >>> case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "ties")
    >>> [(expected.name, expected.truth.shape, expected.bound) for expected in expect(case, case.inputs())]
    [('Y', (2, 2, 4, 5), 0.0)]
    """
    return EXPECTATIONS[case.op](case, inputs)


def _grid_sample(case: Case, inputs: Mapping[str, Array]) -> list[Expected]:
    sampling = Sampling(inputs["X"], inputs["grid"], case.mode, case.padding_mode, case.align_corners)
    return [Expected("Y", sampling.y(), sampling.grid)]


def _grid_sample_grad(case: Case, inputs: Mapping[str, Array]) -> list[Expected]:
    how = (case.mode, case.padding_mode, case.align_corners)
    sampling = Sampling(inputs["X"], inputs["grid"], *how, grad_out=inputs["dY"])
    of_x, of_grid = sampling.gradients()
    return [Expected("dX", of_x), Expected("dgrid", of_grid, sampling.grid)]


def _affine_grid(case: Case, inputs: Mapping[str, Array]) -> list[Expected]:
    theta, size = inputs["theta"], inputs["size"].tolist()

    def compute(dtype: np.dtype[Any]) -> Array:
        return affine_grid(theta.astype(dtype), size, case.align_corners)

    terms = image_range(np.abs(theta.astype(np.float64)).sum(-1))
    return [Expected("grid", expectation(compute, theta.dtype, terms))]


def _affine_grid_grad(case: Case, inputs: Mapping[str, Array]) -> list[Expected]:
    grad, size = inputs["dgrid"], inputs["size"].tolist()

    def compute(dtype: np.dtype[Any]) -> Array:
        return affine_grid_backward(grad.astype(dtype), size, case.align_corners)

    terms = np.abs(grad.astype(np.float64)).sum(axis=tuple(range(1, grad.ndim - 1)))
    return [Expected("dtheta", expectation(compute, grad.dtype, float(terms.max(initial=0))))]


EXPECTATIONS: dict[str, Callable[[Case, Mapping[str, Array]], list[Expected]]] = {
    "GridSample": _grid_sample,
    "GridSampleGrad": _grid_sample_grad,
    "AffineGrid": _affine_grid,
    "AffineGridGrad": _affine_grid_grad,
}


def decide(expected: Sequence[Expected], results: Sequence[Array]) -> tuple[str, str, Worst | None]:
    """The verdict on the results of a runtime.

    Parameters
    ----------
    expected : sequence of Expected
        What the reference expects.
    results : sequence of Array
        Outputs in the same order.

    Returns
    -------
    verdict : str
        "pass", "wrong value" or "wrong shape or dtype".
    words : str
        What is wrong, if that is no single value.
    worst : Worst, optional
        The value furthest beyond its bound, if values are wrong.
    """
    if len(results) != len(expected):
        return WRONG_FORM, f"{len(results)} outputs, want {len(expected)}", None
    for want, got in zip(expected, results, strict=True):
        form, wanted = (got.dtype.name, got.shape), (want.dtype.name, want.truth.shape)
        if form != wanted:
            return WRONG_FORM, f"{want.name} is {form[0]} {form[1]}, want {wanted[0]} {wanted[1]}", None
    for want, result in zip(expected, results, strict=True):
        got = result.astype(np.float64)
        verdict = want.expectation.judge(got)
        if not verdict.ok:
            only_rms = verdict.mismatches == 0 and verdict.max_error <= verdict.max_allowed
            rms = f"root mean square error {verdict.rms_error:.3g}, allowed {verdict.rms_allowed:.3g}"
            return WRONG_VALUE, rms if only_rms else "", _worst(want, got)
    return PASS, "", None


def _worst(want: Expected, got: Array) -> Worst:
    about = want.expectation
    allowed = about.judge(got).max_allowed
    wrong, errors = about.mismatched(got), about.errors(got)
    # What no distance describes comes first, then the largest distance.
    rank = np.where(wrong, np.inf, errors)
    if about.exact:
        rank = np.where(wrong, 1 + np.nan_to_num(errors, posinf=np.inf), 0)
    index = tuple(map(int, np.unravel_index(int(rank.argmax()), rank.shape)))
    letters = np.select(
        [
            wrong & ~(np.isfinite(got) & np.isfinite(about.truth)),
            about.undecided & ~wrong,
            wrong,
            errors > 100 * allowed,
            errors > allowed,
            errors > allowed / 10,
        ],
        ["!", "?", "X", "X", "x", "o"],
        ".",
    )
    place = index
    if want.name in CHANNELS_LAST:
        letters = np.moveaxis(letters, -1, 1)
        place = (index[0], index[-1], *index[1:-1])
    coordinate = None
    if want.grid is not None:
        point = (index[0], *(index[1:-1] if want.name in CHANNELS_LAST else index[2:]))
        coordinate = tuple(map(float, want.grid[point]))
    rows = letters[place[:-2]]
    bound = 0.0 if about.exact else allowed
    figures = (float(got[index]), float(about.truth[index]), bound)
    return Worst(want.name, index, coordinate, *figures, tuple("".join(row) for row in rows))
