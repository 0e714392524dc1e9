"""A gradient model beside the slopes of the original."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from lucid_onnx.files import ModelSource
from lucid_onnx.lowering.inference import infer
from lucid_onnx.lowering.nodes import FLOATS
from lucid_onnx.model_files import read_model
from lucid_onnx.reference.schema import ArgumentError, Array, LucidError, no_such
from lucid_onnx.verification.backward import Backward
from lucid_onnx.verification.comparison import Comparison
from lucid_onnx.verification.gradient_report import GradientVerification
from lucid_onnx.verification.inputs import make_inputs
from lucid_onnx.verification.running import Runner, folder_of
from lucid_onnx.verification.verify import check_names, fitting_sizes
from lucid_onnx.verification.witness import Values, witnesses


def verify_gradient(
    original: ModelSource,
    gradient_model: ModelSource,
    wrt: Sequence[str] | str | None = None,
    outputs: Sequence[str] | str | None = None,
    feeds: Mapping[str, Array] | None = None,
    seed: int = 0,
) -> GradientVerification:
    """Check what `gradient` made against slopes of the original, by central differences along random directions.

    1. Inputs are made from the shapes of the model, unless `feeds` gives them; upstream gradients are random.
    2. For each name of `wrt` the slope of L = sum(output * seed) along three random directions d is that of the
       original in float64: in onnxruntime where it has the kernels, otherwise in ONNX's reference evaluator. Where
       neither runs it, or in reasonable time, it is a difference in the model's own dtypes, and a note says so.
    3. The gradient model runs in onnxruntime as it is, and sum(grad * d) must be that slope. A direction is random and
       knows no errors, so that it shows one of size e in a gradient g as about e. Allowed is six times

       * 1e-4 of the size of g (float32; 2e-2 for float16; see `outputs.ALLOWED`; at least 1e-6), which is the error of
         arithmetic, or 5e-2 where the slopes are not of float64, and
       * four times what g changes by when inputs and upstream gradients change by their own rounding: this is large
         where sums cancel,

       and the rounding in the difference itself. A gradient that is wrong by 1 % in one parameter is far above.
    4. Where two steps disagree, or the two sides, the line has a kink there, and the gradient is not its slope: another
       direction is taken, with a smaller step. Where all have one, as those of a spatial transformer at the identity
       do, and where the gradient is 0 or drowns in rounding, the values of `wrt` are moved by 1 % in both models. A
       name for which that does not help is not judged, and a note says so.

    Parameters
    ----------
    original : path, onnx.ModelProto or onnx_ir.Model
        The model whose gradient it is. External data of a ``ModelProto`` is looked for in the current folder.
    gradient_model : path, onnx.ModelProto or onnx_ir.Model
        What `gradient` made of it. External data of a ``ModelProto`` is looked for where that of the original is.
    wrt, outputs : str or sequence of str, optional
        As they were given to `gradient`.
    feeds : mapping of str to Array, optional
        Values for all inputs of the original.
    seed : int
        Of all that is drawn.

    Returns
    -------
    GradientVerification

    Raises
    ------
    ArgumentError
        No model, missing external data, names that the model does not have; inputs that are missing, unknown or do not
        fit.
    UnsupportedError
        An input for which nothing can be made.

    Examples
    --------
    >>> import lucid_onnx as lo
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 9, opset_import: ["" : 20]> m (float[N, 3] x) => (float[N, 2] y)
    ...     <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { h = MatMul(x, w) y = Relu(h) }''')
    >>> result = verify_gradient(model, lo.gradient(model, ["x", "w"]), ["x", "w"])
    >>> result.ok, result.slopes, [row.name for row in result.rows]
    (True, 'float64 in onnxruntime', ['x', 'x', 'x', 'w', 'w', 'w'])
    """
    model = read_model(original, "verify")
    folder = folder_of(original, model)
    before = Runner(ir.to_proto(model), folder)
    infer(model)
    sources = _chosen("input or initializer", wrt, [*model.graph.inputs, *model.graph.initializers.values()])
    chosen = set(_chosen("output", outputs, model.graph.outputs))
    results = [value.name for value in model.graph.outputs if value.name and value.name in chosen]
    if feeds is None:
        feed = make_inputs(model, fitting_sizes(model, before, before, seed), seed)
    else:
        check_names(model, feeds)
        feed = {**feeds}
    seconds = _run_once(before, feed)
    result = GradientVerification()
    try:
        gradients = Backward(*_read_beside(gradient_model, folder), model, sources, results)
    except LucidError as error:
        result.error = str(error)
        return result
    values = {**{name: _initial(model, name) for name in sources if name not in feed}, **feed}
    where = "made" if feeds is None else "given"
    openers = witnesses(model, sources, results, folder, seconds)
    Comparison(model, gradients, result, seed).run(openers, values, where)
    return result


def _read_beside(source: ModelSource, folder: str) -> tuple[ir.Model, str]:
    """A model and the folder of its external data, which for a protobuf is `folder`."""
    if isinstance(source, onnx.ModelProto):
        return ir.from_proto(source), folder
    model = read_model(source, "verify")
    return model, folder_of(source, model)


def _chosen(kind: str, names: Sequence[str] | str | None, known: Sequence[ir.Value]) -> list[str]:
    """The names, each once; by default those of all floats."""
    by_name = {value.name or "": value for value in known}
    if names is None:
        return [name for name, value in by_name.items() if value.dtype in FLOATS]
    given = list(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in given:
        if name not in by_name:
            raise ArgumentError(f"verify: {no_such(kind, name, by_name)}")
    return given


def _run_once(before: Runner, feed: Values) -> float:
    """How long the original runs, in seconds; it need not, but inputs that do not fit are an error."""
    begin = time.perf_counter()
    try:
        before.run(feed)
    except ArgumentError:
        raise
    except LucidError:
        return 0.0
    return time.perf_counter() - begin


def _initial(model: ir.Model, name: str) -> Array:
    tensor = model.graph.initializers[name].const_value
    assert tensor is not None
    return np.asarray(tensor.numpy())
