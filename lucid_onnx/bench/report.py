"""What the rows come to: the bars that lowering is held to, and the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from lucid_onnx.bench.bars import Bar, Rule, Table, of_bound, shown
from lucid_onnx.bench.plot import plot
from lucid_onnx.bench.rows import Row


@dataclass(frozen=True)
class Summary:
    """The rows in a few numbers.

    Parameters
    ----------
    geometric_mean : float, optional
        Of kernel/lowered, over all cells of A, B and C that were measured; None where none was.
    slowest : Row
        The row with the least kernel/lowered.
    bars : list of Bar
        In the order in which they are asked for.
    """

    geometric_mean: float | None
    slowest: Row
    bars: list[Bar]

    def as_dict(self) -> dict[str, Any]:
        """The summary for JSON."""
        slowest = {"cell": self.slowest.name, "kernel/lowered": self.slowest.speedup}
        bars = [bar.as_dict() for bar in self.bars]
        return {"geometric_mean": self.geometric_mean, "slowest": slowest, "bars": bars}


@dataclass(frozen=True)
class LoweringResults:
    """What `run_bench` measured, as the command shows it."""

    rows: Sequence[Row]
    notes: Sequence[str] = ()

    @property
    def ok(self) -> bool:
        """Whether every result is within the tolerance."""
        return all(row.ok for row in self.rows)

    def bars(self) -> list[Bar]:
        """What was measured, held against the bars."""
        return summary(self.rows).bars

    def tables(self) -> list[Table]:
        """The one table of all cells."""
        return [table(self.rows)]

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the cells."""
        plot(self.rows, path)

    def as_dict(self) -> dict[str, Any]:
        """The results for JSON."""
        return {"rows": [row.as_dict() for row in self.rows], "summary": summary(self.rows).as_dict()}


def _in_networks_by(*modes: str) -> Callable[[Row], bool]:
    """Whether a row is of a shape with many channels, and of one of `modes`."""
    return lambda row: row.shape in ("B", "C") and row.mode in modes


def _canonical(row: Row) -> bool:
    """The linear cells for which onnxruntime has no plan of the sampling."""
    return _in_networks_by("linear")(row) and (row.padding_mode != "zeros" or row.align_corners)


FEW_POINTS_COST = ("A", "D")
"""Shapes of so few channels that what is done to the grid is most of the time."""

MEAN_OF = ("A", "B", "C")
"""Shapes over which the mean is taken."""

_SPEEDUP, _COST = "kernel / lowered", "guarded / lowered"

_MEAN = Rule[Row](
    "A, B, C: geometric mean",
    _SPEEDUP,
    2.5,
    attrgetter("speedup"),
    lambda row: row.shape in MEAN_OF,
    least=True,
    mean=True,
)

_RULES: tuple[Rule[Row], ...] = (
    Rule("no cell slower than the kernel", "lowered / kernel", 1.05, lambda row: 1 / row.speedup),
    Rule(
        "B, C: linear with border, reflection or align_corners",
        _SPEEDUP,
        4,
        attrgetter("speedup"),
        _canonical,
        least=True,
    ),
    Rule("B, C: nearest", _SPEEDUP, 2, attrgetter("speedup"), _in_networks_by("nearest"), least=True),
    Rule("B, C: cubic", _SPEEDUP, 1.5, attrgetter("speedup"), _in_networks_by("cubic"), least=True),
    Rule(
        "B, C: cubic with reflection",
        _SPEEDUP,
        3,
        attrgetter("speedup"),
        lambda row: _in_networks_by("cubic")(row) and row.padding_mode == "reflection",
        least=True,
    ),
    _MEAN,
    Rule(
        "B, C: linear and nearest beside PyTorch",
        "lowered / pytorch",
        1,
        attrgetter("of_pytorch"),
        _in_networks_by("linear", "nearest"),
    ),
    Rule("guards", _COST, 1.3, attrgetter("guard_cost"), lambda row: row.shape not in FEW_POINTS_COST),
    Rule("A, D: guards", _COST, 1.6, attrgetter("guard_cost"), lambda row: row.shape in FEW_POINTS_COST),
    Rule("memory of linear and nearest", "lowered / kernel", 2, attrgetter("memory"), lambda row: row.mode != "cubic"),
    Rule(
        "accuracy by the tolerance rule",
        "error / bound",
        1,
        lambda row: of_bound((row.lowered_verdict, row.guarded_verdict)),
    ),
)


def summary(rows: Sequence[Row]) -> Summary:
    """What `run_bench` measured, held against the bars.

    Examples
    --------
    >>> from lucid_onnx.bench import run_bench
    >>> summed = summary(run_bench(["1x2x4x4:3x3"], repeats=1))
    >>> {bar.name: bar.ok for bar in summed.bars}["accuracy by the tolerance rule"]
    True
    >>> summed.geometric_mean is None  # neither A nor B nor C was measured
    True
    """
    bars = [rule.judge(rows) for rule in _RULES]
    return Summary(_MEAN.judge(rows).value, min(rows, key=attrgetter("speedup")), bars)


def table(rows: Sequence[Row]) -> Table:
    """Header and lines for the terminal; times in milliseconds.

    Examples
    --------
    >>> from lucid_onnx.bench import run_bench
    >>> header, lines = table(run_bench(["1x2x4x4:3x3"], repeats=1))
    >>> header[:5], lines[0][:5]
    (('shape', 'grid', 'mode', 'padding', 'corners'), ('1x2x4x4:3x3', 'uniform', 'linear', 'zeros', 'no'))
    """
    with_memory = any(row.memory is not None for row in rows)
    header = (
        *("shape", "grid", "mode", "padding", "corners", "kernel", "lowered", "guarded", "pytorch"),
        *("kernel/lowered", "guarded/lowered", "lowered/pytorch"),
        *(("memory",) if with_memory else ()),
        *("max error", "guarded", "", "form"),
    )
    lines = [
        (
            *(row.shape, row.grid, row.mode, row.padding_mode, "yes" if row.align_corners else "no"),
            *(shown(time) for time in (row.kernel, row.lowered, row.guarded, row.pytorch)),
            *(shown(ratio) for ratio in (row.speedup, row.guard_cost, row.of_pytorch)),
            *((shown(row.memory),) if with_memory else ()),
            *(f"{verdict.max_error:.1e}" for verdict in (row.lowered_verdict, row.guarded_verdict)),
            "ok" if row.ok else "OVER",
            row.form,
        )
        for row in rows
    ]
    return header, lines
