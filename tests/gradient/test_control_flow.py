"""Gradients through If, and through Loop and Scan that are unrolled."""

import re

import numpy as np
import onnx
import pytest
from gradient.whole import check_gradient, gradients, operators, parse

import lucid_onnx as lo


def normal(*shape):
    return np.random.default_rng(sum(shape) + len(shape)).standard_normal(shape)


X = {"x": normal(3)}
BOTH = {**X, "w": normal(3) + 2}
SIDES = pytest.mark.parametrize("side", [True, False], ids=["then", "else"])


def branches(then, other, inputs="double[3] x, double[3] w, bool c", outputs="double[3] z", before="", after=""):
    """A model of an If whose branches are given as nodes that make y."""
    return parse(f"""branching ({inputs}) => ({outputs}) {{
        {before}
        [choice] y = If (c) <
            then_branch = one () => (double[3] t) {{ {then} }},
            else_branch = two () => (double[3] e) {{ {other} }}>
        {after or "z = Mul (y, x)"} }}""")


@SIDES
@pytest.mark.parametrize(
    ("then", "other"),
    [
        pytest.param("t = Mul (x, w)", "e = Sub (x, w)", id="both"),
        pytest.param("t = Mul (x, w)", "e = Mul (w, w)", id="one_input_each"),
        pytest.param("t = Mul (x, x)", "e = Constant <value = double[3] {1.0, 2.0, 3.0}> ()", id="one_is_constant"),
        pytest.param("t = Identity (x)", "e = Identity (w)", id="captured"),
        pytest.param("a = Mul (x, w) t = Mul (a, a)", "a = Sub (x, w) e = Mul (a, w)", id="equal_names"),
        pytest.param("k = Mul (x, x) t = Add (k, k)", "k = Neg (x) l = Mul (k, w) e = Mul (l, k)", id="fan_out"),
    ],
)
def test_branches(then, other, side):
    check_gradient(branches(then, other), {**BOTH, "c": np.array(side)})


@SIDES
def test_a_branch_that_hands_out_a_value_from_around_it(side):
    text = """one (double[3] x, bool c) => (double[3] z) {
        a = Mul (x, x)
        y = If (c) <
            then_branch = one () => (double[3] t) { t = Neg (a) },
            else_branch = two () => (double[3] e) { e = Neg (a) }>
        z = Mul (y, x) }"""
    model = parse(text)
    # Which is not what onnxruntime takes, but what ONNX allows.
    branch = next(a.g for a in model.graph.node[1].attribute if a.name == "else_branch")
    del branch.node[:]
    branch.output[0].name = "a"
    backward = lo.gradient(model)
    runner = onnx.reference.ReferenceEvaluator(backward)
    x, seed = normal(3), normal(3)
    (grad,) = runner.run(["x_grad"], {"x": x, "c": np.array(side), "z_grad": seed})
    np.testing.assert_allclose(grad, seed * 3 * x**2 * (-1 if side else 1))


@SIDES
def test_initializers_of_branches(side):
    text = """one (double[3] x, bool c) => (double[3] z) {
        y = If (c) <
            then_branch = one () => (double[3] t) <double[3] k = {1.0, 2.0, 3.0}> { a = Mul (x, k) t = Mul (a, x) },
            else_branch = two () => (double[3] e) <double[3] k = {4.0, 5.0, 6.0}> { e = Mul (x, k) }>
        z = Mul (y, x) }"""
    backward = check_gradient(parse(text), {**X, "c": np.array(side)})
    primal = next(a.g for a in backward.graph.node[0].attribute if a.name == "then_branch")
    assert [tensor.name for tensor in primal.initializer] == ["k"]


@SIDES
@pytest.mark.parametrize("inner", [True, False], ids=["inner_then", "inner_else"])
def test_nested_branches(side, inner):
    text = """nested (double[3] x, double[3] w, bool c, bool d) => (double[3] z) {
        a = Mul (x, w)
        y = If (c) <
            then_branch = one () => (double[3] t) {
                b = Mul (a, x)
                t = If (d) <
                    then_branch = three () => (double[3] u) { p = Mul (b, w) u = Mul (p, a) },
                    else_branch = four () => (double[3] v) { v = Mul (b, b) }> },
            else_branch = two () => (double[3] e) {
                b = Neg (x)
                e = If (d) <
                    then_branch = five () => (double[3] u) { u = Mul (b, w) },
                    else_branch = six () => (double[3] v) { v = Identity (w) }> }>
        z = Mul (y, x) }"""
    check_gradient(parse(text), {**BOTH, "c": np.array(side), "d": np.array(inner)})


@SIDES
@pytest.mark.parametrize("used", ["z = Mul (p, q)", "z = Mul (q, x)", "z = Mul (p, x)"], ids=["both", "last", "first"])
def test_several_outputs(side, used):
    text = f"""several (double[3] x, double[3] w, bool c) => (double[3] z, int64[1] n) {{
        p, n, q = If (c) <
            then_branch = one () => (double[3] p1, int64[1] n1, double[3] q1) {{
                p1 = Mul (x, w) n1 = Shape (x) q1 = Mul (p1, x) }},
            else_branch = two () => (double[3] p2, int64[1] n2, double[3] q2) {{
                p2 = Identity (x) n2 = Constant <value = int64[1] {{7}}> () q2 = Mul (w, w) }}>
        {used} }}"""
    check_gradient(parse(text), {**BOTH, "c": np.array(side)})


@SIDES
def test_one_value_that_is_several_outputs_of_a_branch(side):
    text = """twice (double[3] x, bool c) => (double[3] z) {
        p, q = If (c) <
            then_branch = one () => (double[3] a, double[3] b) { a = Mul (x, x) b = Identity (a) },
            else_branch = two () => (double[3] d, double[3] e) { d = Neg (x) e = Neg (d) }>
        z = Mul (p, q) }"""
    check_gradient(parse(text), {**X, "c": np.array(side)})


@SIDES
def test_branches_of_different_shapes(side):
    text = """shapes (double[N] x, bool c) => (double[M] y) {
        one = Constant <value_ints = [1]> () most = Constant <value_ints = [100]> ()
        y = If (c) <
            then_branch = one () => (double[M] t) { s = Slice (x, one, most) t = Mul (s, s) },
            else_branch = two () => (double[M] e) { e = Mul (x, x) }> }"""
    check_gradient(parse(text), {**X, "c": np.array(side)})


@SIDES
def test_a_rank_that_follows_from_constants_around_a_branch(side):
    text = """g (double[N] x, bool c) => (double[M,K] z) <int64[1] axes = {0}, int64[2] twice = {0, 0}> { z = If (c) <
        then_branch = t () => (double[P,Q] p) { a = Unsqueeze (x, axes) p = Gather (a, twice) },
        else_branch = e () => (double[R,S] p) { b = Mul (x, x) a = Unsqueeze (b, axes) p = Gather (a, twice) }> }"""
    check_gradient(parse(text), {**X, "c": np.array(side)})


def test_half_precision_in_branches_is_rounded_once():
    text = """half (float16[3] x, bool c) => (float16[3] z) {
        y = If (c) <
            then_branch = one () => (float16[3] t) { t = Mul (x, x) },
            else_branch = two () => (float16[3] e) { e = Neg (x) }>
        z = Mul (y, x) }"""
    x = normal(3).astype(np.float16)
    _, seeds, results = gradients(parse(text), {"x": x, "c": np.array(True)}, ["x"], ["z"])
    exact = 3 * x.astype(float) ** 2 * seeds["z_grad"].astype(float)
    np.testing.assert_allclose(results["x_grad"], exact, rtol=2e-3)


def test_an_if_that_nothing_depends_on_stays_alone():
    model = branches("t = Neg (w)", "e = Mul (w, w)")
    backward = lo.gradient(model, "x")
    assert operators(backward.graph).count("If") == 1


LOOP = """loop (double[3] x, double[3] w{inputs}) => (double[3] y, double[N,3] ys) {{
    {before}
    [turns] y, ys = Loop (n, {condition}) <
        body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o, double[3] s) {{ {body} }}> }}"""
"""The states come after the condition."""


def loop(body, before="n = Constant <value = int64 {3}> ()", condition=", x", inputs=""):
    return parse(LOOP.format(body=body, before=before, condition=condition, inputs=inputs))


BODY = "on = Identity (go) p = Mul (h, w) o = Add (p, x) s = Mul (o, h)"


@pytest.mark.parametrize(
    ("before", "condition"),
    [
        pytest.param("n = Constant <value = int64 {3}> ()", "", id="no_condition"),
        pytest.param("n = Constant <value_int = 3> () t = Constant <value = bool {1}> ()", "t", id="condition_true"),
        pytest.param("n = Constant <value = int64[1] {1}> ()", "", id="once"),
        pytest.param("m = Constant <value = int64 {64}> () n = Identity (m)", "", id="as_often_as_may_be"),
        pytest.param("n = Constant <value = int64 {0}> ()", "", id="never"),
        pytest.param("n = Constant <value = int64 {-2}> ()", "", id="less_than_never"),
        pytest.param(
            "a = Shape (x) z = Constant <value = int64 {0}> () m = Gather (a, z) n = Add (m, m)", "", id="twice_an_axis"
        ),
        pytest.param("a = Shape <start = -1> (x) n = Squeeze (a)", "", id="the_last_axis"),
        pytest.param(
            "n = Constant <value = int64 {3}> () t = Constant <value = bool {0}> ()", "t", id="condition_false"
        ),
    ],
)
def test_loops(before, condition):
    model = loop(BODY, before, f"{condition}, x")
    backward = check_gradient(model, {"x": X["x"], "w": normal(3) / 4}, second="64" not in before)
    assert "Loop" not in operators(backward.graph)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("on = Constant <value = bool {1}> () o = Mul (h, w) s = Neg (h)", id="condition_constant"),
        pytest.param(
            "a = Identity (go) on = Identity (a) f = Cast <to = 11> (i) o = Mul (h, f) s = Mul (o, w)", id="counter"
        ),
        pytest.param("on = Identity (go) o = Identity (h) s = Identity (x)", id="handed_through"),
        pytest.param("on = Identity (go) o = Identity (x) s = Mul (h, h)", id="captured"),
        pytest.param(
            """on = Identity (go) even = Constant <value = int64 {1}> () e = Equal (i, even)
            o = If (e) <then_branch = one () => (double[3] a) { b = Mul (h, w) a = Mul (b, h) },
                else_branch = two () => (double[3] a2) { b = Neg (h) a2 = Mul (b, x) }>
            s = Mul (o, h)""",
            id="if_inside",
        ),
        pytest.param(
            """on = Identity (go) two = Constant <value = int64 {2}> ()
            o = Loop (two, , h) <body = inner (int64 j, bool g, double[3] k) => (bool gg, double[3] l) {
                gg = Identity (g) p = Mul (k, w) l = Add (p, h) }>
            s = Mul (o, h)""",
            id="loop_inside",
        ),
        pytest.param(
            """on = Identity (go)
            o, more = Loop (i, , h) <
                body = inner (int64 j, bool g, double[3] k) => (bool gg, double[3] l, double[3] r) {
                    gg = Identity (g) l = Mul (k, w) r = Mul (l, h) }>
            axis = Constant <value_ints = [0]> ()
            s = ReduceSum <keepdims = 0> (more, axis)""",
            id="inner_loop_as_long_as_the_counter",
        ),
    ],
)
def test_bodies(body):
    model = loop(body)
    check_gradient(model, {"x": X["x"], "w": normal(3) / 2})


def test_a_loop_keeps_the_initializers_of_its_body_once():
    text = """loop (double[3] x) => (double[3] y) {
        n = Constant <value = int64 {3}> ()
        y = Loop (n, , x) <body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o)
            <double[3] k = {0.5, 2.0, 1.0}, bool yes = {1}> { on = Identity (yes) a = Mul (h, k) o = Mul (a, x) }> }"""
    backward = check_gradient(parse(text), X)
    assert sum(list(tensor.dims) == [3] for tensor in backward.graph.initializer) == 1


def test_what_a_loop_carries_may_grow():
    text = """loop (double[2] x) => (double[N] y) {
        n = Constant <value = int64 {3}> ()
        y = Loop (n, , x) <body = turn (int64 i, bool go, double[M] h) => (bool on, double[K] o) {
            on = Identity (go) s = Mul (h, h) o = Concat <axis = 0> (s, x) }> }"""
    check_gradient(parse(text), {"x": normal(2)})


def test_a_loop_in_a_branch_is_unrolled_in_it():
    text = """loop (double[3] x, bool c) => (double[3] y) {
        n = Constant <value = int64 {2}> ()
        y = If (c) <
            then_branch = one () => (double[3] t) {
                t = Loop (n, , x) <body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o) {
                    on = Identity (go) o = Mul (h, x) }> },
            else_branch = two () => (double[3] e) { e = Neg (x) }> }"""
    for side in (True, False):
        check_gradient(parse(text), {**X, "c": np.array(side)})


def test_what_a_loop_captures_alone_is_on_the_path():
    body = "on = Identity (go) o = Mul (x, w) s = Mul (h, w)"
    k = "k = Constant <value = double[3] {1.0, 2.0, 3.0}> ()"
    check_gradient(loop(body, f"n = Constant <value = int64 {{2}}> () {k}", ", k"), BOTH)
    model = loop(body, k, ", k", ", int64 n")
    with pytest.raises(lo.UnsupportedError, match="Loop node 'turns'"):
        lo.gradient(model, "x")


def test_symbols_of_a_body_stand_for_other_numbers_each_time():
    text = """loop (double[1] x) => (double[N] y) {
        n = Constant <value = int64 {3}> ()
        y = Loop (n, , x) <body = turn (int64 i, bool go, double[K] h) => (bool on, double[K] o) {
            on = Identity (go) s = Mul (h, h) t = Concat <axis = 0> (s, x) u = Mul (t, x) o = Identity (u) }> }"""
    backward = check_gradient(parse(text), {"x": normal(1)})
    assert not [value for value in backward.graph.value_info if "K" in str(value)]


def test_a_loop_off_the_path_stays():
    text = """loop (double[3] x, double[3] w, int64 n) => (double[3] z) {
        y = Loop (n, , w) <body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o) {
            on = Identity (go) o = Mul (h, w) }>
        z = Mul (y, x) }"""
    model = parse(text)
    backward = check_gradient(model, {**BOTH, "n": np.array(3)}, ["x"])
    assert backward.graph.node[0] == model.graph.node[0]


COMPUTED = "q = ReduceSum <keepdims = 0> (h) zero = Sub (q, q) on = Less (q, zero) o = Mul (h, x) s = Neg (h)"


@pytest.mark.parametrize(
    ("model", "why"),
    [
        pytest.param(loop(BODY, "", inputs=", int64 n"), "its trip count is not constant", id="count_is_input"),
        pytest.param(
            loop(BODY, "n = Constant <value = int64 {65}> ()"),
            "it runs 65 times, and 64 are unrolled at most",
            id="many",
        ),
        pytest.param(loop(BODY, condition="c, x", inputs=", bool c"), "its condition is not constant", id="condition"),
        pytest.param(loop(COMPUTED), "its condition is not constant", id="condition_computed"),
    ],
)
def test_a_loop_that_is_not_unrolled_says_why(model, why):
    with pytest.raises(lo.UnsupportedError, match=rf"^gradient: Loop node 'turns': .*{re.escape(why)}; "):
        lo.gradient(model, "x")


def test_a_loop_without_a_trip_count_says_so():
    model = loop(BODY, "n = Constant <value = int64 {3}> () t = Constant <value = bool {1}> ()", "t, x")
    model.graph.node[2].input[0] = ""
    with pytest.raises(lo.UnsupportedError, match=r"Loop node 'turns': .*its trip count is not constant"):
        lo.gradient(model, "x")


SCAN = """scan (double[3] x, double[{shape}] a{inputs}) => (double[3] y, double[{collected}] ys) {{
    [turns] y, ys = Scan <num_scan_inputs = 1{attributes},
        body = turn (double[3] h, double[3] e) => (double[3] o, double[3] s) {{
            p = Mul (h, e) o = Add (p, x) s = Mul (o, h) }}> (x, a) }}"""


def scan(shape, collected, attributes=""):
    return parse(SCAN.format(shape=shape, collected=collected, attributes=attributes, inputs=""))


@pytest.mark.parametrize(
    ("shape", "collected", "attributes"),
    [
        pytest.param((4, 3), (4, 3), "", id="default"),
        pytest.param((3, 4), (4, 3), ", scan_input_axes = [1]", id="input_axis"),
        pytest.param((3, 4), (3, 4), ", scan_input_axes = [-1], scan_output_axes = [-1]", id="last_axes"),
        pytest.param((4, 3), (4, 3), ", scan_input_directions = [1]", id="input_backwards"),
        pytest.param((4, 3), (3, 4), ", scan_output_axes = [1], scan_output_directions = [1]", id="output_backwards"),
        pytest.param((1, 3), (1, 3), "", id="once"),
        pytest.param((64, 3), (64, 3), "", id="as_often_as_may_be"),
    ],
)
def test_scans(shape, collected, attributes):
    model = scan(*(",".join(map(str, part)) for part in (shape, collected)), attributes)
    feed = {"x": normal(3), "a": normal(*shape) / 3}
    backward = check_gradient(model, feed, second=64 not in shape)
    assert "Scan" not in operators(backward.graph)


def test_a_scan_of_several_inputs_without_a_state():
    text = """scan (double[3,2] a, double[2,3] b) => (double[2,3] p, double[3,2] q) {
        p, q = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
            scan_output_axes = [1, 0], body = turn (double[2] d, double[2] e) => (double[2] f, double[2] g) {
            f = Mul (d, e) g = Mul (f, d) }> (a, b) }"""
    check_gradient(parse(text), {"a": normal(3, 2), "b": normal(2, 3)})


def test_a_scan_of_unknown_length_says_so():
    model = scan("N,3", "N,3")
    with pytest.raises(lo.UnsupportedError, match=r"Scan node 'turns': .*the length of what it scans is not known"):
        lo.gradient(model)
    with pytest.raises(lo.UnsupportedError, match="it runs 65 times"):
        lo.gradient(scan("65,3", "65,3"))


def test_names_inside_a_loop_that_are_taken_already():
    text = """loop (double[3] x, double[3] turns) => (double[3] y, double[3] z) {
        n = Constant <value = int64 {2}> ()
        z = Mul (x, turns)
        [turns] y = Loop (n, , x) <body = turn (int64 i, bool go, double[3] h) => (bool on, double[3] o) {
            on = Identity (go) p = Mul (h, x) o = Neg (p) }> }"""
    model = parse(text)
    model.graph.node[1].output[0] = model.graph.output[1].name = "turns/0/p"
    check_gradient(model, {**X, "turns": normal(3)})
