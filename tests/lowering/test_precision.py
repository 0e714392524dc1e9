"""Half-precision models: coordinates are computed in float32 as far back as their arithmetic goes."""

import cells
import numpy as np
import onnx
import pytest
from lowering.sampling import DTYPES, nodes, operators, parsed, run

from lucid_onnx.conformance.tolerance import judge
from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import affine_grid, grid_sample

WIDE = 512
"""So wide that float16 knows a coordinate to a quarter of a pixel only."""

TEXTS = {
    "AffineGrid": """
        g (HALF[1, 1, 8, 512] x, HALF[1, 2, 3] theta) => (HALF[1, 1, 8, 512] y) <int64[4] size = {1, 1, 8, 512}> {
            grid = AffineGrid (theta, size)
            y = GridSample <padding_mode = "border"> (x, grid)
        }""",
    "base and flow": """
        g (HALF[1, 1, 8, 512] x, HALF[1, 8, 512, 2] flow, float[1, 8, 512, 2] wide) => (HALF[1, 1, 8, 512] y) {
            base = Cast <to = TO> (wide)
            grid = Add (base, flow)
            y = GridSample <padding_mode = "border"> (x, grid)
        }""",
    "Cast": """
        g (HALF[1, 1, 8, 512] x, float[1, 8, 512, 2] wide) => (HALF[1, 1, 8, 512] y) {
            grid = Cast <to = TO> (wide)
            y = GridSample <padding_mode = "border"> (x, grid)
        }""",
    "moved about": """
        g (HALF[1, 1, 8, 512] x, HALF[1, 2, 8, 512] flow, float[1, 2, 8, 512] wide, HALF[1] half)
          => (HALF[1, 1, 8, 512] y) {
            base = Cast <to = TO> (wide)
            scaled = Mul (flow, half)
            sum = Sub (base, scaled)
            bounded = Tanh (sum)
            grid = Transpose <perm = [0, 2, 3, 1]> (bounded)
            y = GridSample <padding_mode = "border"> (x, grid)
        }""",
}
HALVES = {"float16": onnx.TensorProto.FLOAT16, "bfloat16": onnx.TensorProto.BFLOAT16}


def model(name, dtype):
    return parsed(TEXTS[name].replace("HALF", dtype).replace("TO", str(HALVES[dtype])))


def feed(name, dtype):
    """Inputs in `dtype`; a noisy image, which shows where it is read."""
    rng = cells.generator(name)
    half = DTYPES[dtype]
    base = affine_grid(np.float32([[[1, 0, 0], [0, 1, 0]]]), (1, 1, 8, WIDE))
    wide = (0.83 * base + rng.uniform(-0.05, 0.05, base.shape)).astype(np.float32)
    flow = rng.uniform(-0.1, 0.1, base.shape).astype(half)
    values = {
        "theta": np.array([[[0.83, 0.01, 0.037], [0.02, 0.9, 0.1]]]).astype(half),
        "flow": flow.transpose(0, 3, 1, 2) if name == "moved about" else flow,
        "wide": wide.transpose(0, 3, 1, 2) if name == "moved about" else wide,
        "half": np.array([0.5]).astype(half),
    }
    names = {value.name for value in model(name, dtype).graph.input}
    x = rng.uniform(0, 1, (1, 1, 8, WIDE)).astype(half)
    return {"x": x, **{key: np.ascontiguousarray(value) for key, value in values.items() if key in names}}


def true_grid(name, values, dtype):
    """The grid that exact arithmetic makes of the inputs, computed in `dtype` all the way."""
    given = {key: value.astype(dtype) for key, value in values.items()}
    if name == "AffineGrid":
        return affine_grid(given["theta"], (1, 1, 8, WIDE)).astype(dtype)
    if name == "base and flow":
        return given["wide"] + given["flow"]
    if name == "Cast":
        return given["wide"]
    return np.tanh(given["wide"] - given["flow"] * given["half"]).transpose(0, 2, 3, 1)


def judged(y, name, values, dtype):
    """The result against the truth, with the error allowed that the reference makes with a float32 grid."""

    def compute(working):
        wide = np.float64 if working == np.float64 else np.float32
        grid = true_grid(name, values, wide).astype(wide)
        return grid_sample(values["x"].astype(working), grid, "bilinear", "border")

    return judge(y, compute, dtype, 1.0)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("target", TARGETS)
def test_the_grid_is_as_good_as_in_float32(target, name, dtype):
    values = feed(name, dtype)
    lowered, _ = lower(model(name, dtype), target)
    onnx.checker.check_model(lowered, full_check=True)
    (y,) = run(lowered, values)
    assert y.dtype == DTYPES[dtype]
    verdict = judged(y, name, values, dtype)
    assert verdict.ok, verdict


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", TEXTS)
def test_a_grid_in_half_precision_is_not(name, dtype):
    values = feed(name, dtype)
    half = DTYPES[dtype]
    grid = true_grid(name, values, np.float32).astype(half).astype(np.float32)
    y = grid_sample(values["x"].astype(np.float32), grid, "bilinear", "border").astype(half)
    assert not judged(y, name, values, dtype).ok


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("target", TARGETS)
def test_no_arithmetic_of_the_grid_is_left_in_half_precision(target, name, dtype):
    lowered, _ = lower(model(name, dtype), target)
    inferred = onnx.shape_inference.infer_shapes(lowered).graph
    types = {value.name: value.type.tensor_type for value in (*inferred.input, *inferred.value_info, *inferred.output)}
    halves = [
        node.op_type
        for node in nodes(lowered)
        if types[node.output[0]].elem_type == HALVES[dtype] and types[node.output[0]].shape.dim[-1].dim_value == 2
    ]
    assert halves == []


SHARED = """
    g (float16[1, 1, 8, 512] x, float16[1, 8, 512, 2] flow, float[1, 8, 512, 2] wide)
      => (float16[1, 1, 8, 512] y, float16[1, 1, 8, 512] z, float16[1, 8, 512, 2] base, float16[1, 8, 512, 2] twice) {
        [cast] base = Cast <to = 10> (wide)
        [add] grid = Add (base, flow)
        [y] y = GridSample <padding_mode = "border"> (x, grid)
        [z] z = GridSample <mode = "nearest"> (x, grid)
        [twice] twice = Add (grid, grid)
    }"""


@pytest.mark.parametrize("target", TARGETS)
def test_what_others_use_stays_as_it_was(target):
    lowered, _ = lower(parsed(SHARED), target)
    kept = [node for node in lowered.graph.node if node.name in ("cast", "add", "twice")]
    assert [[*node.input] for node in kept] == [["wide"], ["base", "flow"], ["grid", "grid"]]
    values = feed("base and flow", "float16")
    y, _, base, twice = run(lowered, values)
    expected = values["wide"].astype(np.float16)
    np.testing.assert_array_equal(base, expected)
    # onnxruntime rounds to float16 less often than NumPy does.
    np.testing.assert_allclose(twice, 2 * (expected + values["flow"]), rtol=1e-3, atol=1e-3)
    assert judged(y, "base and flow", values, "float16").ok


def test_what_two_grids_share_is_raised_once():
    lowered, _ = lower(parsed(SHARED), "portable")
    original = operators(parsed(SHARED)).count("Add")
    raised = [node for node in lowered.graph.node if node.op_type == "Add" and node.name.startswith("grid_float32")]
    assert original == 2
    assert len(raised) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_half_precision_constant_is_raised(target):
    text = """
        g (float16[1, 1, 1, 8] x, float16[1, 1, 3, 2] flow) => (float16[1, 1, 1, 3] y) <float16[2] one = {1, 2}> {
            k = Cast <to = 1> (one)
            third = Constant <value_float = 0.33> ()
            wide = Mul (k, third)
            half = CastLike (third, flow)
            moved = Add (flow, half)
            y = GridSample <padding_mode = "border"> (x, moved)
        }"""
    lowered, _ = lower(parsed(text), target)
    x = np.arange(8, dtype=np.float16).reshape(1, 1, 1, 8)
    flow = np.float16([[[[0.1, 0], [-0.7, 0], [0.4, 0]]]])
    expected = grid_sample(x.astype("f"), flow.astype("f") + np.float32(np.float16(0.33)), padding_mode="border")
    np.testing.assert_allclose(run(lowered, {"x": x, "flow": flow})[0].astype("f"), expected, rtol=1e-3, atol=1e-3)


def test_integers_on_the_way_are_not_raised():
    text = """
        g (float16[N, 1, H, W] x, float16[M, 4, 5, 2] grids, int64[N] which) => (float16[N, 1, 4, 5] y) {
            grid = Gather <axis = 0> (grids, which)
            y = GridSample (x, grid)
        }"""
    lowered, _ = lower(parsed(text), "tensorrt")
    onnx.checker.check_model(lowered, full_check=True)
    x = cells.image((2, 1, 4, 5), np.float16)
    grids = cells.generator("grids").uniform(-1, 1, (3, 4, 5, 2)).astype(np.float16)
    which = np.array([2, 0])
    expected = grid_sample(x.astype("f"), grids[which].astype("f"))
    (y,) = run(lowered, {"x": x, "grids": grids, "which": which})
    np.testing.assert_allclose(y.astype("f"), expected, rtol=2e-3, atol=2e-3)


TWICE = """
    g (bool c, float16[N, 2, H, W] x, float16[N, 3, 4, 2] flow) => (float16[N, 2, 3, 4] y) {
        grid = Add (flow, flow)
        y = If (c) <
            then_branch = then () => (float16[N, 2, 3, 4] t) { t = GridSample <padding_mode = "border"> (x, grid) },
            else_branch = other () => (float16[N, 2, 3, 4] e) { e = GridSample <mode = "nearest"> (x, grid) }>
    }"""
LATER = """
    g (bool c, float16[N, 2, H, W] x, float16[N, 3, 4, 2] flow) => (float16[N, 2, 3, 4] y, float16[N, 2, 3, 4] z) {
        grid = Add (flow, flow)
        y = If (c) <
            then_branch = then () => (float16[N, 2, 3, 4] t) { t = GridSample <padding_mode = "border"> (x, grid) },
            else_branch = other () => (float16[N, 2, 3, 4] e) {
                inner = Add (flow, flow)
                e = GridSample <mode = "nearest"> (x, inner) }>
        z = GridSample <padding_mode = "border"> (x, grid)
    }"""
FUNCTION = """
    g (bool c, float16[N, 2, H, W] x, float16[N, 3, 4, 2] flow) => (float16[N, 2, 3, 4] y) {
        y = local.Choose (c, x, flow)
    }
    <domain: "local", opset_import: ["" : 20]> Choose (c, image, points) => (y) {
        grid = Add (points, points)
        y = If (c) <
            then_branch = then () => (t) { t = GridSample <padding_mode = "border"> (image, grid) },
            else_branch = other () => (e) { e = GridSample <mode = "nearest"> (image, grid) }>
    }"""


@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("text", [TWICE, LATER, FUNCTION], ids=["both branches", "and later", "in a function"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_grid_that_branches_share_is_raised_where_all_can_read_it(target, text, condition):
    lowered, _ = lower(parsed(text, more=', "local" : 1'), target)
    onnx.checker.check_model(lowered, full_check=True)
    rng = cells.generator("branches")
    x = rng.normal(size=(2, 2, 5, 4)).astype(np.float16)
    flow = rng.uniform(-0.6, 0.6, (2, 3, 4, 2)).astype(np.float16)
    y, *others = run(lowered, {"c": np.array(condition), "x": x, "flow": flow})
    wide, grid = x.astype(np.float32), 2 * flow.astype(np.float32)
    border = grid_sample(wide, grid, padding_mode="border")
    np.testing.assert_allclose(y, border if condition else grid_sample(wide, grid, "nearest"), rtol=2e-3, atol=2e-3)
    for z in others:
        np.testing.assert_allclose(z, border, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_converted_between_has_one_dtype_a_node(dtype):
    made = parsed(f"""
        g ({dtype}[1, 2, 5, 4] x, {dtype}[1, 3, 4, 2] flow) => ({dtype}[1, 2, 3, 4] y) {{
            smooth = Gelu (x)
            bent = Gelu <approximate = "tanh"> (flow)
            grid = Add (bent, flow)
            z = GridSample <padding_mode = "border"> (smooth, grid)
            y = Gelu (z)
        }}""")
    lowered, _ = lower(made, "tensorrt")
    assert "Gelu" not in operators(lowered)
    onnx.checker.check_model(lowered, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(lowered, strict_mode=True).graph
    types = {value.name: value.type.tensor_type.elem_type for value in (*inferred.input, *inferred.value_info)}
    types |= {tensor.name: tensor.data_type for tensor in inferred.initializer}
    for node in nodes(lowered):
        if node.op_type in ("Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "GridSample"):
            assert len({types[name] for name in node.input}) == 1, node
