"""Reports as JUnit XML, which systems of continuous integration read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from xml.etree import ElementTree

from lucid_onnx.conformance.characters import without_controls
from lucid_onnx.conformance.outcome import CRASHED, TIMED_OUT, Outcome
from lucid_onnx.conformance.report import Report
from lucid_onnx.files import replacing

ERRORS = (CRASHED, TIMED_OUT)
"""Verdicts that JUnit calls errors, and not failures."""


def write_junit(reports: Sequence[Report], path: str | os.PathLike[str]) -> None:
    """Write reports as JUnit XML, whole or not at all.

    Parameters
    ----------
    reports : sequence of Report
        Each becomes a test suite. Known divergences are skipped tests.
    path : path
        The file to write.

    Raises
    ------
    ArgumentError
        The file cannot be written.
    """
    root = ElementTree.Element("testsuites")
    root.extend(map(_suite, reports))
    ElementTree.indent(root)
    with replacing(path) as beside:
        ElementTree.ElementTree(root).write(beside, encoding="utf-8", xml_declaration=True)


def _suite(report: Report) -> ElementTree.Element:
    errors = sum(outcome.verdict in ERRORS for outcome in report.failures)
    counts = {
        "tests": len(report.cases),
        "failures": len(report.failures) - errors,
        "errors": errors,
        "skipped": sum(not outcome.passed and not outcome.unexpected for outcome in report.cases),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    suite = _element("testsuite", name=report.title, **numbers, time=f"{report.seconds:.3f}")
    suite.extend(_case(report.runtime, outcome) for outcome in report.cases)
    return suite


def _case(runtime: str, outcome: Outcome) -> ElementTree.Element:
    case = _element("testcase", classname=runtime, name=outcome.id, time=f"{outcome.seconds:.6f}")
    said = "; ".join(str(part) for part in (outcome.words, outcome.worst) if part)
    if outcome.passed and outcome.unexpected:
        told = ElementTree.SubElement(case, "system-out")
        told.text = without_controls(f"passed, though known to be {outcome.expected}: {outcome.reason}")
    elif outcome.passed:
        return case
    elif not outcome.unexpected:
        case.append(_element("skipped", message=f"known: {outcome.reason}"))
    else:
        kind = "error" if outcome.verdict in ERRORS else "failure"
        problem = _element(
            kind, type=outcome.verdict, message=f"{outcome.verdict}: {said}" if said else outcome.verdict
        )
        problem.text = without_controls(said)
        case.append(problem)
    return case


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(tag, {name: without_controls(value) for name, value in attributes.items()})
