"""Public bug reports: inputs with the right values, in the reference and in graphs, and models to lower."""

import json
from importlib.resources import files

import numpy as np
import onnx
import pytest
from lowering.sampling import operators

import lucid_onnx as lo
from lucid_onnx.lowering import TARGETS
from lucid_onnx.reference import grid_sample_backward

CASES = json.loads((files("lucid_onnx.conformance") / "public_reports.json").read_text())
REPORTS, GRAPHS = CASES["values"], CASES["graphs"]
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


def test_every_graph_has_a_test():
    names = [graph["name"] for graph in GRAPHS]
    assert names == [test.__name__.removeprefix("test_").replace("_", "-") for test in TESTS_OF_GRAPHS]


def linear(x, grid, domain="", op="GridSample", opset=20):
    """A linear sampling of opset 20 of X and a grid of these shapes."""
    axes = ("X", x.shape), ("grid", grid.shape), ("Y", (*x.shape[:2], *grid.shape[1:-1]))
    *inputs, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in axes)
    how = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    node = onnx.helper.make_node(op, ["X", "grid"], ["Y"], "sample", domain=domain, **how)
    opsets = [onnx.helper.make_opsetid("", opset), *([onnx.helper.make_opsetid(domain, 1)] if domain else [])]
    return onnx.helper.make_model(onnx.helper.make_graph([node], "g", inputs, [y]), opset_imports=opsets, ir_version=9)


def drawn(x, grid):
    """An image and a grid of these shapes."""
    rng = np.random.default_rng(0)
    return rng.standard_normal(x, np.float32), rng.uniform(-1.1, 1.1, grid).astype(np.float32)


def agrees(model, x, grid):
    (y,) = lo.session(model, threads=1).run(None, {"X": x, "grid": grid})
    np.testing.assert_allclose(y, lo.grid_sample(x, grid), rtol=1e-4, atol=1e-4)


def test_opset20_to_16():
    x, grid = drawn((2, 3, 5, 6), (2, 4, 4, 2))
    for target in TARGETS:
        lowered, _ = lo.lower(linear(x, grid), target, opset=16)
        assert [(imported.domain, imported.version) for imported in lowered.opset_import] == [("", 16)]
        agrees(lowered, x, grid)


def test_tensorrt_reads_linear_as_nearest():
    x, grid = drawn((1, 1, 1, 256), (1, 1, 9, 2))
    for finite in (False, True):
        lowered, _ = lo.lower(linear(x, grid), "tensorrt", assume_finite=finite)
        assert lowered.opset_import[0].version < 20 or "GridSample" not in operators(lowered)
        agrees(lowered, x, grid)


def test_tensorrt_5d():
    x, grid = drawn((1, 1, 512, 32, 32), (1, 512, 32, 32, 3))
    expected = lo.grid_sample(x, grid)
    for target in ("tensorrt", "openvino"):
        lowered, _ = lo.lower(linear(x, grid), target)
        assert "GridSample" not in operators(lowered)
        (y,) = lo.session(lowered, threads=1).run(None, {"X": x, "grid": grid})
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_dynamic_affine_grid():
    # The exporter is not asked here: this is the graph that affine_grid(theta, x.shape) makes.
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        g (float[N, 3, H, W] X, float[N, 2, 3] theta) => (float[N, 3, H, W] Y) {
            size = Shape (X)
            grid = AffineGrid (theta, size)
            Y = GridSample (X, grid)
        }""")
    for target in TARGETS:
        lowered, _ = lo.lower(model, target)
        warp = lo.session(lowered, threads=1)
        for batch, height, width in ((1, 4, 5), (3, 9, 2), (2, 1, 7)):
            x, theta = drawn((batch, 3, height, width), (batch, 2, 3))
            (y,) = warp.run(None, {"X": x, "theta": theta})
            expected = lo.grid_sample(x, lo.affine_grid(theta, x.shape))
            np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_custom_domain_5d():
    x, grid = drawn((1, 2, 4, 5, 6), (1, 3, 4, 5, 3))
    model = linear(x, grid, "ditto", "GridSample3D")
    for target in TARGETS:
        for key in ("GridSample3D", "ditto::GridSample3D"):
            lowered, _ = lo.lower(model, target, map={key: "GridSample"})
            assert {node.domain for node in lowered.graph.node} == {""}
            assert [imported.domain for imported in lowered.opset_import] == [""]
            agrees(lowered, x, grid)


TESTS_OF_GRAPHS = (
    test_opset20_to_16,
    test_tensorrt_reads_linear_as_nearest,
    test_tensorrt_5d,
    test_dynamic_affine_grid,
    test_custom_domain_5d,
)
