"""What the rows come to: the bars that lowering is held to, the table, and the machine it was measured on."""

from __future__ import annotations

import contextlib
import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from operator import attrgetter
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from lucid_onnx.bench.rows import Row


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
        The worst that was measured; None where nothing was that the bar is about.
    ok : bool, optional
        Whether it is met; None as before.
    where : str
        The cell of the worst value; for a mean, the shapes that it is of.
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
        bars = [asdict(bar) for bar in self.bars]
        for bar in bars:
            # JSON has no word for what is not finite.
            bar["value"] = bar["value"] if bar["value"] is not None and math.isfinite(bar["value"]) else None
        return {"geometric_mean": self.geometric_mean, "slowest": slowest, "bars": bars}


@dataclass(frozen=True)
class _Rule:
    """How a bar is read off the rows that `about` picks: by the worst of the values that `value` gives."""

    name: str
    quantity: str
    bound: float
    least: bool
    about: Callable[[Row], bool]
    value: Callable[[Row], float | None]

    def judge(self, rows: Sequence[Row]) -> Bar:
        bar = f"{self.quantity} {'>=' if self.least else '<='} {self.bound:g}"
        measured = [(value, row.name) for row in rows if self.about(row) and (value := self.value(row)) is not None]
        if not measured:
            return Bar(self.name, bar, None, None, "")
        value, where = min(measured) if self.least else max(measured)
        return Bar(self.name, bar, value, value >= self.bound if self.least else value <= self.bound, where)


def _of_bound(row: Row) -> float:
    """The largest error as a multiple of its bound; infinite where a value must match and does not."""
    verdicts = (row.lowered_verdict, row.guarded_verdict)
    if any(verdict.mismatches for verdict in verdicts):
        return math.inf
    return max(
        error / allowed
        for v in verdicts
        for error, allowed in ((v.max_error, v.max_allowed), (v.rms_error, v.rms_allowed))
    )


def _in_networks(row: Row) -> bool:
    """Shapes with many channels."""
    return row.shape in ("B", "C")


def _canonical(row: Row) -> bool:
    """The linear cells for which onnxruntime has no plan of the sampling."""
    return _in_networks(row) and row.mode == "linear" and (row.padding_mode != "zeros" or row.align_corners)


FEW_POINTS_COST = ("A", "D")
"""Shapes of so few channels that what is done to the grid is most of the time."""

_SPEEDUP, _COST = "kernel / lowered", "guarded / lowered"

_RULES = (
    _Rule(
        "no cell slower than the kernel", "lowered / kernel", 1.05, False, lambda row: True, lambda row: 1 / row.speedup
    ),
    _Rule(
        "B, C: linear with border, reflection or align_corners", _SPEEDUP, 4, True, _canonical, attrgetter("speedup")
    ),
    _Rule(
        "B, C: nearest",
        _SPEEDUP,
        2,
        True,
        lambda row: _in_networks(row) and row.mode == "nearest",
        attrgetter("speedup"),
    ),
    _Rule(
        "B, C: cubic", _SPEEDUP, 1.5, True, lambda row: _in_networks(row) and row.mode == "cubic", attrgetter("speedup")
    ),
    _Rule(
        "B, C: cubic with reflection",
        _SPEEDUP,
        3,
        True,
        lambda row: _in_networks(row) and row.mode == "cubic" and row.padding_mode == "reflection",
        attrgetter("speedup"),
    ),
    _Rule(
        "B, C: linear and nearest beside PyTorch",
        "lowered / pytorch",
        1,
        False,
        lambda row: _in_networks(row) and row.mode != "cubic",
        attrgetter("of_pytorch"),
    ),
    _Rule("guards", _COST, 1.3, False, lambda row: row.shape not in FEW_POINTS_COST, attrgetter("guard_cost")),
    _Rule("A, D: guards", _COST, 1.6, False, lambda row: row.shape in FEW_POINTS_COST, attrgetter("guard_cost")),
    _Rule(
        "memory of linear and nearest",
        "lowered / kernel",
        2,
        False,
        lambda row: row.mode != "cubic",
        attrgetter("memory"),
    ),
    _Rule("accuracy by the tolerance rule", "error / bound", 1, False, lambda row: True, _of_bound),
)

MEAN_OF = ("A", "B", "C")
"""Shapes over which the mean is taken."""

MEAN_BOUND = 2.5


def summary(rows: Sequence[Row]) -> Summary:
    """What `run_bench` measured, held against the bars.

    A bar counts for the rows that there are: without C, what is asked of B and C is asked of B.

    Examples
    --------
    >>> from lucid_onnx.bench import run_bench
    >>> summed = summary(run_bench(["1x2x4x4:3x3"], repeats=1))
    >>> {bar.name: bar.ok for bar in summed.bars}["accuracy by the tolerance rule"]
    True
    >>> summed.geometric_mean is None  # neither A nor B nor C was measured
    True
    """
    speedups = [row.speedup for row in rows if row.shape in MEAN_OF]
    mean = geometric_mean(speedups) if speedups else None
    shapes = ", ".join(dict.fromkeys(row.shape for row in rows if row.shape in MEAN_OF))
    bars = [rule.judge(rows) for rule in _RULES]
    met = None if mean is None else mean >= MEAN_BOUND
    bars.insert(5, Bar("A, B, C: geometric mean", f"{_SPEEDUP} >= {MEAN_BOUND:g}", mean, met, shapes))
    return Summary(mean, min(rows, key=attrgetter("speedup")), bars)


def table(rows: Sequence[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
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
            *(_shown(time) for time in (row.kernel, row.lowered, row.guarded, row.pytorch)),
            *(_shown(ratio) for ratio in (row.speedup, row.guard_cost, row.of_pytorch)),
            *((_shown(row.memory),) if with_memory else ()),
            *(f"{verdict.max_error:.1e}" for verdict in (row.lowered_verdict, row.guarded_verdict)),
            "ok" if row.ok else "OVER",
            row.form,
        )
        for row in rows
    ]
    return header, lines


def machine() -> dict[str, str]:
    """Processor, system, and versions of what was measured.

    Examples
    --------
    >>> list(machine())[:3]
    ['processor', 'cores', 'system']
    """
    found = {"processor": _processor(), "cores": str(os.cpu_count()), "system": platform.platform()}
    for package in ("onnxruntime", "torch", "numpy"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _processor() -> str:
    """Name of the processor, which Python itself does not tell on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _shown(number: float | None) -> str:
    return "" if number is None else f"{number:.2f}"
