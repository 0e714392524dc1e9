"""Grids that several nodes share, or that are equal: what the one no longer needs the other still finds."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import lucid_onnx as lo
from lucid_onnx.lowering import TARGETS

SAME_AFFINE_GRID = """<ir_version: 10, opset_import: ["" : 20]>
g (float[1,1,4,4] x) => (float[1,1,3,3] y, float[1,1,3,3] z) <int64[4] s = {1,1,3,3}>
{ a = AffineGrid (theta, s)  y = GridSample<mode="nearest"> (x, a)
  b = AffineGrid (theta, s)  {between} z = GridSample<mode="linear"> (x, {grid}) }"""

SAME_CONSTANT = """<ir_version: 10, opset_import: ["" : 20]>
g (float16[1,1,4,4] x) => (float16[1,1,3,3] y, float16[1,1,3,3] z)
{ y = GridSample<mode="nearest"> (x, points)  z = GridSample<mode="linear"> (x, points) }"""

CONSTANT_IN_A_FUNCTION = """<ir_version: 10, opset_import: ["" : 20, "d" : 1]>
g (float16[1,1,4,4] x) => (float16[1,1,2,1] y) { y = d.F (x) }
<domain: "d", opset_import: ["" : 20]> F (x) => (w)
{ c = Constant <value = float16[1,2,1,2] {0,0,15360,15360}> ()  w = GridSample (x, c) }"""

MOVED_ABOUT = """<ir_version: 10, opset_import: ["" : 20]>
g (float16[1,1,4,4] x, float16[1,3,3,2] a, float16[1,3,3,2] b, bool[1,3,3,2] c)
=> (float16[1,1,3,3] y, float16[1,1,3,3] z)
{ s = Add (a, b)  w = Where (c, s, b)  u, v = Split<axis=3, num_outputs=2> (w)  h = Concat<axis=3> (v, u)
  y = GridSample<mode="linear"> (x, h)  z = GridSample<mode="linear"> (x, w) }"""

THETA = {"theta": np.eye(2, 3, dtype=np.float32)[None]}
POINTS = {"points": np.linspace(-1, 1, 18, dtype=np.float16).reshape(1, 3, 3, 2)}
MODELS = {
    "two equal grids": (SAME_AFFINE_GRID.replace("{between}", "").replace("{grid}", "b"), THETA),
    "one of them computed with": (
        SAME_AFFINE_GRID.replace("{between}", "n = Neg (b)").replace("{grid}", "n"),
        THETA,
    ),
    "one half constant": (SAME_CONSTANT, POINTS),
    "a half constant in a function": (CONSTANT_IN_A_FUNCTION, {}),
    "halves through Where and Split": (MOVED_ABOUT, {}),
}


def parsed(name):
    text, initializers = MODELS[name]
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(array, key) for key, array in initializers.items())
    return model


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_the_result_is_valid_and_runs(name, target):
    lowered, _ = lo.lower(parsed(name), target)
    onnx.checker.check_model(lowered, full_check=True)
    lo.session(lowered, threads=1)


@pytest.mark.parametrize("name", MODELS)
def test_no_initializer_is_left_that_nothing_reads(name):
    lowered, _ = lo.lower(parsed(name), "onnxruntime-cpu")
    read = {key for node in lowered.graph.node for key in node.input}
    assert {tensor.name for tensor in lowered.graph.initializer} <= read


def test_no_half_precision_arithmetic_is_left_between_inputs_and_grid():
    lowered, _ = lo.lower(parsed("halves through Where and Split"), "tensorrt")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 1, 4, 4)).astype(np.float16)
    a, b = (rng.uniform(-0.5, 0.5, (1, 3, 3, 2)).astype(np.float16) for _ in range(2))
    c = rng.random((1, 3, 3, 2)) < 0.5
    y, z = lo.session(lowered, threads=1).run(None, {"x": x, "a": a, "b": b, "c": c})
    grid = np.where(c, a.astype(np.float32) + b, b)
    for got, points in ((y, grid[..., ::-1]), (z, grid)):
        np.testing.assert_allclose(got, lo.grid_sample(x, points), atol=2e-3)
