"""What a gradient does with the model around it: names, what is asked for, what stays, and what is refused."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from gradient.checking import session
from gradient.whole import check_gradient, check_valid, gradients, operators, parse

import lucid_onnx as lo
from lucid_onnx.gradient import RULES, rule


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


X, Y = {"x": normal(2, 3)}, {"y": normal(3) + 2}
BOTH = {**X, **Y}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a = Mul (x, y) z = Add (a, x) w = Mul (a, a)", id="several_outputs"),
        pytest.param("a = Mul (x, y) b = Mul (a, a) c = Mul (a, b) z = Mul (c, b) w = Identity (z)", id="fan_out"),
        pytest.param("z = Mul (x, x) w = Mul (z, y)", id="an_output_on_the_way_to_another"),
        pytest.param("z = Mul (x, y) a = Mul (x, y) w = Mul (a, z)", id="the_same_twice"),
    ],
)
def test_graphs(body):
    check_gradient(parse(f"g (double[2,3] x, double[3] y) => (double[2,3] z, double[2,3] w) {{ {body} }}"), BOTH)


def test_initializers_that_several_nodes_share_have_one_gradient():
    text = """g (double[2,3] x) => (double[2,3] z) <double[3] k = {1.0, 2.0, 3.0}> {
        a = Mul (x, k) b = Add (a, k) z = Mul (b, a) }"""
    _, seeds, results = gradients(parse(text), X, ["x", "k"], ["z"])
    x, k, g = X["x"], np.array([1.0, 2.0, 3.0]), seeds["z_grad"]
    np.testing.assert_allclose(results["k_grad"], np.sum(g * (2 * k * x**2 + 2 * x * k), axis=0))
    np.testing.assert_allclose(results["x_grad"], g * (2 * k**2 * x + k**2))


@pytest.mark.parametrize("ir_version", [3, 10])
def test_an_initializer_that_is_an_input(ir_version):
    text = "g (double[2,3] x, double[3] k) => (double[2,3] z) <double[3] k = {1.0, 2.0, 3.0}> { z = Mul (x, k) }"
    model = parse(text, 16 if ir_version == 3 else 20, ir_version=ir_version)
    assert len(model.graph.initializer) == 1
    backward = lo.gradient(model)
    check_valid(backward)
    assert [value.name for value in backward.graph.output] == ["z", "x_grad", "k_grad"]
    seed = normal(2, 3)
    default, given = (
        session(backward).run(["k_grad", "x_grad"], {**X, "z_grad": seed, **more})
        for more in ({}, {"k": np.full(3, 5.0)})
    )
    np.testing.assert_allclose(default[0], np.sum(seed * X["x"], axis=0))
    np.testing.assert_allclose(default[1], seed * [1.0, 2.0, 3.0])
    np.testing.assert_allclose(given[1], seed * 5)


def test_an_output_that_is_an_input():
    model = parse("g (double[2,3] x) => (double[2,3] x, double[2,3] z) { z = Mul (x, x) }")
    backward = lo.gradient(model)
    check_valid(backward)
    seeds = {"x_grad": normal(2, 3), "z_grad": normal(2, 3)}
    names = [value.name for value in backward.graph.output]
    assert names == ["x", "z", "x_grad_1"]
    (grad,) = session(backward).run(["x_grad_1"], {**X, **seeds})
    np.testing.assert_allclose(grad, seeds["x_grad"] + 2 * X["x"] * seeds["z_grad"])


def test_a_rank_that_exporters_compute():
    text = """g (double[N,3] x) => (double[1,3] z) <int64[1] five = {5}, int64[1] three = {3}, int64[1] nought = {0}> {
        two = Mod (five, three)
        shape = Shape (x) whole = Slice (shape, nought, two)
        a = Reshape (x, whole) b = Gather (a, nought) z = Mul (b, b) }"""
    model = parse(text)
    before = model.SerializeToString()
    check_gradient(model, X)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("shape", ["2,3", "N,3"])
def test_an_input_that_does_not_reach_has_zeros_for_a_gradient(shape):
    model = parse(f"g (double[{shape}] x, double[3] y) => (double[3] z) {{ z = Mul (y, y) a = Mul (x, y) }}")
    _, _, results = gradients(model, BOTH, ["x"], ["z"])
    np.testing.assert_array_equal(results["x_grad"], np.zeros((2, 3)))


@pytest.mark.parametrize("empty", [(0, 3), (2, 0)])
def test_zeros_of_an_empty_shape(empty):
    model = parse("g (double[N,M] x, double[3] y) => (double[3] z) { z = Mul (y, y) }")
    _, _, results = gradients(model, {"x": np.zeros(empty), **Y}, ["x"], ["z"])
    assert results["x_grad"].shape == empty


PRODUCT = "g (double[2,3] x, double[3] y, int64[2] n) => (double[2,3] z, int64[2] m) { z = Mul (x, y) m = Neg (n) }"


def added(model, *arguments):
    """The inputs and outputs that a gradient adds."""
    backward = lo.gradient(model, *arguments)
    old = {value.name for value in (*model.graph.input, *model.graph.output)}
    return [
        value.name for part in (backward.graph.input, backward.graph.output) for value in part if value.name not in old
    ]


def test_by_default_all_floats_are_differentiated_and_for():
    assert added(parse(PRODUCT)) == ["z_grad", "x_grad", "y_grad"]


def test_wrt_and_outputs_may_be_one_name():
    assert added(parse(PRODUCT), "y", "z") == ["z_grad", "y_grad"]


def test_wrt_has_an_order_and_names_that_come_twice_count_once():
    assert added(parse(PRODUCT), ["y", "x", "y"], ["z", "z"]) == ["z_grad", "y_grad", "x_grad"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["q"],), lo.ArgumentError, "^gradient: wrt: .*'q'.*x, y, n"),
        (("z",), lo.ArgumentError, "^gradient: wrt: .*'z'"),
        (("x", "x"), lo.ArgumentError, "^gradient: outputs: .*'x'.*z, m"),
        (("n",), lo.DtypeError, "^gradient: wrt: 'n' is of int64; only floats have a gradient$"),
        (("x", "m"), lo.DtypeError, "^gradient: outputs: 'm' is of int64; only floats have a gradient$"),
    ],
)
def test_what_is_not_there_or_no_float_is_refused_in_one_line(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        lo.gradient(parse(PRODUCT), *arguments)
    assert "\n" not in str(caught.value)


STAYS = """g (double[2,3] x, double[3] y, bool c) => (double[2,3] z, double[3] u)
    <double[3] k = {1.0, 2.0, 3.0}, double[3] unused = {1.0, 2.0, 3.0}> {
    [first] a = Mul (x, k)
    b = Neg (y)
    ["a / b: c"] d = Mul (a, b)
    one = Constant <value = double {1.0}> ()
    u = If (c) <
        then_branch = t () => (double[3] p) { p = Mul (y, k) },
        else_branch = e () => (double[3] q) { q = Neg (y) }>
    z = Add (d, one)
    dead = Mul (z, z) }"""


def test_the_primal_stays_byte_for_byte():
    model = parse(STAYS)
    model.doc_string, model.graph.doc_string, model.producer_name = "a model", "a graph", "someone"
    model.graph.node[0].doc_string = "a node"
    backward = lo.gradient(model)
    nodes = list(backward.graph.node)[: len(model.graph.node)]
    assert [node.SerializeToString() for node in nodes] == [node.SerializeToString() for node in model.graph.node]
    for field in ("input", "output", "initializer"):
        old, new = getattr(model.graph, field), getattr(backward.graph, field)
        assert list(new)[: len(old)] == list(old)
    assert (backward.doc_string, backward.graph.doc_string) == ("a model", "a graph")
    check_gradient(model, {**BOTH, "c": np.array(True)})


def test_names_that_are_taken_get_a_number():
    text = """g (double[2,3] x, double[3] z_grad) => (double[2,3] z, double[2,3] x_grad) {
        x_grad = Mul (x, z_grad) [x_grad] z = Mul (x_grad, x) }"""
    model = parse(text)
    assert added(model) == ["z_grad_1", "x_grad_grad", "x_grad_1", "z_grad_grad"]
    seeds = {"z_grad_1": normal(2, 3), "x_grad_grad": np.zeros((2, 3))}
    backward = lo.gradient(model)
    check_valid(backward)
    feed = {**X, "z_grad": normal(3), **seeds}
    (grad,) = session(backward).run(["x_grad_1"], feed)
    np.testing.assert_allclose(grad, 2 * X["x"] * feed["z_grad"] * feed["z_grad_1"])


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ü:0", "x_grad", "Mul_grad/Mul", 'quo"te'])
def test_names_of_nodes_may_be_any(name):
    model = parse("g (double[2,3] x, double[3] y) => (double[2,3] z) { a = Mul (x, y) b = Mul (a, x) z = Add (a, b) }")
    for node in model.graph.node[:1] if name else model.graph.node:
        node.name = name
    check_gradient(model, BOTH)


def test_names_of_values_may_be_those_that_are_made():
    text = "g (double[2,3] x, double[3] y) => (double[2,3] z) { a = Mul (x, y) b = Mul (a, x) z = Add (a, b) }"
    model = parse(text)
    new = [name for node in lo.gradient(model).graph.node[3:] for name in node.output]
    for value, name in zip(("a", "b"), new, strict=False):
        for node in model.graph.node:
            node.input[:] = [name if old == value else old for old in node.input]
            node.output[:] = [name if old == value else old for old in node.output]
    check_gradient(model, BOTH)


def test_only_what_is_needed_is_built():
    text = "g (double[3] x, double[3] y) => (double[3] z) { a = Mul (x, y) b = Mul (a, y) z = Mul (b, x) d = Exp (z) }"
    model = parse(text)
    counts = {wrt: operators(lo.gradient(model, wrt).graph)[4:] for wrt in ("x", "y")}
    # dz dz/dx = dz b + dz x y y, and dz x (a + x y) for y.
    assert sorted(counts["x"]) == ["Add", "Mul", "Mul", "Mul", "Mul"]
    assert sorted(counts["y"]) == ["Add", "Mul", "Mul", "Mul", "Mul"]
    assert operators(lo.gradient(parse("g (float[3] x) => (float[3] z) { z = Neg (x) }"), "x").graph) == ["Neg", "Neg"]


@pytest.mark.parametrize(
    "text",
    [
        "g (double[2,3] x, bool c) => (double[2,3] z) <double[3] k = {1.0, 2.0, 3.0}> { z = Mul (x, k) a = Not (c) }",
        """g (double[2,3] x, bool c) => (double[2,3] z) { z = If (c) <
            then_branch = t () => (double[2,3] p) <double[3] k = {1.0, 2.0, 3.0}> { p = Mul (x, k) },
            else_branch = e () => (double[2,3] q) <double[3] k = {4.0, 5.0, 6.0}> { q = Mul (x, k) }> }""",
    ],
    ids=["graph", "branches"],
)
def test_external_data_stays_external(tmp_path, text):
    path, written = tmp_path / "model.onnx", tmp_path / "gradient.onnx"
    model = parse(text)
    for tensor in parameters(model.graph):
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    backward = lo.gradient(path, "x")
    assert {tensor.data_location for tensor in parameters(backward.graph)} == {onnx.TensorProto.EXTERNAL}
    written.write_bytes(backward.SerializeToString())
    seed = normal(2, 3)
    (grad,) = ort.InferenceSession(written).run(["x_grad"], {**X, "c": np.array(True), "z_grad": seed})
    np.testing.assert_allclose(grad, seed * [1.0, 2.0, 3.0])


def parameters(graph):
    """The initializers of doubles in a graph and in its subgraphs."""
    found = [tensor for tensor in graph.initializer if tensor.data_type == onnx.TensorProto.DOUBLE]
    for node in graph.node:
        for attribute in node.attribute:
            found += parameters(attribute.g)
    return found


LEFT_OUT = {
    "MaxPool": "g (double[1,2,6] x) => (double[1,2,5] y) { y, i = MaxPool <kernel_shape = [2]> (x) }",
    "SoftmaxCrossEntropyLoss": """g (double[2,6] x) => (double y) <int64[2] t = {1, 4}> {
        y, i = SoftmaxCrossEntropyLoss (x, t) }""",
    "LayerNormalization": """g (double[2,6] x) => (double[2,6] y) <double[6] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> {
        y, i, d = LayerNormalization (x, w) }""",
}


@pytest.mark.parametrize("operator", LEFT_OUT)
def test_an_output_that_is_left_out(operator):
    model = parse(LEFT_OUT[operator])
    model.graph.node[0].output[1] = ""
    check_gradient(model, {"x": normal(*([1, 2, 6] if operator == "MaxPool" else [2, 6]))})


@pytest.mark.parametrize("outputs", [("", "y"), ("y", "")])
def test_a_part_that_is_left_out_is_refused(outputs):
    model = parse("g (double[6] x) => (double[3] y) { y, z = Split <axis = 0, num_outputs = 2> (x) }")
    model.graph.node[0].output[:] = outputs
    with pytest.raises(lo.UnsupportedError, match=r"Split node .* left out; give it a name"):
        lo.gradient(model)


def test_an_operator_without_a_rule_is_named_with_how_to_add_one():
    model = parse("g (double[3] x) => (double[3] y) { [odd] y = my.Odd (x) }".replace("my.Odd", "Identity"))
    model.graph.node[0].op_type, model.graph.node[0].domain = "Odd", "my"
    model.opset_import.add(domain="my", version=1)
    message = (
        r"^gradient: my::Odd node 'odd': Odd has no gradient rule; "
        r'add one with lucid_onnx.gradient.rule\("Odd", domain="my"\), or leave'
    )
    with pytest.raises(lo.UnsupportedError, match=message):
        lo.gradient(model)
    assert operators(lo.gradient(model, [], []).graph) == ["Odd"]


def test_a_rule_of_ones_own():
    model = parse("g (double[3] x) => (double[3] y) { a = Mul (x, x) y = Identity (a) }")
    model.graph.node[1].op_type, model.graph.node[1].domain = "Odd", "my"
    model.opset_import.add(domain="my", version=1)

    @rule("Odd", domain="my")
    def odd(call, g):
        """Have y = 3 x, so that dx = 3 g."""
        return call.op.Mul(g, 3.0)

    try:
        backward = lo.gradient(model)
    finally:
        del RULES["my", "Odd"]
    assert operators(backward.graph)[:2] == ["Mul", "Odd"]
    onnx.checker.check_model(backward)


def test_no_gradient_is_asked_for_what_has_none():
    model = parse("g (double[3] x, int64[1] n) => (double[M] y) { y = Expand (x, n) }")
    assert added(model) == ["y_grad", "x_grad"]
