"""What a verification found: a row for each sampled node and for each output, as a table, as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

HEADER = ("node or output", "what", "inputs", "error", "allowed", "set aside", "verdict")
"""Columns of `Verification.table`."""


@dataclass(frozen=True)
class NodeRow:
    """A node of the original, of which the lowered model's result was judged by the reference.

    Parameters
    ----------
    node : str
        Its name, or that of its output where it has none.
    what : str
        Operator, rank, mode, padding mode, align_corners and dtype.
    inputs : {"given", "ordinary", "edges", "non-finite"}
        The inputs of the run.
    max_error, allowed : float
        Largest error over the values that were compared, and its bound.
    set_aside : int
        Values that the working dtype cannot decide: they are not compared.
    mismatches : int
        Values that must match exactly and do not.
    ok : bool
        Whether the node passes.
    """

    node: str
    what: str
    inputs: str
    max_error: float
    allowed: float
    set_aside: int
    mismatches: int
    ok: bool


@dataclass(frozen=True)
class OutputRow:
    """An output of the lowered model, compared with that of the original in onnxruntime.

    Parameters
    ----------
    name : str
        Its name.
    max_error, allowed : float
        Largest difference where both are finite, and its bound.
    set_aside : int
        Values beyond the bound that a choice explains: which pixel "nearest" takes, or which class is the largest.
    mismatches : int
        All other values that are beyond the bound, or finite in one of the two only.
    ok : bool
        Whether the output passes.
    """

    name: str
    max_error: float
    allowed: float
    set_aside: int
    mismatches: int
    ok: bool


@dataclass
class Verification:
    """What `verify` found.

    Parameters
    ----------
    rows : list of NodeRow
        The sampled nodes of the main graph, once for each run.
    outputs : list of OutputRow
        The outputs, where the original can be compared with.
    original_error : str
        Why the outputs were not compared: the original does not run in onnxruntime, or wrongly. Empty if they were.
    lowered_error : str
        Why the lowered model does not run, or does not take the place of the original. Empty if it does.
    notes : list of str
        What was not judged, and why.
    """

    rows: list[NodeRow] = field(default_factory=list)
    outputs: list[OutputRow] = field(default_factory=list)
    original_error: str = ""
    lowered_error: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the lowered model runs, something was compared, and all of it passes. Notes say what was not."""
        compared: list[NodeRow | OutputRow] = [*self.rows, *self.outputs]
        return not self.lowered_error and bool(compared) and all(row.ok for row in compared)

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        result: dict[str, Any] = for_json({"ok": self.ok, **asdict(self)})
        return result

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Header and rows for a terminal.

        Examples
        --------
        >>> header, rows = Verification(outputs=[OutputRow("y", 1e-7, 1e-4, 0, 0, True)]).table()
        >>> header
        ('node or output', 'what', 'inputs', 'error', 'allowed', 'set aside', 'verdict')
        >>> rows
        [('y', 'output', '', '1e-07', '0.0001', '0', 'ok')]
        """
        nodes = [(row.node, row.what, row.inputs, *_numbers(row)) for row in self.rows]
        outputs = [(row.name, "output", "", *_numbers(row)) for row in self.outputs]
        return HEADER, [*nodes, *outputs]


def for_json(value: Any) -> Any:
    """`value` with what JSON has no word for in words."""
    if isinstance(value, dict):
        return {key: for_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [for_json(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(row: NodeRow | OutputRow) -> tuple[str, str, str, str]:
    failed = f"{row.mismatches} differ" if row.mismatches else "over"
    return f"{row.max_error:.2g}", f"{row.allowed:.2g}", str(row.set_aside), "ok" if row.ok else failed
