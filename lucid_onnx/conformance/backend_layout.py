"""Cases as files, in the layout of ONNX's backend tests, which the harnesses of runtimes read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.judging import Expected, expect
from lucid_onnx.files import make_folder, replacing, write_model
from lucid_onnx.reference.schema import Array

KIND = "simple"
"""Folder of the cases. ONNX's loader reads cases of kind "node" from its own source, whatever files there are."""


def export_cases(
    cases: Iterable[Case],
    folder: str | os.PathLike[str],
    transform: Callable[[onnx.ModelProto], onnx.ModelProto] | None = None,
) -> tuple[int, int]:
    """Write cases for any runtime's own harness.

    ``onnx.backend.test.loader.load_model_tests(folder, "simple")`` reads them. Of each case there are
    ``simple/test_<id>/model.onnx``, ``test_data_set_0/input_<i>.pb`` in the order of the model's inputs,
    ``output_<i>.pb`` (the float64 truth, rounded once) and ``data.json`` with the tolerance ("rtol", "atol").

    Parameters
    ----------
    cases : iterable of Case
        The cases.
    folder : path
        Where to write. It is made if it is not there, and a case that is there already is replaced file by file.
    transform : callable, optional
        What to make of each model before it is written.

    Returns
    -------
    written, left_out : int
        Number of cases that were written, and of those that were not, because the layout has no word for a value
        that float32 cannot decide.

    Raises
    ------
    ArgumentError
        The folder cannot be made or written to.

    Notes
    -----
    The layout has one tolerance a case. It is that of the output that may be furthest off, so a gradient may pass
    here that `decide` would fail.

    Examples
    --------
    >>> import tempfile
    >>> case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "ties")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(export_cases([case], folder))
    ...     print(*sorted(path.name for path in Path(folder, "simple", case_name(case)).rglob("*.*")))
    (1, 0)
    data.json input_0.pb input_1.pb model.onnx output_0.pb
    """
    home = make_folder(Path(folder) / KIND)
    models: dict[tuple[object, ...], onnx.ModelProto] = {}
    written = left_out = 0
    for case in cases:
        inputs = case.inputs()
        expected = expect(case, inputs)
        if any(output.undecided.any() for output in expected):
            left_out += 1
            continue
        if case.model_key not in models:
            models[case.model_key] = case.model() if transform is None else transform(case.model())
        _write_case(home / case_name(case), models[case.model_key], inputs, expected)
        written += 1
    return written, left_out


def case_name(case: Case) -> str:
    """Name of the folder and of the test, which harnesses turn into that of a function.

    Examples
    --------
    >>> case_name(Case("AffineGrid", 5, "", "", True, "float32", 20, "static", "size-1"))
    'test_AffineGrid_5d_corners_float32_opset20_static_size_1'
    """
    return "test_" + re.sub(r"\W+", "_", case.id, flags=re.ASCII)


def _write_case(
    folder: Path, model: onnx.ModelProto, inputs: Mapping[str, Array], expected: Sequence[Expected]
) -> None:
    data = make_folder(folder / "test_data_set_0")
    held = {constant.name for constant in model.graph.initializer}
    fed = [value.name for value in model.graph.input if value.name not in held]
    outputs = [_rounded(output) for output in expected]
    write_model(model, folder / "model.onnx")
    for k, name in enumerate(fed):
        _write_tensor(data / f"input_{k}.pb", name, inputs[name])
    for k, (output, array) in enumerate(zip(expected, outputs, strict=True)):
        _write_tensor(data / f"output_{k}.pb", output.name, array)
    atol = max(map(_tolerance, expected, outputs))
    with replacing(folder / "data.json") as beside:
        beside.write_text(json.dumps({"rtol": 0.0, "atol": atol}) + "\n")


def _write_tensor(path: Path, name: str, array: Array) -> None:
    with replacing(path) as beside:
        beside.write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def _rounded(output: Expected) -> Array:
    with np.errstate(over="ignore"):
        return output.truth.astype(output.dtype)


def _tolerance(output: Expected, rounded: Array) -> float:
    """The bound is one on the distance from the truth, and the file holds what rounding left of the truth."""
    bound = output.bound
    if bound == 0:
        return 0.0
    with np.errstate(invalid="ignore"):
        off = np.abs(rounded.astype(np.float64) - output.truth)
    return bound + float(off[np.isfinite(off)].max(initial=0))
