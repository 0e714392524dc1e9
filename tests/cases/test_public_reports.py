"""Inputs from public bug reports, with the right values: the reference, and the graphs in onnxruntime."""

import json
from pathlib import Path

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.reference import grid_sample_backward

REPORTS = json.loads(Path(__file__).with_name("public-reports.json").read_text())["values"]
GRID_SAMPLE = [case for case in REPORTS if case["op"] == "grid_sample"]
AFFINE_GRID = [case for case in REPORTS if case["op"] == "affine_grid"]
UNRESOLVED = {"far-finite-reflection"}
"""So far out that any value between the smallest and the largest pixel is right."""
WITH_GRADIENT = [case for case in GRID_SAMPLE if "grad_out" in case]


def array(case, key):
    """The strings nan, inf and -inf stand for the values; float() reads them."""
    return np.vectorize(float)(np.array(case[key], dtype=object)).astype(case["dtype"])


def how(case):
    return {key: case[key] for key in ("mode", "padding_mode", "align_corners")}


def check(case, y, key="expected"):
    if case["name"] in UNRESOLVED:
        x = array(case, "x")
        assert ((x.min() <= y) & (y <= x.max())).all()
    else:
        np.testing.assert_allclose(y, array(case, key), rtol=1e-6, atol=1e-6)


def test_every_report_is_covered():
    assert len(GRID_SAMPLE) + len(AFFINE_GRID) == len(REPORTS) == 30
    assert WITH_GRADIENT


@pytest.mark.parametrize("case", GRID_SAMPLE, ids=lambda case: case["name"])
def test_grid_sample_of_the_reference(case):
    check(case, lo.grid_sample(array(case, "x"), array(case, "grid"), **how(case)))


@pytest.mark.parametrize("case", GRID_SAMPLE, ids=lambda case: case["name"])
def test_grid_sample_in_onnxruntime(case):
    x, grid = array(case, "x"), array(case, "grid")
    model = lo.operator_model("GridSample", rank=x.ndim, dtype=case["dtype"], **how(case))
    check(case, lo.session(model, threads=1).run(None, {"X": x, "grid": grid})[0])


@pytest.mark.parametrize("case", WITH_GRADIENT, ids=lambda case: case["name"])
def test_gradients(case):
    assert case["grad_out"] == "ones"
    x, grid = array(case, "x"), array(case, "grid")
    grad_out = np.ones(array(case, "expected").shape, case["dtype"])
    model = lo.operator_model("GridSampleGrad", rank=x.ndim, dtype=case["dtype"], **how(case))
    graph = lo.session(model, threads=1).run(None, {"dY": grad_out, "X": x, "grid": grid})
    for grad_x, grad_grid in (graph, grid_sample_backward(grad_out, x, grid, **how(case))):
        check(case, grad_x, "expected_grad_x")
        check(case, grad_grid, "expected_grad_grid")


@pytest.mark.parametrize("case", AFFINE_GRID, ids=lambda case: case["name"])
def test_affine_grid(case):
    theta, size, expected = array(case, "theta"), case["size"], array(case, "expected")
    grid = lo.affine_grid(theta, size, case["align_corners"])
    np.testing.assert_allclose(grid, expected, rtol=1e-6, atol=1e-6)
    model = lo.operator_model("AffineGrid", align_corners=case["align_corners"], dtype=case["dtype"])
    (grid,) = lo.session(model, threads=1).run(None, {"theta": theta, "size": np.array(size)})
    np.testing.assert_allclose(grid, expected, rtol=1e-6, atol=1e-6)
