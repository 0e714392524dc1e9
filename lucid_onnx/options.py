"""The words of the command line: what each command takes, and an example of it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from lucid_onnx._version import __version__
from lucid_onnx.reference.schema import MODES, PADDING_MODES

DESCRIPTION = "affine_grid and grid_sample for ONNX: graphs of standard operators, judged by a reference."

Command: TypeAlias = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser(functions: Sequence[Command]) -> argparse.ArgumentParser:
    """The parser of all commands, each run by the function of its name."""
    by_name = {function.__name__: function for function in functions}
    parser = _Parser(prog="lucid-onnx", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"lucid-onnx {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=_Parser)

    command = _command(commands, by_name["demo"], "lucid-onnx demo --image photo.jpg --out lucid-demo")
    command.add_argument("--image", metavar="PATH", help="a picture; by default one that ships with lucid-onnx")
    command.add_argument("--out", metavar="DIR", default="lucid-demo", help="folder to write to (default: %(default)s)")

    _command(commands, by_name["models"], "lucid-onnx models")

    command = _command(
        commands, by_name["export"], "lucid-onnx export spatial_transformer -o st.onnx --sizes 64x64 --channels 3"
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
    command = _command(commands, by_name["run"], example)
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

    command = _command(commands, by_name["lower"], "lucid-onnx lower model.onnx --target tensorrt -o out.onnx --verify")
    _add_model_and_output(command)
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

    example = "lucid-onnx gradient model.onnx --wrt image --wrt weight --of scores -o gradient.onnx --verify"
    command = _command(commands, by_name["gradient"], example)
    _add_model_and_output(command)
    command.add_argument(
        "--wrt",
        action="append",
        metavar="NAME",
        help="an input or initializer to differentiate with respect to, which gives an output NAME_grad; may be "
        "repeated (default: all that are floats)",
    )
    command.add_argument(
        "--of",
        dest="outputs",
        action="append",
        metavar="NAME",
        help="an output to differentiate, which gives an input NAME_grad; may be repeated (default: all that are "
        "floats)",
    )
    command.add_argument("--verify", action="store_true", help="compare with slopes of the model in float64")
    command.add_argument("--inputs", metavar="FILE.npz", help="verify at these arrays (default: made from the shapes)")

    command = _command(commands, by_name["targets"], "lucid-onnx targets tensorrt openvino")
    command.add_argument("names", nargs="*", metavar="TARGET", help="names, or a FILE.toml (default: all)")

    example = (
        "lucid-onnx conformance --runtime onnxruntime --select 'mode == \"nearest\" and rank == 5' --html report.html"
    )
    command = _command(commands, by_name["conformance"], example, json_file=True)
    command.add_argument(
        "--runtime",
        action="append",
        help="onnxruntime, onnx.reference, openvino, torch or tract; may be repeated (default: onnxruntime)",
    )
    command.add_argument(
        "--command",
        dest="program",
        metavar="LINE",
        help="a runtime that is a program: './my-runtime {model} {inputs} {outputs}', with .npz files in and out, or "
        "{inputs_pb} and {outputs_pb} for folders of protobufs",
    )
    command.add_argument(
        "--provider",
        action="append",
        help="execution provider or device, perhaps with options, NAME,key=value; may be repeated, the first first",
    )
    command.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the session; may be repeated"
    )
    command.add_argument(
        "--select",
        metavar="EXPR",
        help="which cases: op, rank, mode, padding_mode, align_corners, dtype, opset, shapes and family compared, or "
        "parts of ids, joined by and, or, not",
    )
    command.add_argument("--max-examples", type=int, metavar="N", help="the most cases to run")
    command.add_argument("--list", action="store_true", help="show the cases, and run none")
    command.add_argument("--lowered", metavar="TARGET", help="lower each model for this target first")
    command.add_argument("--repeat", type=int, default=1, metavar="N", help="run each case N times and compare bytes")
    command.add_argument("--jobs", type=int, metavar="N", help="child processes (default: one for each processor)")
    command.add_argument(
        "--time-limit", type=float, default=60, metavar="S", help="seconds for a case (default: %(default)s)"
    )
    command.add_argument("--known", metavar="FILE.toml", help="known divergences of your own runtime")
    command.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="FILE.json",
        help="show reports that --json wrote beside these, or alone if no runtime is named; may be repeated",
    )
    command.add_argument("--junit", metavar="FILE.xml", help="a report for continuous integration")
    command.add_argument("--html", metavar="FILE.html", help="a page to read")
    command.add_argument("--export", metavar="DIR", help="write the cases as ONNX backend tests, and run none")

    command = _command(commands, by_name["bench"], "lucid-onnx bench --shapes B,2x16x128x128:64x64 --plot bench.png")
    command.add_argument(
        "--shapes",
        help="of image and result, separated by commas: letters, or written out (default: A to E; of gradients A to F, "
        "and networks)",
    )
    command.add_argument(
        "--gradient", action="store_true", help="measure GridSample with both its gradients, beside PyTorch and onnx-ad"
    )
    command.add_argument("--plot", metavar="PATH", help="a picture to write")
    command.add_argument("--memory", action="store_true", help="measure memory, too, which takes a while")
    command.add_argument("--repeats", type=int, default=7, help="rounds at the least (default: %(default)s)")
    return parser


def _command(commands: Any, run: Command, example: str, json_file: bool = False) -> argparse.ArgumentParser:
    """The parser of a command; with `json_file`, JSON may go to a file, too."""
    about = (run.__doc__ or "").strip()
    parser: argparse.ArgumentParser = commands.add_parser(
        run.__name__, help=about, description=about, epilog=f"example: {example}"
    )
    if json_file:
        parser.add_argument("--json", nargs="?", const="-", metavar="FILE.json", help="write JSON, or print it")
    else:
        parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _add_model_and_output(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", help="an ONNX file")
    command.add_argument("-o", "--output", metavar="PATH", required=True, help="file to write")
    command.add_argument(
        "--target",
        default="onnxruntime-cpu",
        help="runtime it is for, or a table of your own, FILE.toml; `lucid-onnx targets` lists them "
        "(default: %(default)s)",
    )


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lower().split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"sizes are written 28x28 or 16x32x32; got {text!r}") from None
