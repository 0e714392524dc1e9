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
from typing import Any, NoReturn

from lucid_onnx._version import __version__
from lucid_onnx.reference.schema import MODES, PADDING_MODES, ArgumentError, LucidError, no_such

DESCRIPTION = "affine_grid and grid_sample for ONNX: graphs of standard operators, judged by a reference."


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    parser = _parser()
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


def bench(options: argparse.Namespace) -> int:
    """Time GridSample in onnxruntime, what lowering makes of it, and PyTorch, in every mode."""
    from lucid_onnx.bench import check_plot, machine, plot, run_bench, summary, table

    if options.plot is not None:
        check_plot(options.plot)
    rows = run_bench(options.shapes.split(","), _progress("measuring"), options.repeats, options.memory)
    summed, ok = summary(rows), all(row.ok for row in rows)
    if options.plot is not None:
        plot(rows, options.plot)
    if options.json:
        measured = {"rows": [row.as_dict() for row in rows], "summary": summed.as_dict()}
        print(json.dumps({"machine": machine(), **measured, "plot": options.plot, "ok": ok}, indent=2))
        return int(not ok)
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    _print_table(*table(rows))
    print()
    bars = [
        (bar.name, bar.bar, "" if bar.value is None else f"{bar.value:.2f}", bar.verdict, bar.where)
        for bar in summed.bars
    ]
    _print_table(("bar", "", "measured", "", "where"), bars)
    if options.plot is not None:
        print(f"\nWrote {options.plot}.")
    return int(not ok)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="lucid-onnx", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"lucid-onnx {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=_Parser)

    command = _command(commands, "demo", demo, "lucid-onnx demo --image photo.jpg --out lucid-demo")
    command.add_argument("--image", metavar="PATH", help="a picture; by default one that ships with lucid-onnx")
    command.add_argument("--out", metavar="DIR", default="lucid-demo", help="folder to write to (default: %(default)s)")

    _command(commands, "models", models, "lucid-onnx models")

    command = _command(
        commands, "export", export, "lucid-onnx export spatial_transformer -o st.onnx --sizes 64x64 --channels 3"
    )
    command.add_argument("model", help="name of a model; `lucid-onnx models` lists them")
    command.add_argument("-o", "--output", metavar="PATH", required=True, help="file to write")
    command.add_argument("--opset", type=int, default=20, help="16 or newer (default: %(default)s)")
    command.add_argument("--target", default="onnxruntime-cpu", help="runtime it is for (default: %(default)s)")
    command.add_argument("--sizes", type=_sizes, metavar="HxW", help="input sizes, 28x28 or 16x32x32")
    command.add_argument("--output-sizes", type=_sizes, metavar="HxW", help="output sizes, if they differ")
    command.add_argument("--channels", type=int, help="channels of the input")
    command.add_argument("--classes", type=int, help="classes to tell apart")
    command.add_argument("--hidden", type=int, help="features of the localisation network")
    command.add_argument("--rank", type=int, choices=(4, 5), help="4 for images, 5 for volumes, if of any size")
    command.add_argument("--mode", choices=MODES, help="interpolation")
    command.add_argument("--padding-mode", choices=PADDING_MODES, help="what lies outside the image")
    command.add_argument("--align-corners", action="store_true", help="-1 and 1 are the centres of the edge pixels")
    command.add_argument("--seed", type=int, help="decides on the starting values")

    example = "lucid-onnx run warp.onnx X=photo.jpg 'theta=[[[0.5,0,0],[0,0.5,0]]]' -o out.png"
    command = _command(commands, "run", run, example)
    command.add_argument("model", help="an ONNX file")
    command.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="NAME=picture (values 0 to 1), NAME=array.npy, NAME=[[1,2],[3,4]], an .npz with an array for each "
        "input, or a picture alone for the one input that takes it",
    )
    command.add_argument("-o", "--output", metavar="PATH", help="a picture, or an .npz with every output")
    command.add_argument("--name", help="the one output to write (default: all, or the first image)")
    command.add_argument("--provider", action="append", help="execution provider; may be repeated, the first first")
    command.add_argument("--threads", type=int, help="threads within one operator")

    command = _command(commands, "lower", lower, "lucid-onnx lower model.onnx --target tensorrt -o out.onnx --verify")
    command.add_argument("model", help="an ONNX file")
    command.add_argument("-o", "--output", metavar="PATH", required=True, help="file to write")
    command.add_argument(
        "--target",
        default="onnxruntime-cpu",
        help="runtime it is for, or a table of your own, FILE.toml; `lucid-onnx targets` lists them "
        "(default: %(default)s)",
    )
    command.add_argument("--opset", type=int, help="16 or newer (default: that of the model, if the target takes it)")
    command.add_argument(
        "--assume-finite",
        action="store_true",
        help="coordinates are within 1e4 and pixels finite: leave out the guards",
    )
    command.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="TYPE=OP",
        help="a custom operator that is GridSample or AffineGrid: GridSample3D=GridSample, my.domain::Grid=AffineGrid, "
        "or with attributes that its nodes lack, Sample=GridSample,mode=bilinear; may be repeated",
    )
    command.add_argument("--verify", action="store_true", help="run both models and the reference, and compare")
    command.add_argument(
        "--inputs", metavar="FILE.npz", help="verify with these arrays (default: made from the shapes)"
    )

    command = _command(commands, "targets", targets, "lucid-onnx targets tensorrt openvino")
    command.add_argument("names", nargs="*", metavar="TARGET", help="names, or a FILE.toml (default: all)")

    command = _command(commands, "bench", bench, "lucid-onnx bench --shapes B,2x16x128x128:64x64 --plot bench.png")
    command.add_argument(
        "--shapes",
        default="A,B,C,D,E",
        help="of image and result, separated by commas: letters, or written out (default: %(default)s)",
    )
    command.add_argument("--plot", metavar="PATH", help="a picture to write")
    command.add_argument("--memory", action="store_true", help="measure memory, too, which takes a while")
    command.add_argument("--repeats", type=int, default=7, help="rounds at the least (default: %(default)s)")
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace], int], example: str
) -> argparse.ArgumentParser:
    about = (run.__doc__ or "").strip()
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=about, description=about, epilog=f"example: {example}"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"sizes are written 28x28 or 16x32x32; got {text!r}") from None


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
