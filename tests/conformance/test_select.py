"""Expressions that choose cases."""

import pytest

from lucid_onnx.conformance import Case, cases
from lucid_onnx.conformance.select import selector
from lucid_onnx.reference.schema import ArgumentError

CASE = Case("GridSample", 5, "bilinear", "border", True, "float16", 20, "static", "non-finite")

HOLDS = [
    'op == "GridSample"',
    'mode == "bilinear"',
    'mode == "linear"',
    'mode in ("linear", "nearest")',
    'mode not in ["cubic"]',
    "rank == 5 and opset >= 20",
    "16 < opset <= 20",
    "not rank == 4",
    "align_corners",
    "align_corners == True",
    "not ordinary",
    "border",
    '"non-finite" and corners',
    'dtype == "float32" or shapes == "static"',
    'family == "non-finite"',
    '"static-non" in id',
    'id != ""',
    'op in {"GridSample"}',
    "True",
]


@pytest.mark.parametrize("expression", HOLDS)
def test_an_expression_holds(expression):
    assert selector(expression)(CASE)
    assert not selector(f"not ({expression})")(CASE)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "it is no expression"),
        ("rank ==", "it is no expression"),
        ("rank = 4", "it is no expression"),
        ("size == 4", "a case has no size"),
        ("__import__('os').system('true')", "neither a comparison nor a part of an id"),
        ("mode == open('x')", "neither an attribute nor a value"),
        ("mode.upper() == 'X'", "neither an attribute nor a value"),
        ("rank is 4", "other than =="),
        ("rank + 1", "neither a comparison nor a part of an id"),
        ("4", "neither a comparison nor a part of an id"),
        ("\0", "it is no expression"),
    ],
)
def test_a_bad_expression_is_an_error_that_says_why(expression, reason):
    with pytest.raises(ArgumentError, match=reason):
        selector(expression)


@pytest.mark.parametrize("expression", ['rank < "a"', "rank in 4", "opset in mode"])
def test_values_that_do_not_compare_are_an_error(expression):
    with pytest.raises(ArgumentError, match="cannot select by"):
        cases(expression)


def test_an_expression_that_nothing_satisfies_is_an_error():
    with pytest.raises(ArgumentError, match="no case satisfies"):
        cases("rank == 6")


def test_cases_keep_their_order():
    chosen = cases("nearest and opset == 16")
    assert chosen == [case for case in cases() if case.mode == "nearest" and case.opset == 16]
