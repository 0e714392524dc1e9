"""Reductions and scans where a gradient is not finite, or where there is none."""

import numpy as np
import onnx
import pytest
import torch
from gradient.checking import session

import lucid_onnx as lo


def model(text, opset=20):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> case {text}')


@pytest.mark.parametrize(
    ("operator", "twin", "rows"),
    [
        ("ReduceLogSum", lambda x: x.sum(1).log(), [[0, 0], [0, 1]]),
        ("ReduceLogSumExp", lambda x: x.logsumexp(1), [[-np.inf, -np.inf], [np.inf, 0], [np.inf, np.inf], [0, 1]]),
    ],
)
def test_what_is_not_finite_is_pytorchs_and_stays_in_its_row(operator, twin, rows):
    text = f"(double[N,2] x) => (double[N] y) {{ a = Constant<value_ints=[1]>() y = {operator}<keepdims=0>(x, a) }}"
    x, seed = np.array(rows, float), np.ones(len(rows))
    (got,) = session(lo.gradient(model(text))).run(["x_grad"], {"x": x, "y_grad": seed})
    leaf = torch.tensor(x, requires_grad=True)
    np.testing.assert_allclose(got, torch.autograd.grad(twin(leaf).sum(), leaf)[0], rtol=1e-12)


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceProd", "ReduceL2", "ReduceMean"])
def test_a_bad_upstream_gradient_stays_in_its_row(operator):
    text = f"(double[2,3] x) => (double[2] y) {{ a = Constant<value_ints=[1]>() y = {operator}<keepdims=0>(x, a) }}"
    feed = {"x": np.arange(1.0, 7).reshape(2, 3), "y_grad": np.array([np.nan, 1])}
    (got,) = session(lo.gradient(model(text))).run(["x_grad"], feed)
    assert np.isnan(got[0]).any()
    assert np.isfinite(got[1]).all()


@pytest.mark.parametrize(
    ("text", "opset", "says"),
    [
        (
            "(float[2,3] x, int64[1] a) => (float[N,M] y) { y = ReduceProd(x, a) }",
            18,
            "ReduceProd node 'y': its axes are computed at run time; make them a constant",
        ),
        (
            "(float[2,3] x, int64 a) => (float[2,3] y) { y = CumProd(x, a) }",
            26,
            "CumProd node 'y': its axis is computed at run time; make it a constant",
        ),
        (
            "(float[2,N] x) => (float[2,N] y) { a = Constant<value_int=1>() y = CumProd(x, a) }",
            26,
            "CumProd node 'y': the size of its axis is not known; declare the shape of 'x'",
        ),
        ("(float[] x, float[3,4] b) => (float[] y) { y = MatMul(x, b) }", 20, "the rank of"),
    ],
)
def test_what_is_not_supported_says_so(text, opset, says):
    with pytest.raises(lo.UnsupportedError) as error:
        lo.gradient(model(text, opset), "x")
    assert says in str(error.value)
