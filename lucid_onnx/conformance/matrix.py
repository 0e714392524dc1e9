"""Outcomes of several reports as a matrix: operator, rank, mode and padding by report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lucid_onnx.conformance.case import OPERATORS, Case
from lucid_onnx.conformance.outcome import Outcome
from lucid_onnx.conformance.report import Report
from lucid_onnx.reference.schema import MODES, PADDING_MODES

OTHER = "other"
"""The operator of cases about which nothing is known."""

ALL_PASS, KNOWN, FAIL, EMPTY = "all pass", "only known divergences", "unexpected failures", "nothing run"
"""What is to be said of a cell."""


@dataclass(frozen=True)
class Row:
    """What the cases of a row share.

    Parameters
    ----------
    op : str
        The operator, or "other".
    rank : int
        Rank of the image; 0 if that is not known.
    mode, padding_mode : str
        Empty where there is none.

    Examples
    --------
    >>> Row("GridSample", 5, "nearest", "border").labels
    ('5-D', 'nearest', 'border')
    """

    op: str
    rank: int = 0
    mode: str = ""
    padding_mode: str = ""

    @property
    def labels(self) -> tuple[str, str, str]:
        """Rank, mode and padding mode, in words."""
        return f"{self.rank}-D" if self.rank else "", self.mode, self.padding_mode

    @property
    def order(self) -> tuple[int, ...]:
        """What rows are sorted by."""
        places = ((OPERATORS, self.op), (MODES, self.mode), (PADDING_MODES, self.padding_mode))
        op, mode, padding = (names.index(name) if name in names else len(names) for names, name in places)
        return op, self.rank, mode, padding


@dataclass(frozen=True)
class Cell:
    """The cases of a row in one report.

    Parameters
    ----------
    outcomes : tuple of Outcome
        In the order of the report.
    """

    outcomes: tuple[Outcome, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict."""
        return dict(Counter(outcome.verdict for outcome in self.outcomes))

    @property
    def passed(self) -> tuple[Outcome, ...]:
        """Cases that passed, surprises among them."""
        return tuple(outcome for outcome in self.outcomes if outcome.passed)

    @property
    def known(self) -> tuple[Outcome, ...]:
        """Cases that failed as was expected."""
        return tuple(outcome for outcome in self.outcomes if not outcome.passed and not outcome.unexpected)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Cases that failed, and that no known divergence explains."""
        return tuple(outcome for outcome in self.outcomes if not outcome.passed and outcome.unexpected)

    @property
    def surprises(self) -> tuple[Outcome, ...]:
        """Cases that passed although they were expected to fail."""
        return tuple(outcome for outcome in self.outcomes if outcome.passed and outcome.unexpected)

    @property
    def state(self) -> str:
        """The worst that is to be said: `ALL_PASS`, `KNOWN`, `FAIL` or `EMPTY`."""
        if not self.outcomes:
            return EMPTY
        return FAIL if self.failures else KNOWN if self.known else ALL_PASS

    def __str__(self) -> str:
        """A few words.

        Examples
        --------
        >>> good, bad = Outcome("a", "pass"), Outcome("b", "refused")
        >>> known = Outcome("c", "refused", expected="refused", reason="it does not have the dtype")
        >>> str(Cell((good,))), str(Cell((good, known))), str(Cell((good, good, known, bad))), str(Cell())
        ('ok 1', '1/2, 1 known', '2/4, 1 known, 1 FAIL', '-')
        """
        if not self.outcomes:
            return "-"
        passed, all_of_them = len(self.passed), len(self.outcomes)
        parts = [f"ok {passed}" if passed == all_of_them else f"{passed}/{all_of_them}"]
        for outcomes, what in ((self.known, "known"), (self.failures, "FAIL"), (self.surprises, "surprise")):
            if outcomes:
                parts.append(f"{len(outcomes)} {what}")
        return ", ".join(parts)


def matrix(reports: Sequence[Report], cases: Mapping[str, Case]) -> dict[Row, tuple[Cell, ...]]:
    """The cells of each row, one for each report, in the order in which rows are shown.

    Parameters
    ----------
    reports : sequence of Report
        One column each.
    cases : mapping of str to Case
        Cases by id. What it lacks is placed by what its id says.
    """
    rows: dict[Row, list[list[Outcome]]] = defaultdict(lambda: [[] for _ in reports])
    for column, report in enumerate(reports):
        for outcome in report.cases:
            rows[row_of(outcome.id, cases)][column].append(outcome)
    ordered = sorted(rows.items(), key=lambda item: item[0].order)
    return {row: tuple(Cell(tuple(outcomes)) for outcomes in columns) for row, columns in ordered}


def row_of(identity: str, cases: Mapping[str, Case]) -> Row:
    """The row of a case.

    Examples
    --------
    >>> row_of("GridSample-4d-nearest-zeros-edges-float8-opset99-symbolic-inside", {})
    Row(op='GridSample', rank=4, mode='nearest', padding_mode='zeros')
    >>> row_of("Conv-1", {})
    Row(op='other', rank=0, mode='', padding_mode='')
    """
    case = cases.get(identity)
    if case is not None:
        return Row(case.op, case.rank, case.mode, case.padding_mode)
    op, *parts = identity.split("-")
    if op not in OPERATORS:
        return Row(OTHER)
    rank = next((int(part[0]) for part in parts[:1] if part in ("4d", "5d")), 0)
    mode, padding_mode = (next((part for part in parts if part in names), "") for names in (MODES, PADDING_MODES))
    return Row(op, rank, mode, padding_mode)


def titles(reports: Sequence[Report]) -> list[str]:
    """A title for each report, as short as tells them apart.

    Examples
    --------
    >>> reports = [Report("onnxruntime", version, "CPUExecutionProvider", "", 0.0, ()) for version in ("1.31", "1.32")]
    >>> titles(reports), titles(reports[:1] * 2)
    (['onnxruntime 1.31', 'onnxruntime 1.32'], ['onnxruntime 1.31 #1', 'onnxruntime 1.31 #2'])
    """
    short = [f"{report.runtime} {report.version}".strip() for report in reports]
    for candidate in (short, [report.title for report in reports]):
        if len(set(candidate)) == len(reports):
            return candidate
    return [f"{title} #{number}" for number, title in enumerate(short, start=1)]


def terminal_table(reports: Sequence[Report], cases: Mapping[str, Case]) -> tuple[list[str], list[list[str]]]:
    """The matrix in words, with all cases of a report in the last row.

    Returns
    -------
    header : list of str
        Names of the columns.
    rows : list of list of str
        As many words a row.
    """
    header = ["operator", "rank", "mode", "padding", *titles(reports)]
    rows = [[row.op, *row.labels, *map(str, cells)] for row, cells in matrix(reports, cases).items()]
    total = ["all", "", "", "", *(str(Cell(report.cases)) for report in reports)]
    return header, [*rows, total]


def reasons(reports: Sequence[Report]) -> dict[str, tuple[int, ...]]:
    """How many cases of each report failed as each known divergence says, most of them first."""
    found = [Counter(outcome.reason for outcome in Cell(report.cases).known) for report in reports]
    names = sorted({name for counts in found for name in counts})
    counted = {name: tuple(counts[name] for counts in found) for name in names}
    return dict(sorted(counted.items(), key=lambda item: -max(item[1])))


def changes(before: Report, after: Report) -> tuple[list[str], list[str]]:
    """Ids of cases that pass in the later report only, and of those that pass in the earlier one only.

    Examples
    --------
    >>> before, after = (
    ...     Report("onnxruntime", version, "", "", 0.0, (Outcome("a", a), Outcome("b", b)))
    ...     for version, a, b in (("1.31", "refused", "pass"), ("1.32", "pass", "pass"))
    ... )
    >>> changes(before, after)
    (['a'], [])
    """
    passed = {outcome.id: outcome.passed for outcome in before.cases}
    changed = [outcome for outcome in after.cases if passed.get(outcome.id, outcome.passed) != outcome.passed]
    return [case.id for case in changed if case.passed], [case.id for case in changed if not case.passed]
