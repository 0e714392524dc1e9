"""Running the original and the lowered model side by side."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import onnx
import onnx_ir as ir

from lucid_onnx.files import ModelSource, as_proto
from lucid_onnx.lowering.inference import infer
from lucid_onnx.lowering.mapping import replace_mapped
from lucid_onnx.model_files import read_model
from lucid_onnx.reference.schema import ArgumentError, Array, LucidError, no_such
from lucid_onnx.verification.inputs import BORDERS, FAR, SIZES, Sizes, is_needed, make_inputs, roles
from lucid_onnx.verification.outputs import chooses, compare, relative_bound
from lucid_onnx.verification.report import OutputRow, Verification
from lucid_onnx.verification.running import Runner, folder_of, reason
from lucid_onnx.verification.sampled import exposed_names, find_sites, judged


def verify(
    original: ModelSource,
    lowered: ModelSource,
    feeds: Mapping[str, Array] | None = None,
    map: Mapping[str, str] | None = None,
    assume_finite: bool = False,
    seed: int = 0,
) -> Verification:
    """Check a lowered model against the original, and its samplings against the reference.

    1. Inputs are made from the shapes of the model, unless `feeds` gives them: grids within ±1.2, thetas near
       the identity. Both models run on them in onnxruntime, and each output must agree within 1e-4 of its range
       (float32; see `outputs.ALLOWED`), the values that are not finite exactly. Where the original does not run, or
       its kernels are themselves wrong by the reference and an output differs, outputs are no witness and not compared.
    2. For each GridSample and AffineGrid of the main graph the result of the lowered model is judged by the
       reference, on the image and grid that the lowered model has there, by the rule of `conformance.tolerance`.
    3. Where inputs are coordinates, the samplings are judged once more on the borders of the image and, unless
       `assume_finite`, at NaN, infinite and far coordinates. The kernels of onnxruntime are wrong there, so the outputs
       are not compared.

    Parameters
    ----------
    original : path, onnx.ModelProto or onnx_ir.Model
        The model before it was lowered. External data of a ``ModelProto`` is looked for in the current folder.
    lowered : path, onnx.ModelProto or onnx_ir.Model
        The model after it. External data of a ``ModelProto`` is looked for where that of the original is.
    feeds : mapping of str to Array, optional
        Values for all inputs; then there is one run.
    map : mapping of str to str, optional
        As in `lower`.
    assume_finite : bool
        Whether the model was lowered for finite coordinates only.
    seed : int
        Of the inputs that are made.

    Returns
    -------
    Verification

    Raises
    ------
    ArgumentError
        No model, missing external data, a mapping that does not fit; inputs that are missing, unknown or do not fit.
    UnsupportedError
        An input for which nothing can be made.

    Examples
    --------
    >>> import lucid_onnx as lo
    >>> from lucid_onnx.lowering import lower
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 9, opset_import: ["" : 20]>
    ...     warp (float[N, 3, H, W] x, float[N, 8, 8, 2] grid) => (float[N, 3, 8, 8] y)
    ...     { [warp] y = GridSample <mode = "linear", padding_mode = "border"> (x, grid) }''')
    >>> result = verify(model, lower(model, "portable")[0])
    >>> result.ok, [(row.node, row.inputs) for row in result.rows], [row.name for row in result.outputs]
    (True, [('warp', 'ordinary'), ('warp', 'non-finite')], ['y'])
    """
    model = read_model(original, "verify")
    folder = folder_of(original, model)
    before, after = Runner(ir.to_proto(model), folder), _lowered_runner(lowered, folder)
    replace_mapped(model, map or {})
    infer(model)
    result = Verification()
    result.lowered_error = _other_interface(before, after)
    if feeds is not None:
        check_names(model, feeds)
    comparison = _Comparison(model, before, after, result)
    if result.lowered_error:
        return result
    if feeds is not None:
        comparison.run({**feeds}, "given")
        return result
    sizes = fitting_sizes(model, before, after, seed)
    comparison.run(make_inputs(model, sizes, seed), "ordinary")
    if not result.lowered_error and any(role.kind != "size" for role in roles(model).values()):
        special = BORDERS if assume_finite else (*BORDERS, *FAR)
        name = "edges" if assume_finite else "non-finite"
        comparison.run_special(make_inputs(model, sizes, seed, special), name)
    return result


class _Comparison:
    """Runs of the two models, and what comes of them."""

    def __init__(self, model: ir.Model, before: Runner, after: Runner, result: Verification) -> None:
        self._before, self._after, self._result = before, after, result
        self._sites = find_sites(model, result.notes)
        self._relative, self._choice = relative_bound(model), chooses(model)

    def run(self, feed: Mapping[str, Array], inputs: str) -> None:
        """Compare the outputs and judge the samplings on a feed."""
        try:
            got = self._after.run(feed)
        except LucidError as error:
            _raise_if_given(error, inputs)
            self._result.lowered_error = str(error)
            return
        try:
            expected = self._before.run(feed)
        except LucidError as error:
            _raise_if_given(error, inputs)
            self._result.original_error = str(error)
        else:
            self._compare(got, expected, feed)
        self._judge(feed, inputs)

    def run_special(self, feed: Mapping[str, Array], inputs: str) -> None:
        """Judge the samplings only, on a feed on which the rest of the network need not run."""
        error = reason(self._after, feed)
        if not error:
            self._judge(feed, inputs)
        elif not self._result.original_error and reason(self._before, feed):
            self._result.notes.append(f"{inputs} inputs: neither model runs on them: {error}")
        else:
            self._result.lowered_error = f"{inputs} inputs: {error}"

    def _compare(self, got: Mapping[str, Array], expected: Mapping[str, Array], feed: Mapping[str, Array]) -> None:
        rows: list[OutputRow] = []
        for name in self._before.outputs:
            row = compare(name, got[name], expected[name], self._relative, self._choice)
            if row is None:
                self._result.notes.append(f"output {name!r} is no tensor of numbers; it is not compared")
            else:
                rows.append(row)
        wrong = [] if all(row.ok for row in rows) else self._wrong_in_original(feed)
        if wrong:
            self._result.original_error = (
                f"onnxruntime's own kernel is wrong on these inputs, by the reference: {', '.join(wrong)}"
            )
        else:
            self._result.outputs += rows

    def _wrong_in_original(self, feed: Mapping[str, Array]) -> list[str]:
        values = self._before.run(feed, exposed_names(self._sites, self._before.names))
        return [row.node for row in judged(self._sites, values, "", []) if not row.ok]

    def _judge(self, feed: Mapping[str, Array], inputs: str) -> None:
        try:
            values = self._after.run(feed, exposed_names(self._sites, self._after.names))
        except LucidError as error:
            self._result.notes.append(f"{inputs} inputs: the samplings cannot be looked at: {error}")
            return
        self._result.rows += judged(self._sites, values, inputs, self._result.notes)


def _raise_if_given(error: LucidError, inputs: str) -> None:
    """Hand on what is wrong with inputs that were given."""
    if inputs == "given" and isinstance(error, ArgumentError):
        raise error


def _lowered_runner(lowered: ModelSource, folder: str) -> Runner:
    if isinstance(lowered, str | os.PathLike):
        model = read_model(lowered, "verify")
        return Runner(ir.to_proto(model), folder_of(lowered, model))
    return Runner(as_proto(lowered), folder)


def _other_interface(before: Runner, after: Runner) -> str:
    """Why the lowered model cannot take the place of the original; empty if it can."""
    for kind, ours, theirs in (
        ("inputs", _listed(before.inputs), _listed(after.inputs)),
        ("outputs", before.outputs, after.outputs),
    ):
        if ours != theirs:
            return f"the lowered model has other {kind}: {', '.join(theirs)} instead of {', '.join(ours)}"
    return ""


def _listed(inputs: Mapping[str, int]) -> list[str]:
    return [f"{name} ({onnx.TensorProto.DataType.Name(dtype).lower()})" for name, dtype in inputs.items()]


def check_names(model: ir.Model, feeds: Iterable[str]) -> None:
    """Raise unless the feeds have the names of the inputs."""
    known = {value.name or "": value for value in (*model.graph.inputs, *model.graph.initializers.values())}
    needed = [value.name for value in model.graph.inputs if is_needed(value)]
    given = set(feeds)
    problems = [f"input {name!r} is missing" for name in needed if name not in given]
    problems += [no_such("input", name, filter(None, needed)) for name in sorted(given) if name not in known]
    if problems:
        raise ArgumentError("verify: " + "; ".join(problems))


def fitting_sizes(model: ir.Model, before: Runner, after: Runner, seed: int) -> Sizes:
    """The first sizes for open dimensions with which one of the two models runs, or the first of all."""
    inputs = [value for value in model.graph.inputs if is_needed(value)]
    if all(isinstance(dimension, int) for value in inputs for dimension in value.shape or ()):
        return SIZES[0]
    for sizes in SIZES:
        feed = make_inputs(model, sizes, seed)
        if not reason(after, feed) or not reason(before, feed):
            return sizes
    return SIZES[0]
