"""The command line: one function a command, which parses, calls the public face and prints.

Exit status: 0; 1 where the job was done and its answer is no; 2 for wrong use, with one line that says why.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lucid_onnx.options import build_parser
from lucid_onnx.reference.schema import ArgumentError, LucidError, no_such

if TYPE_CHECKING:
    from lucid_onnx.conformance.case import Case
    from lucid_onnx.conformance.report import Report
    from lucid_onnx.verification import GradientVerification


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    parser = build_parser((demo, models, export, run, lower, gradient, targets, conformance, bench))
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names in a model may be of any script, and a terminal of one.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status: int = options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except LucidError as error:
        return _refuse(options.command, str(error), 2)
    except MemoryError:
        return _refuse(options.command, "there is not enough memory for that", 2)
    except ModuleNotFoundError as error:
        return _refuse(options.command, f"this needs {error.name}: pip install lucid-onnx", 2)
    except KeyboardInterrupt:
        return _refuse(options.command, "interrupted", 130)
    except BrokenPipeError:
        # The reader has gone, as in `… | head`; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _refuse(options.command, f"{error.strerror or error}{where}", 2)
    return status


def _refuse(command: str, reason: str, status: int) -> int:
    """Say in one line why a command did not do its job."""
    print(f"lucid-onnx {command}: {' '.join(reason.removeprefix(f'{command}: ').split())}", file=sys.stderr)
    return status


def demo(options: argparse.Namespace) -> int:
    """Warp a photograph in every mode and padding mode, and compare each result with the reference."""
    from lucid_onnx.demo import run_demo

    rows, model, picture = run_demo(options.image, options.out, _progress("warping"))
    failed = [row for row in rows if not row.verdict.ok]
    if options.json:
        files = {"model": str(model), "picture": str(picture)}
        print(json.dumps({**files, "rows": [row.as_dict() for row in rows], "ok": not failed}, indent=2))
        return int(bool(failed))
    table = [
        (
            row.transform,
            row.mode,
            row.padding_mode,
            f"{row.verdict.max_error:.1e}",
            f"{row.verdict.max_allowed:.1e}",
            str(row.verdict.set_aside),
            "ok" if row.verdict.ok else "OVER",
        )
        for row in rows
    ]
    _print_table(("map", "mode", "padding", "max error", "allowed", "undecided", ""), table)
    print(f"\n{len(rows) - len(failed)} of {len(rows)} within their bounds. Wrote {model} and {picture}.")
    return int(bool(failed))


def models(options: argparse.Namespace) -> int:
    """List the models of the zoo."""
    import inspect

    from lucid_onnx.models import ZOO

    header = ("name", "about", "arguments")
    rows = [
        (name, (inspect.getdoc(model) or "").splitlines()[0], ", ".join(inspect.signature(model).parameters))
        for name, model in ZOO.items()
    ]
    if options.json:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2))
    else:
        _print_table(header, rows)
    return 0


def export(options: argparse.Namespace) -> int:
    """Write a model of the zoo as an ONNX file."""
    import lucid_onnx as lo

    names = ("sizes", "output_sizes", "channels", "classes", "hidden", "rank", "mode", "padding_mode", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if options.align_corners:
        given["align_corners"] = True
    model = lo.export(options.model, options.output, opset=options.opset, target=options.target, **given)
    summary = {
        "model": options.output,
        "opset": options.opset,
        "nodes": len(model.graph.node),
        "inputs": [_described(value) for value in model.graph.input],
        "outputs": [_described(value) for value in model.graph.output],
    }
    if options.json:
        print(json.dumps(summary, indent=2))
    else:
        inputs, outputs = ", ".join(summary["inputs"]), ", ".join(summary["outputs"])
        print(f"Wrote {options.output}: {summary['nodes']} nodes, opset {options.opset}; {inputs} -> {outputs}.")
    return 0


def run(options: argparse.Namespace) -> int:
    """Run a model in onnxruntime on pictures and arrays."""
    from lucid_onnx.feeding import read_inputs, write_outputs
    from lucid_onnx.runtime import session

    opened = session(options.model, options.provider, options.threads)
    feed = read_inputs(opened, options.inputs)
    names = [node.name for node in opened.get_outputs()]
    if options.name is not None and options.name not in names:
        raise ArgumentError(no_such("output", options.name, names))
    results = dict(zip(names, opened.run(None, feed), strict=True))
    if options.output is not None:
        write_outputs(options.output, results, options.name)
    rows = [(name, *_described_result(result)) for name, result in results.items()]
    header = ("output", "shape", "dtype", "min", "max")
    if options.json:
        shown = {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}
        print(json.dumps({"outputs": shown, "file": options.output}, indent=2))
    else:
        _print_table(header, [[str(cell) for cell in row] for row in rows])
        if options.output is not None:
            print(f"\nWrote {options.output}.")
    return 0


def lower(options: argparse.Namespace) -> int:
    """Rewrite a model so that a runtime runs its GridSample and AffineGrid nodes, rightly and fast."""
    from lucid_onnx.feeding import read_arrays
    from lucid_onnx.lowering import lower_ir
    from lucid_onnx.model_files import read_model, write_ir

    mapping = dict(_mapping(text) for text in options.map)
    feeds = None if options.inputs is None else read_arrays(options.inputs)
    how = (options.target, options.opset, options.assume_finite, mapping)
    model = read_model(options.model, "lower")
    (report,) = [lower_ir(part, *how) for part in _progress("lowering")([model])]
    verified = None
    if options.verify or feeds is not None:
        from lucid_onnx.verification import verify

        (verified,) = [
            verify(options.model, model, feeds, mapping, options.assume_finite)
            for _ in _progress("verifying")([options.output])
        ]
    files = write_ir(model, options.output)
    if options.json:
        result = {"model": options.output, "files": files, **report.as_dict()}
        print(json.dumps(result if verified is None else {**result, "verified": verified.as_dict()}, indent=2))
    else:
        print(report)
        if verified is not None:
            print()
            _print_table(*verified.table())
            if verified.lowered_error:
                print(f"\nThe lowered model fails: {verified.lowered_error}")
            if verified.original_error:
                print(f"\nThe original cannot serve as a reference: {verified.original_error}")
            for note in verified.notes:
                print(f"\nNote: {note}")
        print(f"\nWrote {' and '.join(files)}.")
    return int(verified is not None and not verified.ok)


def gradient(options: argparse.Namespace) -> int:
    """Write a model that computes what a model does and, from gradients of its outputs, those of its inputs."""
    from lucid_onnx.feeding import read_arrays
    from lucid_onnx.gradient import gradient_ir
    from lucid_onnx.model_files import read_model, write_ir

    feeds = None if options.inputs is None else read_arrays(options.inputs)
    model = read_model(options.model, "gradient")
    graph = model.graph
    before = len(graph), len(graph.inputs), len(graph.outputs)
    for part in _progress("differentiating")([model]):
        gradient_ir(part, options.wrt, options.outputs, options.target)
    added_inputs = [_described_value(value) for value in graph.inputs[before[1] :]]
    added_outputs = [_described_value(value) for value in graph.outputs[before[2] :]]
    verified = None
    if options.verify or feeds is not None:
        from lucid_onnx.verification import verify_gradient

        (verified,) = [
            verify_gradient(options.model, model, options.wrt, options.outputs, feeds)
            for _ in _progress("verifying")([options.output])
        ]
    files = write_ir(model, options.output)
    if options.json:
        counts = {"nodes_before": before[0], "nodes_after": len(graph)}
        result = {"model": options.output, "files": files, **counts, "inputs": added_inputs, "outputs": added_outputs}
        print(json.dumps(result if verified is None else {**result, "verified": verified.as_dict()}, indent=2))
    else:
        print(f"{before[0]} nodes, and {len(graph) - before[0]} more for the gradient", end="\n\n")
        added = [("input", value) for value in added_inputs] + [("output", value) for value in added_outputs]
        rows = [(kind, value["name"], value["dtype"], _shown_shape(value["shape"])) for kind, value in added]
        _print_table(("added", "name", "dtype", "shape"), rows)
        if verified is not None:
            _print_verified_gradient(verified)
        print(f"\nWrote {' and '.join(files)}.")
    return int(verified is not None and not verified.ok)


def _print_verified_gradient(verified: GradientVerification) -> None:
    if verified.rows:
        print()
        _print_table(*verified.table())
        print(f"\nSlopes: {verified.slopes}. Directions at a kink, left out: {verified.kinks}.")
    if verified.error:
        print(f"\nThe gradient model fails: {verified.error}")
    for note in verified.notes:
        print(f"\nNote: {note}")


def targets(options: argparse.Namespace) -> int:
    """Show what each runtime runs, and where that is known from."""
    from lucid_onnx.lowering import COLUMNS, TARGETS, find_target

    tables = [find_target(name) for name in options.names] or [*TARGETS.values()]
    if options.json:
        print(json.dumps([table.as_dict() for table in tables], indent=2))
        return 0
    for table in tables:
        limit = f", models up to opset {table.newest_opset}" if table.newest_opset else ""
        print(f"{table.name}: {table.about}{limit}")
        sources = list(dict.fromkeys(kernel.source for kernel in table.kernels))
        rows = [("  ", *kernel.as_row(), f"[{sources.index(kernel.source) + 1}]") for kernel in table.kernels]
        if rows:
            _print_table(("  ", *COLUMNS, "source"), rows)
        for number, source in enumerate(sources, start=1):
            print(f"  [{number}] {source}")
        print()
    return 0


def conformance(options: argparse.Namespace) -> int:
    """Run the conformance suite on runtimes, and say which of them differs where."""
    from lucid_onnx.conformance.report import read_json, to_json, write_json
    from lucid_onnx.conformance.suite import by_id, cases
    from lucid_onnx.files import check_writable

    for path in (options.junit, options.html, None if options.json == "-" else options.json):
        if path is not None:
            check_writable(path)
    if options.list or options.export is not None:
        chosen = cases(options.select, options.max_examples)
        return _export_cases(chosen, options) if options.export is not None else _list_cases(chosen, options)
    beside = [report for path in options.beside for report in read_json(path)]
    ran = _run_suites(options)
    reports = [*ran, *beside]
    if options.json == "-":
        print(to_json(reports))
    elif options.json is not None:
        write_json(reports, options.json)
    if options.junit is not None:
        from lucid_onnx.conformance.junit import write_junit

        write_junit(ran or beside, options.junit)
    if options.html is not None:
        from lucid_onnx.conformance.html import write_html

        write_html(reports, options.html, by_id())
    if options.json != "-":
        from lucid_onnx.conformance.matrix import terminal_table
        from lucid_onnx.conformance.text import remarks

        _print_table(*terminal_table(reports, by_id()))
        print()
        print("\n".join(remarks(reports)))
        written = [path for path in (options.json, options.junit, options.html) if path is not None]
        if written:
            print(f"\nWrote {' and '.join(written)}.")
    return int(not all(report.ok for report in ran))


def _run_suites(options: argparse.Namespace) -> list[Report]:
    """Reports of the runtimes that are named, or of onnxruntime if there is nothing else to show."""
    from functools import partial

    import lucid_onnx as lo
    from lucid_onnx.conformance.running import options_of

    programs = [] if options.program is None else ["command"]
    runtimes = (options.runtime or []) + programs or ([] if options.beside else ["onnxruntime"])
    if len(runtimes) > 1 and (options.provider or options.option):
        raise ArgumentError("--provider and --option are of one runtime: name one --runtime")
    if options.lowered is not None:
        from lucid_onnx.lowering import find_target

        find_target(options.lowered)
    return [
        lo.conformance.run(
            runtime,
            options.provider,
            options.select,
            options=options_of(options.option),
            command=options.program or "",
            max_examples=options.max_examples,
            jobs=options.jobs,
            repeat=options.repeat,
            time_limit=options.time_limit,
            transform=None if options.lowered is None else partial(lo.lower, target=options.lowered),
            known=options.known,
            progress=_progress(runtime),
        )
        for runtime in runtimes
    ]


def _list_cases(chosen: Sequence[Case], options: argparse.Namespace) -> int:
    """Print ids, seeds and what they probe."""
    rows = [(case.id, f"{case.seed:016x}", case.probes) for case in chosen]
    header = ("id", "seed", "probes")
    if options.json is not None:
        print(json.dumps([dict(zip(header, row, strict=True)) for row in rows], indent=2))
    else:
        _print_table(header, rows)
    return 0


def _export_cases(chosen: Sequence[Case], options: argparse.Namespace) -> int:
    """Write cases as ONNX backend tests."""
    from lucid_onnx.conformance.backend_layout import export_cases

    written, left_out = export_cases(_progress("writing")(chosen), options.export)
    if options.json is not None:
        print(json.dumps({"folder": options.export, "cases": written, "left_out": left_out}, indent=2))
    else:
        why = f" {left_out} have values that float32 cannot decide, and are left out." if left_out else ""
        print(f"Wrote {written} cases to {options.export}.{why}")
    return 0


def bench(options: argparse.Namespace) -> int:
    """Time GridSample in onnxruntime, what lowering makes of it, and PyTorch, in every mode; or gradients."""
    from lucid_onnx.bench import LOWERED_SHAPES, LoweringResults, check_plot, machine, run_bench, run_gradient_bench

    if options.plot is not None:
        check_plot(options.plot)
    shapes = None if options.shapes is None else options.shapes.split(",")
    how = (_progress("measuring"), options.repeats, options.memory)
    results = (
        run_gradient_bench(shapes, *how)
        if options.gradient
        else LoweringResults(run_bench(LOWERED_SHAPES if shapes is None else shapes, *how))
    )
    if options.plot is not None:
        results.plot(options.plot)
    if options.json:
        measured = {"machine": machine(), **results.as_dict(), "plot": options.plot, "ok": results.ok}
        print(json.dumps(measured, indent=2))
        return int(not results.ok)
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    for table in results.tables():
        _print_table(*table)
        print()
    for note in results.notes:
        print(f"Note: {note}\n")
    bars = [
        (bar.name, bar.bar, "" if bar.value is None else f"{bar.value:.2f}", bar.verdict, bar.where)
        for bar in results.bars()
    ]
    _print_table(("bar", "", "measured", "", "where"), bars)
    if options.plot is not None:
        print(f"\nWrote {options.plot}.")
    return int(not results.ok)


def _mapping(text: str) -> tuple[str, str]:
    """The two sides of a ``TYPE=OP``."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise ArgumentError(f"--map takes TYPE=OP, as in GridSample3D=GridSample; got {text!r}")
    return key, value


def _described(value: Any) -> str:
    """Name and shape of an input or output."""
    dims = value.type.tensor_type.shape.dim
    return f"{value.name} ({', '.join(d.dim_param or str(d.dim_value) for d in dims)})"


def _described_value(value: Any) -> dict[str, Any]:
    """Name, dtype and shape of an input or output that is a tensor of floats."""
    shape = None if value.shape is None else [_dimension(dimension) for dimension in value.shape]
    return {"name": value.name, "dtype": value.dtype.numpy().name, "shape": shape}


def _shown_shape(shape: Sequence[int | str] | None) -> str:
    return "of any rank" if shape is None else f"({', '.join(map(str, shape))})"


def _dimension(dimension: Any) -> int | str:
    return dimension if isinstance(dimension, int) else dimension.value or "?"


def _described_result(result: Any) -> tuple[Any, str, Any, Any]:
    """Shape, dtype, smallest and largest value of an output; empty where it has none."""
    import numpy as np

    from lucid_onnx.runtime import BFLOAT16

    if not isinstance(result, np.ndarray):
        return "", type(result).__name__, "", ""
    extremes: tuple[Any, Any] = ("", "")
    if result.size and (result.dtype.kind in "fiub" or result.dtype == BFLOAT16):
        # JSON has no word for what is not finite.
        low, high = (float(f"{x:.4g}") if np.isfinite(x) else str(x) for x in (result.min(), result.max()))
        extremes = low, high
    return list(result.shape), result.dtype.name, *extremes


def _print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _progress(what: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """A progress bar on standard error if that is a terminal and rich is there; nothing otherwise."""
    if not sys.stderr.isatty():
        return iter
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        return iter
    return lambda steps: track(steps, description=what, console=Console(stderr=True), transient=True)
