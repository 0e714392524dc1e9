"""Gradients through model-local functions, which are inlined where they lie on the path."""

import numpy as np
import onnx
import pytest
from gradient.checking import session
from gradient.whole import check_gradient, check_valid, operators, parse

import lucid_onnx as lo
from lucid_onnx.gradient import RULES, rule

MY = ', "my" : 1'


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape)


X = {"x": normal(3)}


def function(name, body, attributes="", opset=20, imports=""):
    return f'<domain : "my", opset_import : ["" : {opset}{imports}]> {name} {attributes} {body}'


SQUARE = function("square", "(a) => (b) { b = Mul (a, a) }")
SCALED = function(
    "scaled",
    "(a) => (b) { k = Constant <value_float : float = @factor> () d = CastLike (k, a) t = Mul (a, d) b = Mul (t, a) }",
    "<factor : float = 2.0>",
)


def test_a_function_called_twice_and_a_value_of_its_names():
    text = """calls (double[3] x) => (double[3] t) { a = my.square (x) b = Neg (a) t = my.square (b) }"""
    backward = check_gradient(parse(f"{text} {SQUARE}", imports=MY), X)
    assert operators(backward.graph)[:3] == ["Mul", "Neg", "Mul"]
    assert not backward.functions


@pytest.mark.parametrize(
    ("call", "factor"), [("my.scaled (x)", 2), ("my.scaled <factor = 3.0> (x)", 3)], ids=["default", "given"]
)
def test_attributes_of_functions(call, factor):
    model = parse(f"calls (double[3] x) => (double[3] y) {{ y = {call} }} {SCALED}", imports=MY)
    backward = check_gradient(model, X)
    constants = [a.f for node in backward.graph.node for a in node.attribute if a.name == "value_float"]
    assert constants == [factor]


def test_attributes_that_are_handed_on_to_functions_inside():
    outer = function(
        "outer",
        "(a) => (b) { c = my.scaled <factor : float = @strength> (a) d = my.scaled (a) b = Add (c, d) }",
        "<strength : float = 5.0>",
        imports=MY,
    )
    model = parse(
        f"""calls (double[3] x) => (double[3] y) {{
            p = my.outer (x) q = my.outer <strength = 7.0> (x) y = Mul (p, q) }} {outer} {SCALED}""",
        imports=MY,
    )
    backward = check_gradient(model, X)
    constants = [a.f for node in backward.graph.node for a in node.attribute if a.name == "value_float"]
    assert sorted(constants) == [2, 2, 5, 7]


def test_an_attribute_that_is_nowhere_given_is_left_out():
    norm = function("norm", "(a) => (b) { c = Softmax <axis : int = @where> (a) b = Mul (c, a) }", "<where>")
    model = parse(f"calls (double[2,3] x) => (double[2,3] y) {{ y = my.norm (x) }} {norm}", imports=MY)
    backward = check_gradient(model, {"x": normal(2, 3)})
    assert not backward.graph.node[0].attribute
    model = parse(f"calls (double[2,3] x) => (double[2,3] y) {{ y = my.norm <where = 0> (x) }} {norm}", imports=MY)
    check_gradient(model, {"x": normal(2, 3)})


@pytest.mark.parametrize("side", [True, False])
def test_a_function_with_an_if_inside(side):
    chosen = function(
        "chosen",
        """(c, a, w) => (b) {
            s = Mul (a, w)
            b = If (c) <
                then_branch = one () => (t) { u = Mul (s, a) t = Mul (u, w) },
                else_branch = two () => (e) { u = Neg (s) e = my.square (u) }> }""",
        imports=MY,
    )
    model = parse(
        f"""calls (double[3] x, double[3] u, bool c) => (double[3] s) {{
            p = my.chosen (c, x, u) q = my.chosen (c, p, x) s = Mul (p, q) }} {chosen} {SQUARE}""",
        imports=MY,
    )
    check_gradient(model, {**X, "u": normal(3), "c": np.array(side)})


def test_attributes_that_are_read_in_a_branch():
    sloped = function(
        "sloped",
        """(c, a) => (b) {
            b = If (c) <
                then_branch = one () => (t) { t = Mul (a, a) },
                else_branch = two () => (e) {
                    k = Constant <value_float : float = @slope> () d = CastLike (k, a) e = Mul (d, a) }> }""",
        "<slope : float = 0.5>",
    )
    text = "calls (double[3] x, bool c) => (double[3] y) { p = my.sloped (c, x) y = my.sloped <slope = 0.25> (c, p) }"
    feed = {**X, "c": np.array(False)}
    backward = check_gradient(parse(f"{text} {sloped}", imports=MY), feed)
    (grad,) = session(backward).run(["x_grad"], {**feed, "y_grad": np.ones(3)})
    np.testing.assert_allclose(grad, np.full(3, 0.125))


def test_a_function_called_in_a_branch_and_in_a_loop():
    text = """calls (double[3] x, bool c) => (double[3] y) {
        n = Constant <value = int64 {2}> ()
        z = Loop (n, , x) <body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o) {
            on = Identity (go) b = my.square (h) o = Neg (b) }>
        y = If (c) <
            then_branch = one () => (double[3] t) { t = my.square (z) },
            else_branch = two () => (double[3] e) { e = Neg (z) }> }"""
    for side in (True, False):
        check_gradient(parse(f"{text} {SQUARE}", imports=MY), {**X, "c": np.array(side)})


def test_inputs_and_outputs_that_are_left_out():
    both = function("both", "(a, k) => (b, d) { b = Clip (a, k) d = Mul (a, a) }")
    text = """calls (double[3] x) => (double[3] y) { p, unused = my.both (x) , q = my.both (x, ) y = Mul (p, q) }"""
    check_gradient(parse(f"{text} {both}", imports=MY), {"x": np.array([0.5, 1.5, -2.0])})


def unchecked(text, opset=20):
    """A model that ONNX's checker or onnxruntime does not take before it is inlined."""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "my" : 1]> {text}')


def test_a_function_that_hands_its_input_through():
    same = function("same", "(a) => (a, b) { b = Identity (a) }")
    backward = lo.gradient(
        unchecked(f"calls (double[3] x) => (double[3] y, double[3] z) {{ y, z = my.same (x) }} {same}")
    )
    check_valid(backward)
    feed = {"x": normal(3), "y_grad": normal(3), "z_grad": normal(3)}
    (grad,) = session(backward).run(["x_grad"], feed)
    np.testing.assert_allclose(grad, feed["y_grad"] + feed["z_grad"])


@pytest.mark.parametrize(
    ("own", "models", "body"),
    [
        # The axes of ReduceMean are an attribute before opset 18.
        (17, 20, "b = ReduceMean <axes = [0], keepdims = 1> (a)"),
        (20, 17, "k = Constant <value_ints = [0]> () b = ReduceMean (a, k)"),
        (13, 20, "b = ReduceMean <axes = [0], keepdims = 1> (a)"),
    ],
)
def test_a_function_of_another_opset(own, models, body):
    mean = function("mean", f"(a) => (b) {{ {body} }}", opset=own)
    text = f"calls (double[3] x) => (double[1] y) {{ s = Mul (x, x) y = my.mean (s) }} {mean}"
    backward = lo.gradient(unchecked(text, models))
    check_valid(backward)
    (grad,) = session(backward).run(["x_grad"], {**X, "y_grad": np.array([3.0])})
    np.testing.assert_allclose(grad, 2 * X["x"])


def test_a_function_of_another_version_of_a_domain_says_so():
    inner = function("inner", "(a) => (b) { b = my.square (a) }", imports=', "my" : 2')
    model = unchecked(f"calls (float[3] x) => (float[3] y) {{ y = my.inner (x) }} {inner} {SQUARE}")
    with pytest.raises(lo.UnsupportedError, match="function 'inner' imports version 2 of 'my' and the model version 1"):
        lo.gradient(model)


def test_a_function_off_the_path_stays():
    text = "calls (double[3] x, double[3] w) => (double[3] y) { a = my.square (w) b = my.square (x) y = Mul (a, b) }"
    model = parse(f"{text} {SQUARE}", imports=MY)
    backward = check_gradient(model, {**X, "w": normal(3)}, ["x"], second=False)
    assert backward.graph.node[0] == model.graph.node[0]
    assert [one.name for one in backward.functions] == ["square"]


def test_a_function_with_a_rule_of_ones_own_is_not_inlined():
    @rule("square", domain="my")
    def square(call, g):
        """Say ten times as much, so that it shows."""
        return call.op.Mul(g, call.op.Mul(call.x, 20.0))

    try:
        text = "calls (double[3] x) => (double[3] y) { y = my.square (x) }"
        model = parse(f"{text} {SQUARE}", imports=MY)
        backward = lo.gradient(model)
    finally:
        del RULES["my", "square"]
    onnx.checker.check_model(backward, full_check=True)
    assert backward.graph.node[0] == model.graph.node[0]
    feed = {**X, "y_grad": np.ones(3)}
    (grad,) = onnx.reference.ReferenceEvaluator(backward).run(["x_grad"], feed)
    np.testing.assert_allclose(grad, 20 * X["x"])
