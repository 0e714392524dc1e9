"""What lowering did with each node, and why: as text, and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Entry:
    """What was done with one node.

    Parameters
    ----------
    node, op : str
        Its name, or that of its output where it has none, and its operator.
    where : str
        Empty in the main graph and its subgraphs; the name of a model-local function.
    what : str
        Rank, mode, padding mode, align_corners and dtype.
    action : str
        kept, respelled, cast, canonicalised, guarded, expanded or folded.
    why : str
        The reason.
    source : str
        Where that is known from: the source of the row of the table; empty where no row fits.
    """

    node: str
    op: str
    where: str
    what: str
    action: str
    why: str
    source: str


@dataclass
class LoweringReport:
    """What `lower` did.

    Parameters
    ----------
    target : str
        The target.
    opset_before, opset_after : int
        Opsets of the default domain.
    assume_finite : bool
        Whether guards were left out.
    entries : list of Entry
        One a node, in the order of the model.
    opset_why : str
        Why the opset was changed; empty where it was not.
    converted : list of str
        Names of other nodes that had to change with the opset.
    mapped : list of str
        Names of nodes of custom operators that were taken for one of the two.
    unmapped : list of str
        Custom operators whose names say that they sample, but that no mapping names.
    dropped : list of str
        Names of functions that sample but that nothing calls.

    Examples
    --------
    >>> import lucid_onnx as lo
    >>> _, report = lo.lower(lo.operator_model("GridSample"), "tensorrt")
    >>> print(report)
    tensorrt: no GridSample, no AffineGrid (opset 20)
    """

    target: str
    opset_before: int
    opset_after: int
    assume_finite: bool
    entries: list[Entry] = field(default_factory=list)
    opset_why: str = ""
    converted: list[str] = field(default_factory=list)
    mapped: list[str] = field(default_factory=list)
    unmapped: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The report for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        opset = f"opset {self.opset_before}"
        if self.opset_after != self.opset_before:
            opset += f" to {self.opset_after}: {self.opset_why}"
        hint = [f"  left alone; name them in a map if they are one of the two: {', '.join(self.unmapped)}"]
        if not self.entries:
            none = f"{self.target}: no GridSample, no AffineGrid ({opset})"
            return "\n".join([none, *(hint if self.unmapped else [])])
        counts = Counter(entry.action for entry in self.entries)
        lines = [f"{self.target}: {', '.join(f'{n} {action}' for action, n in counts.items())} ({opset})"]
        for entry in self.entries:
            where = f" in {entry.where}" if entry.where else ""
            lines.append(f"  {entry.op} {entry.node}{where} ({entry.what}): {entry.action}; {entry.why}")
        sources = dict.fromkeys(entry.source for entry in self.entries if entry.source)
        lines += [f"  source: {source}" for source in sources]
        if self.mapped:
            lines.append(f"  taken for GridSample or AffineGrid: {', '.join(self.mapped)}")
        if self.converted:
            lines.append(f"  changed with the opset: {', '.join(self.converted)}")
        if self.unmapped:
            lines += hint
        if self.dropped:
            lines.append(f"  dropped, since nothing calls them: {', '.join(self.dropped)}")
        if self.assume_finite:
            lines.append("  coordinates and pixels are assumed to be finite: no guards")
        return "\n".join(lines)
