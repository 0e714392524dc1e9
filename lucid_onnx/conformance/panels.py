"""What a cell of the page opens to: its cases, with what went wrong, where, and how to see it again."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, ItemsView, Iterable, Mapping, Sequence
from typing import Any

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.characters import without_controls
from lucid_onnx.conformance.matrix import Cell, Row
from lucid_onnx.conformance.outcome import WRONG_FORM, Outcome
from lucid_onnx.conformance.picture import picture
from lucid_onnx.conformance.report import Report
from lucid_onnx.conformance.reproducer import fits, reproducer

MOST_IDS = 6
"""Ids of a group that are written out one a line."""


def text(words: object) -> str:
    """Words as HTML."""
    return html.escape(without_controls(str(words)), quote=False)


def number(count: int) -> str:
    """A number with its thousands apart.

    Examples
    --------
    >>> number(6844)
    '6,844'
    """
    return f"{count:,}"


def counted(count: int, what: str) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "case"), counted(2, "case")
    ('1 case', '2 cases')
    """
    return f"{number(count)} {what}" + ("" if count == 1 else "s")


class Panel:
    """The cases of one cell.

    Parameters
    ----------
    row : Row
        What the cases share.
    cell : Cell
        Their outcomes.
    report : Report
        The report that they are of.
    title : str
        Its name on the page.
    cases : mapping of str to Case
        Cases by id.
    """

    def __init__(self, row: Row, cell: Cell, report: Report, title: str, cases: Mapping[str, Case]) -> None:
        self._row, self._cell, self._report, self._title, self._cases = row, cell, report, title, cases
        parts = (row.op, f"{row.rank}d" if row.rank else "", row.mode, row.padding_mode)
        self._prefix = "".join(f"{part}-" for part in parts if part)
        self._shown_verdicts: set[str] = set()

    def __str__(self) -> str:
        cell = self._cell
        name = " ".join(filter(None, (self._row.op, *self._row.labels)))
        parts = [f"<h4>{text(name)} <small>on {text(self._title)}: {counted(len(cell.outcomes), 'case')}</small></h4>"]
        if cell.failures:
            parts.append(self._section("fail", counted(len(cell.failures), "unexpected failure"), cell.failures))
        for reason, outcomes in _grouped(cell.known, lambda outcome: outcome.reason):
            parts.append(self._section("known", f"{number(len(outcomes))} known: {text(reason)}", outcomes))
        for reason, outcomes in _grouped(cell.surprises, lambda outcome: outcome.reason):
            heading = f"{number(len(outcomes))} passed, though known to fail: {text(reason)}"
            parts.append(f"<section class=pass><h5>{heading}</h5>{self._written_out(outcomes)}</section>")
        ordinary = [outcome for outcome in cell.passed if not outcome.unexpected]
        if ordinary:
            parts.append(self._folded(ordinary, "passed"))
        return "".join(parts)

    def _section(self, kind: str, heading: str, outcomes: Sequence[Outcome]) -> str:
        cards = "".join(self._card(group) for _, group in _grouped(outcomes, _likeness))
        return f"<section class={kind}><h5>{heading}</h5><ul class=cards>{cards}</ul></section>"

    def _card(self, group: Sequence[Outcome]) -> str:
        """Outcomes that are the same in all but the case."""
        first = group[0]
        case = self._cases.get(first.id)
        probes = {self._cases[outcome.id].probes for outcome in group if outcome.id in self._cases}
        about = f" <span>probes {text(probes.pop())}</span>" if len(probes) == 1 else ""
        parts = [f"<p><b>{text(first.verdict)}</b>{self._expected(first)}{about}"]
        if first.words:
            parts.append(f"<p class=words>{text(first.words)}")
        if first.worst is not None:
            parts.append(f"<p class=worst>{text(first.worst)}")
        parts.append(self._written_out(group) if len(group) <= MOST_IDS else self._folded(group, "cases"))
        if case is not None and fits(case, first) and self._wants_reproducer(first, case):
            program = text(reproducer(case, first, self._report))
            parts.append(f"<details class=code><summary>Reproducer</summary><pre>{program}</pre></details>")
        drawn = "" if first.worst is None else picture(first.worst)
        return f"<li>{drawn}<div>{''.join(parts)}</div>"

    def _expected(self, outcome: Outcome) -> str:
        """What was expected instead, if that is no pass."""
        if not outcome.unexpected or not outcome.reason:
            return ""
        return f" instead of {text(outcome.expected)} ({text(outcome.reason)})"

    def _wants_reproducer(self, outcome: Outcome, case: Case) -> bool:
        """Whether a group has one: of gradients, whose models are large, only the first with a verdict."""
        first = outcome.verdict not in self._shown_verdicts
        self._shown_verdicts.add(outcome.verdict)
        return first or not case.op.endswith("Grad")

    def _written_out(self, group: Sequence[Outcome]) -> str:
        """Whole ids, so that they can be copied."""
        lines = []
        for outcome in group:
            rest = outcome.id.removeprefix(self._prefix)
            shared = f"<i>{text(self._prefix)}</i>" if rest != outcome.id else ""
            lines.append(f"<code>{shared}{text(rest)}</code>")
        return f"<p class=ids>{'<br>'.join(lines)}"

    def _folded(self, outcomes: Sequence[Outcome], what: str) -> str:
        """Ids without what they share, those of one setting together."""
        settings: dict[str, list[str]] = {}
        for outcome in outcomes:
            start, family = self._parted(outcome.id)
            settings.setdefault(start.removeprefix(self._prefix), []).append(family)
        lines = "".join(
            f"<li><code>{text(start)}</code> {text(', '.join(families))}" for start, families in settings.items()
        )
        begin_so = self._prefix and any(outcome.id.startswith(self._prefix) for outcome in outcomes)
        shared = f"<p>Ids begin with <code>{text(self._prefix)}</code>" if begin_so else ""
        summary = f"<summary>{number(len(outcomes))} {what}</summary>"
        return f"<details class=many>{summary}{shared}<ul class=ids>{lines}</ul></details>"

    def _parted(self, identity: str) -> tuple[str, str]:
        """An id up to the family, and the family; all of it is the second if it has none."""
        case = self._cases.get(identity)
        if case is None or not identity.endswith(f"-{case.family}"):
            return "", identity
        return identity.removesuffix(case.family), case.family


def _likeness(outcome: Outcome) -> tuple[str, ...]:
    """Outcomes for which this is the same are shown as one."""
    words = outcome.words
    if outcome.verdict != WRONG_FORM and outcome.worst is None:
        # Numbers of nodes and addresses differ from case to case, and say nothing.
        words = re.sub(r"0x[0-9a-f]+|\d+", "", words)
    return outcome.verdict, outcome.expected, outcome.reason, words, repr(outcome.worst)


def _grouped(outcomes: Iterable[Outcome], key: Callable[[Outcome], Any]) -> ItemsView[Any, list[Outcome]]:
    """Outcomes by a key, in the order in which keys first occur."""
    groups: dict[Any, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome), []).append(outcome)
    return groups.items()
