"""Verdicts on results, and the worst value that they name."""

import math

import numpy as np
import pytest

from lucid_onnx.conformance import Case
from lucid_onnx.conformance.judging import decide, expect
from lucid_onnx.conformance.outcome import PASS, WRONG_FORM, WRONG_VALUE, Outcome, Worst
from lucid_onnx.conformance.suite import cases
from lucid_onnx.reference import affine_grid_backward, grid_sample_nd_backward

SAMPLE = Case("GridSample", 4, "bilinear", "zeros", False, "float32", 20, "symbolic", "outside")


def expected_of(case):
    return expect(case, case.inputs())


def right(case):
    return [expected.truth.astype(expected.dtype) for expected in expected_of(case)]


@pytest.mark.parametrize("case", cases()[::23], ids=lambda case: case.id)
def test_the_truth_rounded_once_passes(case):
    assert decide(expected_of(case), right(case)) == (PASS, "", None)


@pytest.mark.parametrize(
    "case",
    [case for case in cases(max_examples=200) if all(expected.truth.size for expected in expected_of(case))],
    ids=lambda case: case.id,
)
def test_a_value_that_is_off_by_more_than_its_bound_is_named(case):
    results = right(case)
    expected = expected_of(case)[-1]
    wrong = results[-1].astype(np.float64)
    candidates = np.argwhere(np.isfinite(expected.truth) & ~expected.undecided)
    if not len(candidates):
        return
    place = tuple(candidates[len(candidates) // 2])
    wrong[place] += 3 * expected.bound + 0.1
    verdict, _, worst = decide(expected_of(case), [*results[:-1], wrong.astype(results[-1].dtype)])
    assert verdict == WRONG_VALUE
    assert worst.index == tuple(map(int, place))
    assert worst.output == expected.name
    assert worst.want == expected.truth[place]
    assert worst.bound == expected.bound
    assert {"x", "X"} & set("".join(worst.errors))


def test_the_worst_point_has_its_coordinate_and_its_plane():
    results = right(SAMPLE)
    results[0][1, 0, 2, 3] = math.nan
    _, _, worst = decide(expected_of(SAMPLE), results)
    assert worst.index == (1, 0, 2, 3)
    assert worst.coordinate == tuple(SAMPLE.inputs()["grid"][1, 2, 3])
    assert [len(row) for row in worst.errors] == [5, 5, 5, 5]
    assert worst.errors[2][3] == "!"
    assert sum(row.count("!") for row in worst.errors) == 1


def test_the_plane_of_a_gradient_of_the_grid_is_that_of_its_axis():
    case = Case("GridSampleGrad", 5, "bilinear", "border", False, "float32", 20, "symbolic", "outside")
    results = right(case)
    results[1][1, 0, 2, 3, 1] += 7
    _, _, worst = decide(expected_of(case), results)
    assert (worst.output, worst.index) == ("dgrid", (1, 0, 2, 3, 1))
    assert [len(row) for row in worst.errors] == [4, 4, 4]
    assert worst.errors[2][3] == "X"


def test_one_pixel_of_nearest_for_another_is_wrong_however_close():
    case = Case("GridSample", 4, "nearest", "border", False, "float32", 20, "symbolic", "centres")
    results = right(case)
    results[0][0, 1, 1, 1] = np.nextafter(results[0][0, 1, 1, 1], np.float32(2))
    verdict, _, worst = decide(expected_of(case), results)
    assert (verdict, worst.index, worst.bound) == (WRONG_VALUE, (0, 1, 1, 1), 0.0)


def test_many_values_near_their_bound_are_wrong_by_their_root_mean_square():
    (expected,) = expected_of(SAMPLE)
    (result,) = right(SAMPLE)
    off = result + np.float32(0.95 * expected.bound)
    verdict, words, worst = decide(expected_of(SAMPLE), [off])
    assert verdict == WRONG_VALUE
    assert "root mean square" in words
    assert worst is not None


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (lambda y: [], "0 outputs, want 1"),
        (lambda y: [y, y], "2 outputs, want 1"),
        (lambda y: [y[:, :1]], r"Y is float32 \(2, 1, 4, 5\), want float32 \(2, 2, 4, 5\)"),
        (lambda y: [y.astype(np.float64)], r"Y is float64 .*, want float32"),
    ],
)
def test_another_number_shape_or_dtype_is_told(result, words):
    import re

    verdict, said, worst = decide(expected_of(SAMPLE), result(right(SAMPLE)[0]))
    assert (verdict, worst) == (WRONG_FORM, None)
    assert re.search(words, said)


def test_zero_is_no_value_of_an_image_that_reflection_leaves_open():
    case = next(case for case in cases() if "far-finite-reflection" in case.id)
    expected = expected_of(case)
    assert expected[0].undecided.all()
    assert decide(expected, [np.full((1, 1, 1, 2), 2.5, np.float32)])[0] == PASS
    assert decide(expected, [np.full((1, 1, 1, 2), 0.0, np.float32)])[0] == WRONG_VALUE


def test_expected_gradients_are_those_of_the_reference():
    case = Case("GridSampleGrad", 4, "bicubic", "reflection", True, "float64", 20, "symbolic", "inside")
    inputs = case.inputs()
    grad_x, grad_grid = grid_sample_nd_backward(
        inputs["dY"], inputs["X"], inputs["grid"], "bicubic", "reflection", True
    )
    dx, dgrid = expected_of(case)
    np.testing.assert_array_equal(dx.truth, grad_x)
    np.testing.assert_array_equal(dgrid.truth, grad_grid)
    case = Case("AffineGridGrad", 5, "", "", False, "float64", 20, "symbolic", "size-1")
    inputs = case.inputs()
    (dtheta,) = expected_of(case)
    np.testing.assert_array_equal(dtheta.truth, affine_grid_backward(inputs["dgrid"], inputs["size"], False))


def test_an_outcome_comes_back_from_its_dictionary():
    worst = Worst("Y", (0, 1), (math.nan, math.inf), math.nan, 1.5, 0.0, ("!.", ".x"))
    outcome = Outcome("a", WRONG_VALUE, 0.5, "words", worst, 3, WRONG_VALUE, "because")
    assert repr(Outcome.from_dict(outcome.as_dict())) == repr(outcome)
    assert Outcome.from_dict(Outcome("b", PASS).as_dict()) == Outcome("b", PASS)


@pytest.mark.parametrize("op", ["GridSample", "GridSampleGrad", "AffineGrid", "AffineGridGrad"])
def test_zeros_pass_only_where_zero_is_right(op):
    for case in cases(f"op == {op!r} and (opset == 20 or op == 'AffineGrid')")[::7]:
        expected = expected_of(case)
        zeros = [np.zeros(one.truth.shape, one.dtype) for one in expected]
        if decide(expected, zeros)[0] == PASS:
            assert all((np.abs(one.truth) <= one.bound).all() for one in expected), case.id


def test_no_gradient_of_an_image_is_left_open():
    for case in cases("op == 'GridSampleGrad'")[::5]:
        assert not expected_of(case)[0].undecided.any(), case.id
