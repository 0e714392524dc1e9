"""The slopes of the original and what a gradient model says of them, name by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from lucid_onnx.reference.schema import Array, LucidError
from lucid_onnx.verification.backward import Backward
from lucid_onnx.verification.gradient_report import GradientVerification, SlopeRow
from lucid_onnx.verification.outputs import chooses, compare, relative_bound
from lucid_onnx.verification.slopes import SPREAD, difference, direction, size
from lucid_onnx.verification.witness import Values, Witness, widened

DIRECTIONS = 3
"""For each name; fewer where they would take longer than `SECONDS`."""

SECONDS = 60.0

MOST_KINKS = 4
"""Where so many directions meet a kink the point itself lies on one, and no difference can be trusted."""

NOISE = 4.0
"""How much more than what goes in the roundings inside of a model change its gradient, at most."""

BLUNT = 1e-2
"""Part of a gradient that its rounding may be where it is judged; otherwise, and where it is 0, it is moved."""

MOVE = 1e-2
"""How far values are moved off a kink, in sizes of them."""

LEAST = 1e-6
"""The smallest error that a slope in float64 is taken to tell, in sizes of the gradient."""


@dataclass
class Point:
    """Where slopes are taken: values of the original, its outputs there, the gradients, and the noise in these."""

    where: str
    values: Values
    outputs: Values
    grads: Values
    noise: Mapping[str, float]


class Comparison:
    """The search for a witness and for points, and the rows that come of it.

    Parameters
    ----------
    model : onnx_ir.Model
        The original, typed.
    backward : Backward
        The gradient model.
    result : GradientVerification
        What is found goes there.
    seed : int
        Of all that is drawn.
    """

    def __init__(self, model: ir.Model, backward: Backward, result: GradientVerification, seed: int) -> None:
        self._backward, self._result = backward, result
        self._rng = np.random.default_rng(seed)
        self._relative, self._choice = max(relative_bound(model), LEAST), chooses(model)
        self._seeds: dict[str, Array] = {}
        self._directions = DIRECTIONS

    def run(self, openers: Iterable[Callable[[], Witness]], values: Values, where: str) -> None:
        """Compare by the first witness that can be had; `where` says what the values are."""
        refused: list[str] = []
        for opened in openers:
            try:
                witness = opened()
                begin = time.perf_counter()
                outputs = witness.run(values)
            except LucidError as error:
                refused.append(str(error))
                continue
            seconds = 4 * len(self._backward.wrt) * (time.perf_counter() - begin)
            if seconds > SECONDS and not witness.relative:
                refused.append(f"{witness.what} would take {seconds:.0f} s or more")
                continue
            self._directions = int(np.clip(SECONDS / max(seconds, 1e-9), 1, DIRECTIONS))
            self._seeds = self._backward.draw_seeds(outputs, self._rng)
            try:
                point = self._point(where, self._backward, values, outputs)
            except LucidError as error:
                self._result.error = str(error)
                return
            if isinstance(point, str):
                refused.append(f"by {witness.what} the output {point!r} is not that of the gradient model")
                continue
            self._result.slopes = witness.what
            if witness.relative:
                self._result.notes.append(f"the slopes are rough and tell gross errors only: {'; '.join(refused)}")
            self._compare(witness, point)
            return
        self._result.error = f"there is nothing to compare with: {'; '.join(refused)}"

    def _point(self, where: str, backward: Backward, values: Values, outputs: Values) -> Point | str:
        """A point, or the name of an output that is another one in the gradient model."""
        found, grads = backward.run(values, self._seeds)
        for name in backward.outputs:
            row = compare(name, found[name], outputs[name], self._relative, self._choice)
            if row is None or not row.ok:
                return name
        return Point(where, values, outputs, grads, backward.noise(values, self._seeds, self._rng))

    def _compare(self, witness: Witness, point: Point) -> None:
        moved: Point | None = None
        for name in self._backward.wrt:
            rows, kinks = self._rows(name, witness, point)
            if kinks or NOISE * point.noise[name] >= BLUNT * size(point.grads[name]):
                moved = moved or self._moved(witness, point)
                others, more = self._rows(name, witness, moved) if moved else ([], 0)
                rows = others if others and more <= kinks else rows
                kinks += more
            self._result.kinks += kinks
            if not rows:
                self._result.notes.append(f"{name!r} is not judged: every direction that was tried has a kink")
            self._result.rows += rows

    def _moved(self, witness: Witness, point: Point) -> Point | None:
        """A point beside another, off its kinks; None where the models cannot be moved together.

        Single numbers stay if there are others: some are sizes, which a gradient model may know as constants.
        """
        values = dict(point.values)
        names = [name for name in self._backward.wrt if values[name].size > 1] or self._backward.wrt
        for name in names:
            array = widened(values[name])
            shift = MOVE * _scale(array) * self._rng.standard_normal(array.shape)
            values[name] = np.asarray(array + shift).astype(values[name].dtype)
        try:
            moved = self._point("moved", self._backward.at(values), values, witness.run(values))
        except LucidError:
            return None
        return None if isinstance(moved, str) else moved

    def _rows(self, name: str, witness: Witness, point: Point) -> tuple[list[SlopeRow], int]:
        """Rows of a name, none where there are kinks all around, and how many kinks were met."""
        start, grad, kinks = widened(point.values[name]), point.grads[name], 0
        rows: list[SlopeRow] = []
        while len(rows) < self._directions and kinks < MOST_KINKS:
            d = direction(grad, self._rng)
            step = witness.steps[min(kinks, len(witness.steps) - 1)] * _scale(start)

            def outputs(shift: float, d: Array = d) -> Values:
                return witness.run({**point.values, name: np.asarray(start + shift * d)}) if shift else point.outputs

            found = difference(outputs, self._seeds, step)
            row = self._row(name, witness, point, d, found.slope, step)
            if found.doubt > row.bound / 4:
                kinks += 1
            else:
                rows.append(row)
        return (rows if kinks < MOST_KINKS else []), kinks

    def _row(self, name: str, witness: Witness, point: Point, d: Array, slope: float, step: float) -> SlopeRow:
        grad = point.grads[name]
        with np.errstate(all="ignore"):
            expected = float(np.sum(grad * d))
            # A gradient that is 0 by mistake must not make every slope look like a kink.
            length = np.nanmax([abs(slope) / SPREAD, size(grad)])
            total = sum(float(np.sum(np.abs(point.outputs[k] * seed))) for k, seed in self._seeds.items())
        relative = max(self._relative, witness.relative)
        bound = SPREAD * (relative * length + NOISE * point.noise[name]) + 8 * witness.eps * total / step
        error = abs(slope - expected)
        return SlopeRow(name, point.where, slope, expected, error, float(bound), bool(error <= bound))


def _scale(array: Array) -> float:
    """The size of the numbers in an array; 1 where they are 0, or there are none."""
    scale = float(np.sqrt(np.mean(array * array))) if array.size else 0.0
    return scale if 0 < scale < np.inf else 1.0
