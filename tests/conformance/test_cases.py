"""The cases: their ids, their inputs, which are the same everywhere, and their models."""

import hashlib
import itertools
import pickle
import subprocess
import sys

import numpy as np
import onnx
import pytest

from lucid_onnx.conformance import cases
from lucid_onnx.conformance.case import OPERATORS
from lucid_onnx.conformance.draws import bits, pick, uniform, whole
from lucid_onnx.conformance.families import FAMILIES
from lucid_onnx.conformance.judging import expect
from lucid_onnx.conformance.suite import DTYPES, OPSETS, SHAPES, by_id
from lucid_onnx.reference.schema import MODES, PADDING_MODES, ArgumentError

ALL = cases()
DRAWN = [case for case in ALL if case.family not in ("report", "onnx")]

DIGEST_OF_INPUTS = "ed0bb726293ab55e98212bd3215bcbc8fb8d6ad4e90093ae0ef8c1867e63828c"
DIGEST_OF_IDS = "3e0678ea2ea0e254164df78923e3f18c1349f6819ad889f3602d723c922768d9"
"""Recorded: a change of these breaks the promise that ids and inputs stay as they are."""


def digest_of_inputs(chosen):
    digest = hashlib.sha256()
    for case in chosen:
        digest.update(case.id.encode())
        for name, array in case.inputs().items():
            little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.isbuiltin == 1 else array
            digest.update(f"{name}{array.dtype.name}{array.shape}".encode() + little.tobytes())
    return digest.hexdigest()


def test_there_are_at_least_3000_cases_with_ids_of_their_own():
    assert len(ALL) >= 3000
    assert len({case.id for case in ALL}) == len(ALL) == len(by_id())


def test_ids_stay_as_they_are():
    assert hashlib.sha256("\n".join(case.id for case in DRAWN).encode()).hexdigest() == DIGEST_OF_IDS


def test_inputs_are_the_same_bytes_everywhere():
    assert digest_of_inputs(DRAWN) == DIGEST_OF_INPUTS


def test_splitmix_is_the_published_one():
    # The first numbers of the reference implementation for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert bits(1234567, 4).tolist() == expected


def test_draws_are_exact_in_float32_and_within_their_ranges():
    drawn = uniform(3, (1000,))
    assert (drawn.astype(np.float32) == drawn).all()
    assert -1 <= drawn.min() < -0.98
    assert 0.98 < drawn.max() < 1
    assert set(whole(3, (1000,), -2, 3).tolist()) == {-2, -1, 0, 1, 2}
    assert set(pick(3, (100,), (0.5, np.inf)).tolist()) == {0.5, np.inf}


@pytest.mark.parametrize("op", OPERATORS)
def test_every_operator_meets_every_variant_dtype_opset_and_kind_of_shape(op):
    own = [case for case in DRAWN if case.op == op]
    sampled = op.startswith("GridSample")
    variants = {(case.rank, case.mode, case.padding_mode, case.align_corners) for case in own}
    modes = itertools.product(MODES, PADDING_MODES) if sampled else [("", "")]
    assert variants == {(rank, *how, corners) for rank, how, corners in itertools.product((4, 5), modes, (False, True))}
    opsets = [opset for opset in OPSETS if opset >= 20 or op != "AffineGrid"]
    settings = {
        (dtype, opset, shapes)
        for dtype, opset, shapes in itertools.product(DTYPES, opsets, SHAPES)
        if not (op == "GridSample" and dtype == "bfloat16" and opset < 22)  # ONNX has none
    }
    assert {(case.dtype, case.opset, case.shapes) for case in own} == settings
    met = {case.family for case in own}
    assert met == {family for family, about in FAMILIES.items() if about.affine} or met == set(FAMILIES) or "Grad" in op


@pytest.mark.parametrize("setting", sorted({(case.op, case.dtype, case.opset, case.shapes) for case in DRAWN}), ids=str)
def test_every_setting_meets_every_mode_and_padding(setting):
    met = {
        (case.mode, case.padding_mode) for case in DRAWN if (case.op, case.dtype, case.opset, case.shapes) == setting
    }
    assert len(met) == (9 if setting[0].startswith("GridSample") else 1)


@pytest.mark.parametrize("case", [*itertools.islice(ALL, 0, None, 41), *ALL[-40:]], ids=lambda case: case.id)
def test_a_model_takes_the_inputs_and_pickles(case):
    model, inputs = case.model(), case.inputs()
    onnx.checker.check_model(model, full_check=True)
    assert pickle.loads(pickle.dumps(case)) == case
    held = {tensor.name for tensor in model.graph.initializer}
    assert {value.name for value in model.graph.input} == set(inputs) - held
    for value in model.graph.input:
        about = value.type.tensor_type
        assert onnx.helper.tensor_dtype_to_np_dtype(about.elem_type) == inputs[value.name].dtype
        if case.shapes == "static":
            assert tuple(dimension.dim_value for dimension in about.shape.dim) == inputs[value.name].shape
    for value, expected in zip(model.graph.output, expect(case, inputs), strict=True):
        assert value.name == expected.name or case.family == "onnx"
        assert onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) == expected.dtype


@pytest.mark.parametrize("family", [name for name, about in FAMILIES.items() if about.ordinary])
def test_few_values_of_ordinary_families_are_undecided(family):
    for case in DRAWN[::7]:
        if case.family == family:
            for expected in expect(case, case.inputs()):
                assert expected.undecided.mean() <= 0.05 if expected.undecided.size else True


def test_centres_ties_and_borders_are_decided():
    for case in DRAWN:
        if case.family in ("centres", "ties", "borders") and case.dtype == "float32" and case.opset == 20:
            assert not any(expected.undecided.any() for expected in expect(case, case.inputs())), case.id


def test_max_examples_takes_some_of_every_kind_and_always_the_same():
    few = cases(max_examples=300)
    assert len(few) == 300
    assert few == cases(max_examples=300)
    assert [case for case in ALL if case in set(few)] == few
    assert {case.op for case in few} == set(OPERATORS)
    assert {case.mode for case in few} == {*MODES, ""}
    assert {case.dtype for case in few} == set(DTYPES)
    assert set(cases(max_examples=20)) <= set(few)


@pytest.mark.parametrize("number", [0, -3])
def test_max_examples_below_one_is_an_error(number):
    with pytest.raises(ArgumentError, match="max_examples must be 1 or more"):
        cases(max_examples=number)


def test_a_fresh_process_draws_the_same():
    code = "import test_cases as t; print(t.digest_of_inputs(t.DRAWN[::50]))"
    folder = __file__.rpartition("/")[0]
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest_of_inputs(DRAWN[::50])
