"""What came of a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PASS = "pass"
WRONG_VALUE = "wrong value"
WRONG_FORM = "wrong shape or dtype"
REFUSED = "refused"
CRASHED = "crashed"
TIMED_OUT = "timed out"
WRONG_PLACEMENT = "wrong placement"
NONDETERMINISTIC = "nondeterministic"

VERDICTS = (PASS, WRONG_VALUE, WRONG_FORM, REFUSED, CRASHED, TIMED_OUT, WRONG_PLACEMENT, NONDETERMINISTIC)
"""Every verdict."""


@dataclass(frozen=True)
class Worst:
    """The value of a result that is furthest beyond its bound.

    Parameters
    ----------
    output : str
        Name of the output.
    index : tuple of int
        Place in it.
    coordinate : tuple of float, optional
        Normalised coordinate (x, y) or (x, y, z) of the point that it belongs to, if it belongs to one.
    got, want, bound : float
        What the runtime gave, the truth, and how far apart they may be; 0 where they must be the same.
    errors : tuple of str
        The plane of the output around it, a row of points a string. Each letter says how far off a value is: "." within
        a tenth of its bound, "o" within its bound, "x" beyond it, "X" more than 100 times, "!" not finite where the
        truth is, or the other way round, and "?" a value that float32 cannot decide.
    """

    output: str
    index: tuple[int, ...]
    coordinate: tuple[float, ...] | None
    got: float
    want: float
    bound: float
    errors: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = "" if self.coordinate is None else f" at ({', '.join(f'{c:.9g}' for c in self.coordinate)})"
        off = f"got {self.got:.9g}, want {self.want:.9g} within {self.bound:.2g}"
        return f"{self.output}[{', '.join(map(str, self.index))}]{where}: {off}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case on a runtime.

    Parameters
    ----------
    id : str
        The case.
    verdict : str
        One of `VERDICTS`.
    seconds : float
        What the runtime took, its loading of the model not included.
    words : str
        What the runtime said as it refused or crashed, or what is wrong.
    worst : Worst, optional
        Of a wrong value.
    undecided : int
        Values that float32 cannot decide, and that were not judged.
    expected : str
        The verdict that was expected: "pass", or that of a known divergence.
    reason : str
        Of the known divergence.
    """

    id: str
    verdict: str
    seconds: float = 0.0
    words: str = ""
    worst: Worst | None = None
    undecided: int = 0
    expected: str = PASS
    reason: str = ""

    @property
    def passed(self) -> bool:
        """Whether the runtime gave the right result."""
        return self.verdict == PASS

    @property
    def unexpected(self) -> bool:
        """Whether the verdict is another than the one that was expected."""
        return self.verdict != self.expected

    def as_dict(self) -> dict[str, Any]:
        """For JSON; values that are not finite become strings."""
        entry: dict[str, Any] = {"id": self.id, "verdict": self.verdict, "expected": self.expected}
        entry["seconds"] = round(self.seconds, 6)
        if self.words:
            entry["words"] = self.words
        if self.worst is not None:
            entry["worst"] = _worst_as_dict(self.worst)
        if self.undecided:
            entry["undecided"] = self.undecided
        if self.reason:
            entry["reason"] = self.reason
        return entry

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> Outcome:
        """What `as_dict` made a dictionary of."""
        worst = entry.get("worst")
        return cls(**{**entry, "worst": None if worst is None else _worst_from_dict(worst)})


def _worst_as_dict(worst: Worst) -> dict[str, Any]:
    coordinate = None if worst.coordinate is None else [_plain(value) for value in worst.coordinate]
    figures = {name: _plain(getattr(worst, name)) for name in ("got", "want", "bound")}
    return {
        "output": worst.output,
        "index": list(worst.index),
        "coordinate": coordinate,
        **figures,
        "errors": list(worst.errors),
    }


def _worst_from_dict(entry: dict[str, Any]) -> Worst:
    coordinate = entry["coordinate"]
    return Worst(
        output=entry["output"],
        index=tuple(entry["index"]),
        coordinate=None if coordinate is None else tuple(map(float, coordinate)),
        **{name: float(entry[name]) for name in ("got", "want", "bound")},
        errors=tuple(entry["errors"]),
    )


def _plain(value: float) -> float | str:
    """JSON has no word for what is not finite; float() reads these."""
    return value if abs(value) < float("inf") else str(value)
