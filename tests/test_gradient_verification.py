"""A gradient model that is right passes, one that is wrong does not, and what cannot be judged is said."""

import json

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import lucid_onnx as lo
from lucid_onnx.gradient.registry import RULES, Rule
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError
from lucid_onnx.verification import verify_gradient, witness
from lucid_onnx.verification.slopes import difference


def parsed(text, opset=20, more=""):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}{more}]>\n{text}')


def dense(dtype="float"):
    model = parsed(f"""
        dense ({dtype}[N, 3] x) => ({dtype}[N, 2] y)
        {{ h = Gemm (x, w, b) r = Relu (h) y = Mul (r, h) }}""")
    parameters = {"w": [[0.5, -1], [0.25, 2], [-0.75, 1]], "b": [0.5, 0.25]}
    numpy_dtype = {"float": np.float32, "double": np.float64}.get(dtype, np.float16)
    arrays = {name: np.array(values, numpy_dtype) for name, values in parameters.items()}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return model


def warp(mode="linear", dtype="float", rank=4):
    shapes = {4: ("N, 2, 6, 7", "N, 5, 4, 2", "N, 2, 5, 4"), 5: ("N, 2, 4, 5, 6", "N, 3, 4, 2, 3", "N, 2, 3, 4, 2")}
    x, grid, y = shapes[rank]
    return parsed(f"""
        warp ({dtype}[{x}] x, {dtype}[{grid}] grid) => ({dtype}[{y}] y)
        {{ y = GridSample <mode = "{mode}", padding_mode = "border"> (x, grid) }}""")


CONV = """
    net (float[N, 2, 9, 8] x, float[4, 2, 3, 3] w) => (float[N, 4, 3, 4] y)
    { c = Conv <pads = [0, 1, 0, 1]> (x, w) r = Relu (c) y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r) }"""
BRANCHES = """
    m (float[3] x, bool yes) => (float[3] y) {
        y = If (yes) <
            then_branch = a () => (float[3] p) { p = Mul (x, x) },
            else_branch = b () => (float[3] q) <float[1] two = {2}> { q = Mul (x, two) }>
    }"""
TRANSFORMER = """
    stn (float[2, 3, 8, 9] x, float[2, 2, 3] theta) => (float[2, 3, 6, 7] y) <int64[4] size = {2, 3, 6, 7}>
    { grid = AffineGrid (theta, size) y = GridSample (x, grid) }"""
FUNCTION = """
    m (float[4] x) => (float[4] y) { y = own.Twice <k = 3.0> (x) }
    <domain: "own", opset_import: ["" : 20]> Twice <k> (a) => (b)
    { c = Constant <value_float: float = @k> () b = Mul (a, c) }"""
RESIZED = """
    m (float[1, 1, 4, 4] x) => (float[1, 1, H, W] y) <float[4] scales = {1, 1, 2, 2}>
    { s = Mul (x, x) y = Resize <mode = "linear"> (s, , scales) }"""

EXACT = "float64 in onnxruntime"
EVALUATED = "float64 in ONNX's reference evaluator"
MODELS = {
    "dense": (dense(), EXACT),
    "half": (dense("float16"), EXACT),
    "double": (dense("double"), EXACT),
    "bilinear": (warp(), EXACT),
    "bicubic": (warp("cubic"), EXACT),
    "volume": (warp(rank=5), EXACT),
    "nearest": (warp("nearest"), EXACT),
    "half warp": (warp(dtype="float16"), EXACT),
    "transformer": (parsed(TRANSFORMER), EXACT),
    "branches": (parsed(BRANCHES), EXACT),
    "function": (parsed(FUNCTION, more=', "own" : 1'), EXACT),
    "convolution": (parsed(CONV), EVALUATED),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_right_gradient_passes(name):
    model, slopes = MODELS[name]
    result = verify_gradient(model, lo.gradient(model))
    assert (result.error, result.notes, result.slopes) == ("", [], slopes)
    assert result.ok, result.rows


def wrong(model, name, factor=1.01):
    """The gradient of a model with one of its gradients wrong by a factor."""
    gradient = lo.gradient(model)
    (node,) = [node for node in gradient.graph.node if f"{name}_grad" in node.output]
    node.output[list(node.output).index(f"{name}_grad")] = "right"
    dtype = {value.name: value.type.tensor_type.elem_type for value in gradient.graph.output}[f"{name}_grad"]
    array = np.array(factor, onnx.helper.tensor_dtype_to_np_dtype(dtype))
    gradient.graph.initializer.append(numpy_helper.from_array(array, "factor"))
    gradient.graph.node.append(onnx.helper.make_node("Mul", ["right", "factor"], [f"{name}_grad"]))
    return gradient


WRONG = [("dense", "x"), ("dense", "w"), ("dense", "b"), ("bilinear", "grid"), ("convolution", "w"), ("double", "w")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("model", "name"), WRONG)
def test_a_factor_of_1_01_in_one_gradient_is_found(model, name, seed):
    original = MODELS[model][0]
    result = verify_gradient(original, wrong(original, name), seed=seed)
    assert not result.ok
    assert {row.name for row in result.rows if not row.ok} == {name}


@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_gradient_that_is_missing_or_not_finite_is_found(factor):
    assert not verify_gradient(dense(), wrong(dense(), "w", factor)).ok


def test_a_wrong_gradient_of_half_precision_is_found():
    assert not verify_gradient(dense("float16"), wrong(dense("float16"), "w", 1.5)).ok


@pytest.fixture
def stn(tmp_path):
    return lo.export("stn", tmp_path / "stn.onnx")


PARTS = ["conv1.weight", "transformer.localization.conv2.weight", "transformer.localization.fc2.bias"]


def test_a_spatial_transformer_at_the_identity_is_judged_beside_it(stn):
    # Its samples lie on the centres of pixels, where every one has a kink.
    result = verify_gradient(stn, lo.gradient(stn, PARTS, "logits"), PARTS, "logits")
    assert result.ok, result.rows
    assert result.notes == []
    assert {(row.name, row.where) for row in result.rows} == {*zip(PARTS, ("made", "moved", "moved"), strict=True)}
    assert result.kinks > 0


def test_a_wrong_rule_is_found_in_a_spatial_transformer(stn, monkeypatch):
    right = RULES["", "Gemm"]

    def gemm(call, g):
        found = list(right.function(call, g))
        return [*found[:1], found[1] if found[1] is None else call.op.Mul(found[1], call.number(1.01)), *found[2:]]

    monkeypatch.setitem(RULES, ("", "Gemm"), Rule(gemm, right.broadcast))
    result = verify_gradient(stn, lo.gradient(stn, ["fc1.weight", "fc1.bias"]), ["fc1.weight", "fc1.bias"])
    assert {row.name for row in result.rows if not row.ok} == {"fc1.weight"}


def test_float32_stays_where_an_operator_has_nothing_else():
    model = parsed(RESIZED)
    result = verify_gradient(model, lo.gradient(model, "x"), "x")
    assert (result.ok, result.slopes, result.notes) == (True, EVALUATED, [])


LINES = {
    "smooth": (lambda t: np.array([np.sin(1 + t)]), True),
    "a kink at the point": (lambda t: np.array([np.abs(t)]), False),
    "a kink beside it": (lambda t: np.array([np.abs(t - 4e-8)]), False),
    "a jump": (lambda t: np.array([float(t > 0)]), False),
    "not finite": (lambda t: np.array([np.inf if t > 0 else 0]), False),
    "another shape": (lambda t: np.ones(2 if t > 0 else 1), False),
}


@pytest.mark.parametrize("name", LINES)
def test_a_difference_knows_whether_it_is_a_slope(name):
    line, is_slope = LINES[name]
    found = difference(lambda t: {"y": line(t)}, {"y": np.array(2.0)}, 1e-7)
    assert (found.doubt < 1e-6) == is_slope
    if is_slope:
        assert abs(found.slope - 2 * np.cos(1)) < 1e-6


def test_inputs_at_a_kink_are_moved():
    model = parsed("m (float[4] x) => (float[4] y) <float one = {1}> { y = Relu (x) }")
    result = verify_gradient(model, lo.gradient(model, "x"), "x", feeds={"x": np.zeros(4, np.float32)})
    assert result.ok
    assert {row.where for row in result.rows} == {"moved"}


def test_what_float64_does_not_run_is_differenced_as_it_is(monkeypatch):
    def refuse(*_):
        raise RuntimeError("nothing here\nsecond line")

    monkeypatch.setattr(witness, "double", refuse)
    result = verify_gradient(dense(), lo.gradient(dense()))
    assert result.ok
    assert result.slopes == "the model's own dtypes in onnxruntime"
    assert len(result.notes) == 1
    assert f"{EXACT}: nothing here; {EVALUATED}: nothing here" in result.notes[0]
    assert not verify_gradient(dense(), wrong(dense(), "w", 2.0)).ok


def test_what_takes_too_long_is_differenced_as_it_is(monkeypatch):
    monkeypatch.setattr("lucid_onnx.verification.comparison.SECONDS", 0.0)
    result = verify_gradient(dense(), lo.gradient(dense()))
    assert "would take" in result.notes[0]
    assert len(result.rows) == 3


def test_cancelled_gradients_pass():
    # What is added to all of a softmax changes nothing; its gradient in float32 is rounding alone.
    model = parsed("""
        m (float[8, 50] x, float[1] b) => (float[8, 50] y)
        { s = Add (x, b) y = Softmax <axis = -1> (s) }""")
    result = verify_gradient(model, lo.gradient(model))
    assert result.ok, result.rows


X = np.ones((2, 3), np.float32)


def test_given_inputs_are_taken():
    result = verify_gradient(dense(), lo.gradient(dense()), feeds={"x": X})
    assert result.ok
    assert {row.where for row in result.rows} == {"given"}


@pytest.mark.parametrize(
    ("feeds", "error"),
    [
        ({}, "input 'x' is missing"),
        ({"x": X, "z": X}, "no input 'z'"),
        ({"x": X[:, :2]}, r"'x' must have shape \(N, 3\), got \(2, 2\)"),
        ({"x": X.astype(np.float64)}, "'x' must be float32, got float64"),
    ],
)
def test_given_inputs_that_do_not_fit_are_named(feeds, error):
    with pytest.raises(ArgumentError, match=error):
        verify_gradient(dense(), lo.gradient(dense()), feeds=feeds)


@pytest.mark.parametrize("names", [("nothing", None), (None, "nothing"), (["x", "nothing"], "y")])
def test_unknown_names_are_an_error(names):
    with pytest.raises(ArgumentError, match=r"verify: there is no .* 'nothing'"):
        verify_gradient(dense(), lo.gradient(dense()), *names)


def test_an_input_for_which_nothing_can_be_made_must_be_given():
    model = parsed("m (float x) => (float y) { y = Mul (x, x) }")
    gradient = lo.gradient(model)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match=r"input 'x'.*give feeds"):
        verify_gradient(model, gradient)


@pytest.mark.parametrize(
    ("gradient", "error"),
    [
        (lambda: dense(), "other inputs than those of the original and y_grad"),
        (lambda: lo.gradient(dense(), "x"), "other outputs than those of the original and x_grad, w_grad, b_grad"),
        (lambda: lo.gradient(warp()), "other inputs than those of the original"),
    ],
)
def test_what_is_no_gradient_of_the_model_is_not_ok(gradient, error):
    result = verify_gradient(dense(), gradient())
    assert not result.ok
    assert error in result.error


def test_a_gradient_model_that_does_not_run_is_not_ok():
    gradient = lo.gradient(dense())
    gradient.graph.node[0].op_type = "Unheard"
    assert "refuses the model" in verify_gradient(dense(), gradient).error


def test_a_gradient_model_of_other_values_is_not_ok():
    gradient = lo.gradient(dense())
    weight = next(tensor for tensor in gradient.graph.initializer if tensor.name == "w")
    weight.CopyFrom(numpy_helper.from_array(np.ones((3, 2), np.float32), "w"))
    result = verify_gradient(dense(), gradient)
    assert not result.ok
    assert "the output 'y' is not that of the gradient model" in result.error


def test_external_data_is_found(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(dense(), path, save_as_external_data=True, location="model.data", size_threshold=0)
    assert verify_gradient(path, lo.gradient(path)).ok


def test_no_model_and_no_feed_is_changed():
    model, gradient, feeds = dense(), lo.gradient(dense()), {"x": X.copy()}
    before = [model.SerializeToString(), gradient.SerializeToString(), feeds["x"].tobytes()]
    verify_gradient(model, gradient, feeds=feeds)
    assert [model.SerializeToString(), gradient.SerializeToString(), feeds["x"].tobytes()] == before


def test_the_result_is_a_table_and_json():
    result = verify_gradient(dense(), lo.gradient(dense(), ["x", "w"]), ["x", "w"])
    header, rows = result.table()
    assert {len(row) for row in rows} == {len(header)}
    assert [row[0] for row in rows] == ["x"] * 3 + ["w"] * 3
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False))["ok"] is True


def test_the_same_seed_gives_the_same_rows():
    results = [verify_gradient(dense(), lo.gradient(dense()), seed=seed).rows for seed in (1, 1, 2)]
    assert results[0] == results[1] != results[2]
