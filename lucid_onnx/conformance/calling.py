"""How a program of a few lines calls each runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.outcome import WRONG_PLACEMENT
from lucid_onnx.conformance.report import Report


@dataclass(frozen=True)
class Call:
    """How a runtime is called.

    Parameters
    ----------
    run : str
        An expression for the outputs, in order.
    prepare : str
        Statements before it, with `model` and `feed` at hand, or each input by its name.
    imports : str
        Beside onnx and NumPy.
    module : {"np", "torch"}
        Whether inputs are arrays of NumPy or tensors of PyTorch, which needs no model.
    """

    run: str
    prepare: str = ""
    imports: str = ""
    module: str = "np"


def call(case: Case, report: Report, verdict: str) -> Call:
    """How the runtime of a report is called on a case.

    Examples
    --------
    >>> case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "ties")
    >>> call(case, Report("onnx.reference", "1.22.0", "", "", 0.0, ()), "wrong value").run
    'ReferenceEvaluator(model).run(None, feed)'
    """
    if report.runtime == "torch":
        return _torch(case, report.provider)
    if report.runtime == "onnxruntime" and verdict == WRONG_PLACEMENT:
        return _profiled(report.provider)
    if report.runtime in CALLS:
        return CALLS[report.runtime](report.provider)
    return _program(report.runtime)


def _onnxruntime(provider: str) -> Call:
    prepare = f"session = ort.InferenceSession(model.SerializeToString(), providers=[{_with_options(provider)}])"
    return Call("session.run(None, feed)", prepare, "import onnxruntime as ort")


def _profiled(provider: str) -> Call:
    """The name and the provider of each node that ran, in place of the outputs."""
    prepare = (
        "options = ort.SessionOptions()\n"
        "options.enable_profiling = True\n"
        f"how = {{'providers': [{_with_options(provider)}]}}\n"
        "session = ort.InferenceSession(model.SerializeToString(), options, **how)\n"
        "session.run(None, feed)\n"
        "events = [(event['name'], event.get('args', {})) for event in json.load(open(session.end_profiling()))]"
    )
    run = "[(name, about['provider']) for name, about in events if about.get('provider')]"
    return Call(run, prepare, "import json\nimport onnxruntime as ort")


def _with_options(provider: str) -> str:
    """A provider as sessions take it, with the options that the suite gives it."""
    from lucid_onnx.conformance.runtimes.onnx_runtime import PROVIDER_DEFAULTS

    options = PROVIDER_DEFAULTS.get(provider)
    shown: Any = (provider, options) if options else provider
    return repr(shown)


def _onnx_reference(provider: str) -> Call:
    return Call("ReferenceEvaluator(model).run(None, feed)", "", "from onnx.reference import ReferenceEvaluator")


def _openvino(provider: str) -> Call:
    prepare = (
        "core = ov.Core()\n"
        "loaded = core.read_model(model.SerializeToString())\n"
        f"compiled = core.compile_model(loaded, {provider!r}, {{'INFERENCE_PRECISION_HINT': 'f32'}})"
    )
    feed = "{port: feed[port.any_name] for port in compiled.inputs}"
    return Call(f"list(compiled({feed}).values())", prepare, "import openvino as ov")


def _tract(provider: str) -> Call:
    prepare = (
        "onnx.save(model, 'model.onnx')\n"
        "loaded = tract.onnx().load('model.onnx')\n"
        "names = [loaded.input_name(k) for k in range(loaded.input_count())]\n"
        "runnable = loaded.into_model().into_runnable()"
    )
    run = "[output.to_numpy() for output in runnable.run([feed[name] for name in names])]"
    return Call(run, prepare, "import tract")


def _program(name: str) -> Call:
    prepare = (
        "onnx.save(model, 'model.onnx')\n"
        "np.savez('inputs.npz', **feed)\n"
        "# The program, with arguments as it takes them:\n"
        f"subprocess.run([{name!r}, 'model.onnx', 'inputs.npz', 'outputs.npz'], check=True)"
    )
    return Call("[np.load('outputs.npz')[output.name] for output in model.graph.output]", prepare, "import subprocess")


CALLS: Mapping[str, Callable[[str], Call]] = {
    "onnxruntime": _onnxruntime,
    "onnx.reference": _onnx_reference,
    "openvino": _openvino,
    "tract": _tract,
}
"""How runtimes that take a model are called; takes the provider. One that is not here is a program of the user's."""


def _torch(case: Case, device: str) -> Call:
    prepare = [] if device in ("", "cpu") else [f"torch.set_default_device({device!r})"]
    corners = f"align_corners={case.align_corners}"
    gradient = case.op.endswith("Grad")
    if case.op.startswith("GridSample"):
        leaves, given = ["X", "grid"], "dY"
        call = f"functional.grid_sample(X, grid, mode={case.mode!r}, padding_mode={case.padding_mode!r}, {corners})"
    else:
        leaves, given = ["theta"], "dgrid"
        call = f"functional.affine_grid(theta, size.tolist(), {corners})"
        if gradient:
            d = case.rank - 2
            prepare.append(f"theta = dgrid.new_zeros((dgrid.shape[0], {d}, {d + 1}))")
    run = f"[{call}]"
    if gradient:
        prepare += [f"{name}.requires_grad_()" for name in leaves]
        run = f"torch.autograd.grad({call}, [{', '.join(leaves)}], {given})"
    return Call(run, "\n".join(prepare), "import torch\nfrom torch.nn import functional", "torch")
