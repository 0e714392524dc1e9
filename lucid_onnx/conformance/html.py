"""Reports as a page to read: the matrix of cells, each of which opens to its cases.

The page is one file. It needs no JavaScript and fetches nothing: cells open since they are <details>.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby

from lucid_onnx._version import __version__
from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.matrix import (
    ALL_PASS,
    EMPTY,
    FAIL,
    KNOWN,
    OTHER,
    Cell,
    Row,
    changes,
    matrix,
    reasons,
    titles,
)
from lucid_onnx.conformance.onnx_cases import agreement
from lucid_onnx.conformance.panels import Panel, counted, number, text
from lucid_onnx.conformance.picture import legend
from lucid_onnx.conformance.report import Report
from lucid_onnx.conformance.text import shows_onnx_cases
from lucid_onnx.files import replacing

HEADING = "Conformance of grid_sample and affine_grid"

CLASSES = {ALL_PASS: "pass", KNOWN: "known", FAIL: "fail", EMPTY: "empty"}
"""Class of a cell by its state."""

ABOUT = {
    "GridSample": "the node",
    "GridSampleGrad": "its gradients with respect to image and grid, as a graph of standard operators",
    "AffineGrid": "the node",
    "AffineGridGrad": "its gradient with respect to theta, as a graph of standard operators",
    OTHER: "cases that this version of the suite does not have",
}
"""What is run, by operator."""

DOTS = (
    "<svg width=0 height=0 aria-hidden=true class=hidden><defs>"
    "<pattern id=dots width=1 height=1 patternUnits=userSpaceOnUse><path class=ground d='M.44 .44h.12v.12h-.12z'/>"
    "</pattern></defs></svg>"
)
"""The ground of every picture: a dot for each value."""


def write_html(reports: Sequence[Report], path: str | os.PathLike[str], cases: Mapping[str, Case]) -> None:
    """Write a page that shows reports side by side, whole or not at all.

    Parameters
    ----------
    reports : sequence of Report
        At least one.
    path : path
        The file to write.
    cases : mapping of str to Case
        Cases by id. Outcomes of others have neither a line about what they probe nor a reproducer.

    Raises
    ------
    ArgumentError
        The file cannot be written.
    """
    with replacing(path) as beside, beside.open("w", encoding="utf-8") as page:
        page.writelines(_page(reports, cases))


def _page(reports: Sequence[Report], cases: Mapping[str, Case]) -> Iterator[str]:
    rows = matrix(reports, cases)
    names = titles(reports)
    style = (files("lucid_onnx.conformance") / "html.css").read_text(encoding="utf-8")
    yield (
        "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        '<meta name=color-scheme content="light dark">\n'
        f"<title>{HEADING}: {text(', '.join(names))}</title>\n<style>\n{style}</style>\n"
        f'<body style="--reports:{len(reports)}">\n{DOTS}'
    )
    yield f"<header><h1>{HEADING}</h1>\n<p>{_verdict(reports)}</p>\n{_navigation(rows, reports)}</header>\n<main>\n"
    yield f"<div class=runs>{''.join(map(_run, reports, names))}</div>\n"
    yield _legend()
    for op, of_op in groupby(rows.items(), key=lambda item: item[0].op):
        yield f"<section class=matrix id={op}>\n<h2>{op} <small>{ABOUT[op]}</small></h2>\n{_columns(names)}"
        for _, group in groupby(of_op, key=lambda item: item[0].labels[:2]):
            yield "<div class=mode>\n"
            for row, cells in group:
                yield _row(row, cells, reports, names, cases)
            yield "</div>\n"
        yield "</section>\n"
    yield _known(reports, names)
    yield _changed(reports, names)
    if shows_onnx_cases(reports):
        yield f"<section id=onnx><h2>ONNX's own cases</h2><p>{text(agreement())}.</section>\n"
    yield f"</main>\n<footer><p>lucid-onnx {__version__}</footer>\n"


def _verdict(reports: Sequence[Report]) -> str:
    failing = sum(not report.ok for report in reports)
    cases = counted(sum(len(report.cases) for report in reports), "result")
    if not failing:
        return f"{cases}, judged by the reference. None fails that is not known to."
    return f"{cases}, judged by the reference. {failing} of {counted(len(reports), 'report')} with unexpected failures."


def _navigation(rows: Mapping[Row, object], reports: Sequence[Report]) -> str:
    places = {op: op for op in dict.fromkeys(row.op for row in rows)} | {"known": "Known divergences"}
    if list(_pairs(reports)):
        places["changes"] = "Changes"
    links = "".join(f"<a href=#{place}>{words}</a>" for place, words in places.items())
    return f'<nav aria-label="Sections">{links}</nav>'


def _run(report: Report, name: str) -> str:
    """What a report comes to."""
    whole = Cell(report.cases)
    parts = {
        "pass": (len(whole.passed), "passed"),
        "known": (len(whole.known), "failed as known"),
        "fail": (len(whole.failures), "failed unexpectedly"),
    }
    bar = "".join(f'<i class={kind} style="flex:{count}"></i>' for kind, (count, _) in parts.items() if count)
    shares = "".join(f"<li class={kind}><b>{number(count)}</b> {what}" for kind, (count, what) in parts.items())
    verdicts = ", ".join(f"{number(count)} {verdict}" for verdict, count in report.counts.items() if verdict != "pass")
    how = [report.provider, f"after {report.transform}" if report.transform else "", f"{report.seconds:.0f} s"]
    surprises = f"<p class=note>{counted(len(whole.surprises), 'case')} passed though known to fail"
    return (
        f"<section class=run><h2>{text(name)}</h2><p>{text(', '.join(filter(None, how)))}, "
        f"{counted(len(report.cases), 'case')}<div class=bar aria-hidden=true>{bar}</div><ul>{shares}</ul>"
        f"<p class=note>{text(verdicts)}{surprises if whole.surprises else ''}</section>"
    )


def _legend() -> str:
    cells = (
        ("pass", "all pass"),
        ("known", "only known divergences"),
        ("fail", "unexpected failures"),
        ("empty", "nothing run"),
    )
    samples = "".join(f"<li><span class='sample {kind}'></span>{words}" for kind, words in cells)
    return (
        f"<section class=legend><ul>{samples}</ul><p>Cells open to their cases. A number is of cases that passed."
        "<details><summary>Pictures of errors</summary>"
        "<p>The plane of the result around its worst value, which is framed. Each mark is a value:"
        f"<ul>{legend()}</ul></details></section>\n"
    )


def _columns(names: Sequence[str]) -> str:
    """The names of the reports, above their cells; on a narrow page each cell has its own."""
    shown = "".join(f"<span>{text(name)}</span>" for name in names)
    return f"<div class='row head' aria-hidden=true><span></span>{shown}</div>\n"


def _row(
    row: Row, cells: Sequence[Cell], reports: Sequence[Report], names: Sequence[str], cases: Mapping[str, Case]
) -> str:
    labels = "".join(f"<span>{label}</span>" for label in row.labels if label) or "<span>unknown</span>"
    shown = "".join(
        _cell(cell, place, names[place], str(Panel(row, cell, report, names[place], cases)) if cell.outcomes else "")
        for place, (cell, report) in enumerate(zip(cells, reports, strict=True))
    )
    return f"<div class=row><h3>{labels}</h3>{shown}</div>\n"


def _cell(cell: Cell, place: int, name: str, panel: str) -> str:
    kind = CLASSES[cell.state]
    who = f"<span class=who>{text(name)}</span>"
    if cell.state == EMPTY:
        return f"<div class='cell {kind}'>{who}<b>-</b> <span>nothing run</span></div>"
    passed, whole = len(cell.passed), len(cell.outcomes)
    told = [
        f"{number(len(outcomes))} {what}"
        for outcomes, what in ((cell.failures, "fail"), (cell.known, "known"), (cell.surprises, "surprising"))
        if outcomes
    ]
    if passed == whole:
        share, told = number(passed), ["pass", *told]
    else:
        share = f"{number(passed)}/{number(whole)}"
    summary = f"{who}<b>{share}</b> <span>{', '.join(told)}</span>"
    column = f"style=--column:{place + 2}"
    return f"<details class='cell {kind}' {column}><summary>{summary}</summary><div class=panel>{panel}</div></details>"


def _known(reports: Sequence[Report], names: Sequence[str]) -> str:
    """How many cases each known divergence explains."""
    counts = reasons(reports)
    if not counts:
        rows = "<p>No case failed as a known divergence says."
    else:
        rows = _columns(names) + "".join(
            f"<div class=row><h3>{text(reason)}</h3>{''.join(map(_count, found, names))}</div>\n"
            for reason, found in counts.items()
        )
    heading = "<h2>Known divergences <small>cases that fail, and why</small></h2>"
    return f"<section class='matrix reasons' id=known>\n{heading}\n{rows}</section>\n"


def _count(count: int, name: str) -> str:
    kind = "known" if count else "empty"
    return f"<div class='cell {kind}'><span class=who>{text(name)}</span><b>{number(count) if count else '-'}</b></div>"


def _pairs(reports: Sequence[Report]) -> Iterator[tuple[int, int]]:
    """Places of a report and the one before it of the same runtime."""
    latest: dict[str, int] = {}
    for place, report in enumerate(reports):
        if report.runtime in latest:
            yield latest[report.runtime], place
        latest[report.runtime] = place


def _changed(reports: Sequence[Report], names: Sequence[str]) -> str:
    """What differs between reports of the same runtime."""
    parts = []
    for before, after in _pairs(reports):
        gained, lost = changes(reports[before], reports[after])
        parts.append(f"<h3>{text(names[before])} to {text(names[after])}</h3>")
        parts += [_list("pass", "pass now", gained), _list("fail", "fail now", lost)]
    if not parts:
        return ""
    return f"<section class=changes id=changes>\n<h2>Changes between reports</h2>\n{''.join(parts)}</section>\n"


def _list(kind: str, what: str, ids: Sequence[str]) -> str:
    """Ids, folded, if there are any."""
    if not ids:
        return f"<p>No cases {what}."
    lines = "".join(f"<li><code>{text(identity)}</code>" for identity in ids)
    return f"<details class={kind}><summary>{counted(len(ids), 'case')} {what}</summary><ul>{lines}</ul></details>"
