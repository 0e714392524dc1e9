"""A bar that is asked for, and how what was measured stands to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import geometric_mean
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from lucid_onnx.conformance.tolerance import Verdict

Table: TypeAlias = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Header and lines for the terminal."""


class Measured(Protocol):
    """One line of a table."""

    @property
    def name(self) -> str:
        """The line in words."""

    @property
    def shape(self) -> str:
        """What it is a line about, among others."""


R = TypeVar("R", bound=Measured)


@dataclass(frozen=True)
class Bar:
    """A bar, and how the rows stand to it.

    Parameters
    ----------
    name : str
        What it is about.
    bar : str
        What is asked for.
    value : float, optional
        The worst that was measured, or the mean; None where nothing was that the bar is about.
    ok : bool, optional
        Whether it is met; None as before.
    where : str
        The row of the worst value; for a mean, the shapes that it is of.
    """

    name: str
    bar: str
    value: float | None
    ok: bool | None
    where: str

    @property
    def verdict(self) -> str:
        """How the rows stand to it, in words."""
        return {True: "met", False: "NOT MET", None: "not measured"}[self.ok]

    def as_dict(self) -> dict[str, Any]:
        """The bar for JSON, which has no word for what is not finite."""
        finite = self.value is not None and math.isfinite(self.value)
        return {**asdict(self), "value": self.value if finite else None}


@dataclass(frozen=True)
class Rule(Generic[R]):
    """How a bar is read off the rows that `about` picks, and that have a `value`: by the worst value, or by their mean.

    Parameters
    ----------
    name, quantity : str, str
        What it is about, and what is measured.
    bound : float
        What is asked for.
    value : callable
        What is measured of a row; None where it was not.
    about : callable
        Whether a row counts.
    least : bool
        Whether `bound` is the least that is asked for, and not the most.
    mean : bool
        Whether the geometric mean decides, and not the worst.
    aim : float, optional
        What is hoped for beyond.
    """

    name: str
    quantity: str
    bound: float
    value: Callable[[R], float | None]
    about: Callable[[R], bool] = lambda row: True
    least: bool = False
    mean: bool = False
    aim: float | None = None

    def judge(self, rows: Sequence[R]) -> Bar:
        """How `rows` stand to it.

        A bar counts for the rows that there are: without C, what is asked of B and C is asked of B.
        """
        bar = f"{self.quantity} {'>=' if self.least else '<='} {self.bound:g}"
        if self.aim is not None:
            bar += f" (aim {self.aim:g})"
        measured = [(value, row) for row in rows if self.about(row) and (value := self.value(row)) is not None]
        if not measured:
            return Bar(self.name, bar, None, None, "")
        if self.mean:
            value = geometric_mean(value for value, _ in measured)
            where = ", ".join(dict.fromkeys(row.shape for _, row in measured))
        else:
            value, row = (min if self.least else max)(measured, key=lambda pair: pair[0])
            where = row.name
        return Bar(self.name, bar, value, value >= self.bound if self.least else value <= self.bound, where)


def of_bound(verdicts: Iterable[Verdict]) -> float:
    """The largest error as a multiple of its bound; infinite where a value must match and does not.

    Examples
    --------
    >>> of_bound([Verdict(1.0, 2.0, 0.3, 1.0, 9, 0, 0)])
    0.5
    """
    found = list(verdicts)
    if any(verdict.mismatches for verdict in found):
        return math.inf
    pairs = [pair for v in found for pair in ((v.max_error, v.max_allowed), (v.rms_error, v.rms_allowed))]
    # An error of nothing is within a bound of nothing.
    return max(error and (error / allowed if allowed else math.inf) for error, allowed in pairs)


def shown(number: float | None) -> str:
    """A number in a table; nothing where there is none.

    Examples
    --------
    >>> shown(0.5), shown(None)
    ('0.50', '')
    """
    return "" if number is None else f"{number:.2f}"
