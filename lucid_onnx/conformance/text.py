"""What a report says in words, for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lucid_onnx.conformance.characters import without_controls
from lucid_onnx.conformance.onnx_cases import ONNX_CASES, agreement
from lucid_onnx.conformance.outcome import Outcome
from lucid_onnx.conformance.report import Report

MOST = 20
"""Cases that are shown one by one."""


def remarks(reports: Sequence[Report]) -> Iterator[str]:
    """Lines about each report: its counts, its known divergences, and what was not expected."""
    for report in reports:
        counts = ", ".join(f"{count} {verdict}" for verdict, count in report.counts.items())
        yield f"{report.title}: {len(report.cases)} cases in {report.seconds:.1f} s: {counts}"
        known = Counter(outcome.reason for outcome in report.cases if outcome.reason and not outcome.unexpected)
        for reason, count in known.most_common():
            yield f"  {count:5} known: {reason}"
        yield from _each("not known to fail", report.failures)
        yield from _each("known to fail, but passed", report.surprises)
        yield ""
    if shows_onnx_cases(reports):
        yield agreement()


def shows_onnx_cases(reports: Sequence[Report]) -> bool:
    """Whether the backend cases of ONNX are among those of the reports, which asks how they and the reference agree."""
    return any(outcome.id.startswith(ONNX_CASES) for report in reports for outcome in report.cases)


def _each(what: str, outcomes: Sequence[Outcome]) -> Iterator[str]:
    if outcomes:
        yield f"  {len(outcomes)} {what}:"
    for outcome in outcomes[:MOST]:
        words = outcome.reason if outcome.passed else str(outcome.worst) if outcome.worst else outcome.words
        yield f"    {outcome.verdict}: {outcome.id}: {without_controls(' '.join(words.split()))[:300]}"
    if len(outcomes) > MOST:
        yield f"    and {len(outcomes) - MOST} more, which --json, --junit and --html list"
