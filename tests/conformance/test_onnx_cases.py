"""ONNX's own backend cases: all of them are there, and where the reference differs it is said why."""

import pickle
import subprocess
import sys

import numpy as np
import onnx
import pytest

from lucid_onnx.conformance import onnx_cases as module
from lucid_onnx.conformance.judging import decide, expect
from lucid_onnx.conformance.onnx_cases import REASONS, agreement, differences, onnx_cases
from lucid_onnx.conformance.outcome import PASS
from lucid_onnx.reference import affine_grid, grid_sample_nd

CASES = {case.name: case for case in onnx_cases()}
PLAIN = {
    # ONNX's name of the case: op, rank, mode, padding, align_corners
    "test_gridsample": ("GridSample", 4, "bilinear", "zeros", False),
    "test_gridsample_zeros_padding": ("GridSample", 4, "bilinear", "zeros", False),
    "test_gridsample_border_padding": ("GridSample", 4, "bilinear", "border", False),
    "test_gridsample_reflection_padding": ("GridSample", 4, "bilinear", "reflection", False),
    "test_gridsample_aligncorners_true": ("GridSample", 4, "bilinear", "zeros", True),
    "test_gridsample_bicubic": ("GridSample", 4, "bicubic", "zeros", False),
    "test_gridsample_volumetric_nearest_align_corners_1": ("GridSample", 5, "nearest", "zeros", True),
    "test_affine_grid_2d": ("AffineGrid", 4, "", "", False),
    "test_affine_grid_3d_align_corners": ("AffineGrid", 5, "", "", True),
    "test_affine_grid_3d_align_corners_expanded": ("AffineGrid", 5, "", "", True),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def truth(case):
    """The reference in float64, of the case as a call of a function."""
    inputs = case.inputs()
    if case.op == "AffineGrid":
        return affine_grid(inputs["theta"].astype(np.float64), inputs["size"].tolist(), case.align_corners)
    wide = (inputs[name].astype(np.float64) for name in ("X", "grid"))
    return grid_sample_nd(*wide, case.mode, case.padding_mode, case.align_corners)


def test_every_case_of_both_operators_is_there():
    operators = [case.op for case in CASES.values()]
    assert operators.count("GridSample") >= 18
    assert operators.count("AffineGrid") >= 8
    assert len(CASES) == len(onnx_cases()) == len({case.model_key for case in onnx_cases()})


@pytest.mark.parametrize("name", PLAIN)
def test_what_a_case_calls_is_read_off_its_node(name):
    case = CASES[name]
    assert (case.op, case.rank, case.mode, case.padding_mode, case.align_corners) == PLAIN[name]
    assert (case.dtype, case.shapes, case.family) == ("float32", "static", "onnx")
    assert (case.id, case.seed, case.ordinary) == (f"onnx-{name}", 0, True)
    assert case.probes == f"ONNX's own backend case {name}"


@each_case
def test_the_reference_agrees_unless_a_reason_is_given(case):
    (stated,) = case.stated()
    rounding = 4 * np.finfo(np.float32).eps * max(1, np.abs(stated).max())
    agrees = bool((np.abs(stated - truth(case)) <= rounding).all())
    assert agrees == (case.name not in REASONS)


def test_differences_are_those_that_have_a_reason():
    assert differences() == REASONS


def test_the_bicubic_case_states_the_reference_to_four_decimals():
    case = CASES["test_gridsample_bicubic"]
    np.testing.assert_array_equal(case.stated()[0], np.round(truth(case), 4).astype(np.float32))
    assert np.abs(case.stated()[0] - truth(case)).max() > 1e-5


def test_a_difference_without_a_reason_is_told_with_its_worst_value(monkeypatch):
    case = CASES["test_gridsample"]
    wrong = case.stated()[0] + np.float32(1)
    monkeypatch.setattr(module.OnnxCase, "stated", lambda self: [wrong])
    monkeypatch.setattr(module, "onnx_cases", lambda: [case])
    (reason,) = differences().values()
    assert reason.startswith("not explained: Y[")


def test_the_agreement_is_one_sentence():
    assert agreement() == (
        f"ONNX's own {len(CASES)} cases: the reference agrees with all but test_gridsample_bicubic "
        f"({REASONS['test_gridsample_bicubic']})"
    )


@each_case
def test_a_case_feeds_its_model(case):
    model = case.model()
    onnx.checker.check_model(model, full_check=True)
    assert list(case.inputs()) == [value.name for value in model.graph.input]
    assert {entry.version for entry in model.opset_import if entry.domain == ""} == {case.opset}
    assert (len(model.graph.node) > 1) == ("_expanded" in case.name)


@each_case
def test_onnxruntime_gives_what_the_reference_expects(case):
    ort = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    results = ort.InferenceSession(case.model().SerializeToString()).run(None, case.inputs())
    assert decide(expect(case, case.inputs()), results)[0] == PASS


@each_case
def test_a_case_survives_pickling(case):
    again = pickle.loads(pickle.dumps(case))
    assert again == case
    assert hash(again) == hash(case)


def test_arrays_and_models_are_the_callers_to_change():
    case = CASES["test_gridsample"]
    case.inputs()["X"][:] = 7
    case.stated()[0][:] = 7
    case.model().graph.ClearField("node")
    assert 7 not in case.inputs()["X"][0, 0, 0]
    assert 7 not in case.stated()[0]
    assert len(case.model().graph.node) == 1


def test_collecting_imports_no_other_cases_and_leaves_numpys_generator_alone():
    program = (
        "import sys, numpy as np; np.random.seed(3); before = np.random.get_state()[1].tolist()\n"
        "from lucid_onnx.conformance.onnx_cases import onnx_cases\n"
        "onnx_cases()\n"
        "prefix = 'onnx.backend.test.case.node.'\n"
        "print(sorted(name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix)))\n"
        "print(before == np.random.get_state()[1].tolist())"
    )
    run = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert run.stdout.split("\n")[:2] == ["['affinegrid', 'gridsample']", "True"]
