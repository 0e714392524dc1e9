"""Every rule, over the tables of cases: against PyTorch and finite differences, with unknown shapes, in every dtype."""

import pytest
from gradient import checking
from gradient.tables import CASES

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)


def test_every_case_has_a_name_of_its_own():
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


@each
def test_is_pytorchs(case):
    checking.check_against_pytorch(case)


@each
def test_is_the_slope(case):
    checking.check_against_differences(case)


@each
def test_needs_no_known_shape(case):
    checking.check_symbolic(case)


@each
def test_float32_is_within_its_bound(case):
    checking.check_float32(case)


@each
def test_half_precision_is_rounded_once(case):
    checking.check_half(case)


@each
def test_second_derivative_is_the_slope_of_the_first(case):
    checking.check_second(case)
