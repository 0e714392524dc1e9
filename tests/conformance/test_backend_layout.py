"""Cases as files: ONNX's own harness finds them, runs them, and fails what is wrong."""

import io
import json
import unittest
from itertools import product

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from lucid_onnx.conformance.backend_layout import KIND, case_name, export_cases
from lucid_onnx.conformance.case import OPERATORS, Case
from lucid_onnx.conformance.families import FAMILIES
from lucid_onnx.conformance.judging import expect
from lucid_onnx.conformance.onnx_cases import onnx_cases
from lucid_onnx.reference.schema import MODES, PADDING_MODES, ArgumentError

ORDINARY = [
    *(
        Case(op, 4, mode, padding_mode, align_corners, "float32", opset, shapes, "inside")
        for op, opset, shapes in (
            ("GridSample", 16, "symbolic"),
            ("GridSample", 20, "static"),
            ("GridSampleGrad", 20, "symbolic"),
        )
        for mode, padding_mode, align_corners in product(MODES, PADDING_MODES, (False, True))
    ),
    *(
        Case(op, 5, mode, "zeros", False, "float32", 22, "static", "non-square")
        for op in ("GridSample", "GridSampleGrad")
        for mode in ("bilinear", "nearest")
    ),
    *(
        Case(op, rank, "", "", align_corners, "float32", 20, shapes, "outside")
        for op in ("AffineGrid", "AffineGridGrad")
        for rank, align_corners, shapes in product((4, 5), (False, True), ("symbolic", "static"))
    ),
]
STATIC = Case("AffineGrid", 4, "", "", False, "float32", 20, "static", "inside")
NONFINITE = Case("GridSample", 4, "bilinear", "zeros", False, "float32", 20, "symbolic", "non-finite")
NEAREST = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "ties")
GRADIENT = Case("GridSampleGrad", 4, "bilinear", "zeros", False, "float32", 20, "symbolic", "inside")
BFLOAT16 = Case("GridSample", 4, "bilinear", "border", False, "bfloat16", 20, "symbolic", "inside")
UNDECIDED = Case("GridSample", 4, "bilinear", "reflection", False, "float32", 20, "symbolic", "very-far")


def run_by_onnx(folder, monkeypatch):
    """What ONNX's runner makes of the cases under `folder`, which it takes for those that onnx ships."""
    backend = pytest.importorskip("onnxruntime.backend", reason="needs a runtime that has a backend for ONNX's runner")
    from onnx.backend.test import runner
    from onnx.backend.test.loader import load_model_tests

    monkeypatch.setattr(runner, "load_model_tests", lambda kind: load_model_tests(folder, kind) if kind == KIND else [])
    suite = runner.Runner(backend).test_suite
    return unittest.TextTestRunner(stream=io.StringIO()).run(suite)


def tensor(path):
    return numpy_helper.to_array(onnx.load_tensor(path))


def exported(case, folder):
    export_cases([case], folder)
    return folder / KIND / case_name(case)


def test_onnx_runs_what_was_written_and_passes_it(tmp_path, monkeypatch):
    assert {case.op for case in ORDINARY} == set(OPERATORS)
    assert export_cases(ORDINARY, tmp_path) == (len(ORDINARY), 0)
    result = run_by_onnx(tmp_path, monkeypatch)
    assert result.failures == result.errors == []
    # Each case once for each device that the runner knows; this runtime may have the CPU alone.
    assert result.testsRun == 2 * len(ORDINARY)
    assert len(result.skipped) in (0, len(ORDINARY))


@pytest.mark.parametrize("case", [ORDINARY[0], NEAREST, GRADIENT, STATIC], ids=lambda case: case.id)
def test_onnx_fails_a_runtime_that_is_off_by_twice_the_tolerance(case, tmp_path, monkeypatch):
    folder = exported(case, tmp_path)
    path = folder / "test_data_set_0" / "output_0.pb"
    truth = tensor(path)
    off = 2 * json.loads((folder / "data.json").read_text())["atol"]
    wrong = np.nextafter(truth.max(), np.float32(np.inf)) if off == 0 else truth.max() + np.float32(off)
    path.write_bytes(numpy_helper.from_array(np.where(truth == truth.max(), wrong, truth)).SerializeToString())
    result = run_by_onnx(tmp_path, monkeypatch)
    assert len(result.failures) == result.testsRun - len(result.skipped) > 0


@pytest.mark.parametrize("name", ["test_gridsample_bicubic", "test_affine_grid_3d_expanded"])
def test_onnx_runs_its_own_cases_from_the_files(name, tmp_path, monkeypatch):
    export_cases([case for case in onnx_cases() if case.name == name], tmp_path)
    result = run_by_onnx(tmp_path, monkeypatch)
    assert result.failures == result.errors == []
    assert result.testsRun == 2


def test_the_loader_finds_the_cases_with_their_tolerance(tmp_path):
    from onnx.backend.test.loader import load_model_tests

    export_cases([NEAREST, GRADIENT], tmp_path)
    nearest, gradient = sorted(load_model_tests(tmp_path, KIND), key=lambda test: test.name, reverse=True)
    bounds = [output.bound for output in expect(GRADIENT, GRADIENT.inputs())]
    assert (nearest.name, nearest.rtol, nearest.atol) == (case_name(NEAREST), 0, 0)
    assert (gradient.name, gradient.rtol) == (case_name(GRADIENT), 0)
    assert max(bounds) <= gradient.atol <= 1.3 * max(bounds)


@pytest.mark.parametrize(
    ("case", "fed"),
    [(STATIC, ["theta"]), (NEAREST, ["X", "grid"]), (GRADIENT, ["dY", "X", "grid"])],
    ids=lambda value: getattr(value, "id", ""),
)
def test_inputs_are_those_that_the_model_takes_in_its_order(case, fed, tmp_path):
    data = exported(case, tmp_path) / "test_data_set_0"
    assert len(list(data.glob("input_*.pb"))) == len(fed)
    for k, name in enumerate(fed):
        assert onnx.load_tensor(data / f"input_{k}.pb").name == name
        np.testing.assert_array_equal(tensor(data / f"input_{k}.pb"), case.inputs()[name])


@pytest.mark.parametrize("case", [NONFINITE, GRADIENT, BFLOAT16], ids=lambda case: case.id)
def test_outputs_are_the_truth_rounded_once(case, tmp_path):
    data = exported(case, tmp_path) / "test_data_set_0"
    for k, output in enumerate(expect(case, case.inputs())):
        written = tensor(data / f"output_{k}.pb")
        assert written.dtype == output.dtype
        np.testing.assert_array_equal(written, output.truth.astype(output.dtype))


def test_a_case_that_float32_cannot_decide_is_left_out_and_counted(tmp_path):
    assert export_cases([UNDECIDED, NEAREST], tmp_path) == (1, 1)
    assert [path.name for path in (tmp_path / KIND).iterdir()] == [case_name(NEAREST)]


def test_the_transform_makes_the_models(tmp_path):
    def signed(model):
        model.producer_name = "transformed"
        return model

    export_cases([NEAREST], tmp_path, signed)
    assert onnx.load(tmp_path / KIND / case_name(NEAREST) / "model.onnx").producer_name == "transformed"


def test_writing_twice_leaves_the_same_files(tmp_path):
    def content():
        return {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    export_cases([NEAREST, GRADIENT], tmp_path / "new" / "folder")
    first = content()
    export_cases([NEAREST, GRADIENT], tmp_path / "new" / "folder")
    assert content() == first
    assert len(first) == (2 + 2 + 1) + (2 + 3 + 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_names_are_short_words(family):
    for op in OPERATORS:
        name = case_name(Case(op, 4, "bilinear", "reflection", True, "bfloat16", 22, "symbolic", family))
        assert name.isidentifier()
        assert len(name) < 120


@pytest.mark.parametrize("taken", ["", KIND, f"{KIND}/{case_name(NEAREST)}"])
def test_a_folder_that_cannot_be_made_is_one_error(taken, tmp_path):
    place = tmp_path / "export" / taken
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("a file")
    with pytest.raises(ArgumentError, match="cannot make the folder"):
        export_cases([NEAREST], tmp_path / "export")


def test_a_file_that_cannot_be_written_is_one_error(tmp_path):
    (exported(NEAREST, tmp_path) / "model.onnx").unlink()
    (tmp_path / KIND / case_name(NEAREST) / "model.onnx").mkdir()
    with pytest.raises(ArgumentError, match=r"cannot write .*model.onnx"):
        export_cases([NEAREST], tmp_path)
