"""Arithmetic of one or more tensors, and what passes its input on."""

from functools import reduce

import torch
from gradient.checking import Case

TIES = {"x": [1.0, 1.0, 2.0, 0.0], "y": [1.0, 2.0, 1.0, 0.0]}
INF = float("inf")


def _binary(name, operator, function, low=None, high=None):
    """Shapes that broadcast in every way."""
    shapes = {
        "same": ("[2,3]", "[2,3]", "[2,3]"),
        "both": ("[2,1,3]", "[4,1]", "[2,4,3]"),
        "scalar": (" ", "[2,3]", "[2,3]"),
        "ones": ("[1,1]", "[3]", "[1,3]"),
        "empty": ("[0,3]", "[1,3]", "[0,3]"),
    }
    return [
        Case(
            f"{name}_{kind}",
            f"(T{x} x, T{y} y) => (T{z} z) {{ z = {operator}(x, y) }}",
            function,
            low=low,
            high=high,
            half=True,
            opset=16 if kind == "both" else 20,
        )
        for kind, (x, y, z) in shapes.items()
    ]


def _extreme(name, operator, binary, among):
    """Min or Max."""
    text = f"(T[4] x, T[4] y) => (T[4] z) {{ z = {operator}(x, y) }}"
    three = f"(T[2,3] x, T[3] y, T[2,1] w) => (T[2,3] z) {{ z = {operator}(x, y, w) }}"

    def stack(*tensors):
        return among(torch.stack(torch.broadcast_tensors(*tensors)), 0)

    return [
        *_binary(name, operator, binary),
        Case(f"{name}_ties", text, binary, feed=TIES, differences=False),
        Case(f"{name}_one", f"(T[2,3] x) => (T[2,3] z) {{ z = {operator}(x) }}", lambda x: 1.0 * x),
        Case(f"{name}_itself", f"(T[3] x) => (T[3] z) {{ z = {operator}(x, x) }}", lambda x: binary(x, x)),
        Case(f"{name}_three", three, stack, half=True),
        Case(
            f"{name}_three_ties",
            f"(T[4] x, T[4] y, T[4] w) => (T[4] z) {{ z = {operator}(x, y, w) }}",
            stack,
            feed={**TIES, "w": [1.0, 2.0, 1.0, -1.0]},
            differences=False,
        ),
        Case(
            f"{name}_chain",
            f"(T[2] x, T[2] y, T[2] w, T[2] v) => (T[2] z) {{ z = {operator}(x, y, w, v) }}",
            lambda *tensors: reduce(binary, tensors),
        ),
    ]


def _power_of(number):
    """X to a power that is an initializer."""
    text = f"(T[2,3] x) => (T[2,3] z) <T p = {{{number}}}> {{ z = Pow(x, p) }}"
    return Case(f"pow_of_{number}", text, lambda x: x**number, low=0.3, high=2.0, wrt=("x",))


def _power_at_zero(number):
    text = f"(T[4] x) => (T[4] z) <T p = {{{number}}}> {{ z = Pow(x, p) }}"
    # PyTorch has a root of its own, by which -0 to the power of -0.5 is -inf.
    feed = {"x": [0.0, 0.0 if number == 0.5 else -0.0, -2.0, INF]}
    return Case(f"pow_of_{number}_at_zero", text, lambda x: x**number, feed=feed, wrt=("x",), differences=False)


def _clip(name, bounds, function, inputs="T low, T high", **options):
    text = f"(T[6] x{inputs and ', '}{inputs}) => (T[6] y) {{ y = Clip(x{bounds}) }}"
    feed = {"x": [-1.5, -0.25, 0.1, 0.75, 0.8, 2.0], "low": -0.5, "high": 0.7, **options.pop("feed", {})}
    return Case(f"clip_{name}", text, function, feed=feed, **options)


def _fmod(x, y):
    """torch.fmod, whose quotient is that of its very result."""
    n = torch.round((x - torch.fmod(x, y)) / y).detach()
    return x - n * y


ONES = {"x": [0.0, 0.0, 1.0, 1.0, 2.0, 3.0]}

CASES = [
    *_binary("add", "Add", torch.add),
    Case("sum_one", "(T[2,3] x) => (T[2,3] z) { z = Sum(x) }", lambda x: 1.0 * x),
    Case(
        "sum_three", "(T[2,3] x, T[3] y, T w) => (T[2,3] z) { z = Sum(x, y, w) }", lambda x, y, w: x + y + w, half=True
    ),
    *_binary("sub", "Sub", torch.sub),
    *_binary("mul", "Mul", torch.mul),
    Case("mul_itself", "(T[2,3] x) => (T[2,3] z) { z = Mul(x, x) }", lambda x: x * x),
    *_binary("div", "Div", torch.div, 0.5, 2.0),
    Case(
        "div_by_zero",
        "(T[3] x, T[3] y) => (T[3] z) { z = Div(x, y) }",
        torch.div,
        feed={"x": [1.0, -1.0, 0.0], "y": [0.0, 0.0, 2.0]},
        differences=False,
    ),
    Case("neg", "(T[2,3] x) => (T[2,3] z) { z = Neg(x) }", torch.neg, half=True),
    Case("abs", "(T[2,3] x) => (T[2,3] z) { z = Abs(x) }", torch.abs, half=True),
    Case("abs_at_zero", "(T[2] x) => (T[2] z) { z = Abs(x) }", torch.abs, feed={"x": [0.0, -0.0]}, differences=False),
    Case("mean_one", "(T[2,3] x) => (T[2,3] z) { z = Mean(x) }", lambda x: 1.0 * x),
    Case("mean_three", "(T[2,3] x, T[3] y, T w) => (T[2,3] z) { z = Mean(x, y, w) }", lambda *t: sum(t) / 3, half=True),
    *_binary("pow", "Pow", torch.pow, 0.3, 2.0),
    *map(_power_of, (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)),
    *map(_power_at_zero, (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0)),
    Case(
        "pow_of_many",
        "(T[2,3] x) => (T[2,3] z) <T[3] p = {2.0, 0.0, -1.0}> { z = Pow(x, p) }",
        lambda x: x ** torch.tensor([2.0, 0.0, -1.0]),
        wrt=("x",),
    ),
    Case(
        "pow_at_zero",
        "(T[11] x, T[11] y) => (T[11] z) { z = Pow(x, y) }",
        torch.pow,
        feed={
            "x": [0.0, 0.0, 0.0, 0.0, 0.0, -2.0, -2.0, INF, 2.0, 0.0, -0.0],
            "y": [0.0, 1.0, 2.0, 0.5, -1.0, 2.0, 0.5, 0.0, 0.0, 1.5, -1.0],
        },
        differences=False,
    ),
    Case(
        "pow_near_zero",
        "(T[2] x, T[2] y) => (T[2] z) { z = Pow(x, y) }",
        torch.pow,
        feed={"x": [1e-45, 1e-45], "y": [0.0, 1.0]},
        differences=False,
    ),
    Case(
        "pow_of_negative",
        "(T[3] x, T[3] y) => (T[3] z) { z = Pow(x, y) }",
        torch.pow,
        feed={"x": [-2.0, -1.5, 0.0], "y": [2.0, 3.0, 2.0]},
        wrt=("x",),
    ),
    Case(
        "pow_int64",
        "(T[2,3] x, int64[3] y) => (T[2,3] z) { z = Pow(x, y) }",
        torch.pow,
        feed={"x": [0.5, -1.0, 0.0, 2.0, 0.0, 0.0], "y": [-1, 0, 3]},
    ),
    Case(
        "pow_int32",
        "(T[2,3] x, int32 y) => (T[2,3] z) { z = Pow(x, y) }",
        lambda x, y: torch.pow(x, int(y)),
        feed={"y": 2},
        opset=16,
    ),
    Case(
        "pow_exponent_alone", "(T[3] x, T[3] y) => (T[3] z) { z = Pow(x, y) }", torch.pow, low=0.3, high=2.0, wrt=("y",)
    ),
    Case(
        "pow_exponent_of_another_dtype",
        "(T[3] x, T[3] y) => (T[3] z) { p = Cast<to = 1>(y)  z = Pow(x, p) }",
        lambda x, y: torch.pow(x, y.float().to(x.dtype)),
        low=0.3,
        high=2.0,
        differences=False,
    ),
    *_extreme("min", "Min", torch.minimum, torch.amin),
    *_extreme("max", "Max", torch.maximum, torch.amax),
    *(
        Case(
            f"mod_fmod_{kind}",
            f"(T{x} x, T{y} y) => (T{z} z) {{ z = Mod<fmod = 1>(x, y) }}",
            _fmod,
            low=low,
            high=high,
            half=kind == "positive",
            opset=opset,
        )
        for kind, x, y, z, low, high, opset in (
            ("positive", "[2,3]", "[3]", "[2,3]", 0.3, 2.0, 16),
            ("negative", "[2,3]", "[2,1]", "[2,3]", -2.0, -0.3, 20),
        )
    ),
    Case(
        "mod_fmod_signs",
        "(T[4] x, T[4] y) => (T[4] z) { z = Mod<fmod = 1>(x, y) }",
        torch.fmod,
        feed={"x": [5.0, -5.0, 5.0, -5.0], "y": [3.0, 3.0, -3.0, -3.0]},
    ),
    Case(
        "mod_signs",
        "(T[4] x, T[4] y) => (T[4] z) { z = Mod(x, y) }",
        torch.remainder,
        feed={"x": [5.0, -5.0, 5.0, -5.0], "y": [3.0, 3.0, -3.0, -3.0]},
        opset=28,
    ),
    Case(
        "where_broadcast",
        "(bool[2,1] c, T[3] x, T y) => (T[2,3] z) { z = Where(c, x, y) }",
        torch.where,
        feed={"c": [True, False]},
        half=True,
        opset=16,
    ),
    Case(
        "where_not_taken_is_nan",
        "(bool[2] c, T[2] x, T[2] y) => (T[2] z) { l = Log(x)  z = Where(c, l, y) }",
        lambda c, x, y: torch.where(c, torch.log(torch.where(c, x, 1.0)), y),
        feed={"c": [True, False], "x": [2.0, 3.0]},
    ),
    _clip("nothing", "", lambda x: 1.0 * x, ""),
    _clip("low", ", low", lambda x, low: torch.clamp(x, low), "T low", half=True),
    _clip("high", ", , high", lambda x, high: torch.clamp(x, max=high), "T high", opset=16),
    _clip("both", ", low, high", torch.clamp, half=True),
    _clip("input_alone", ", low, high", torch.clamp, wrt=("x",)),
    _clip("bound_alone", ", low, high", torch.clamp, wrt=("high",)),
    _clip("ties", ", low, high", torch.clamp, feed={**ONES, "low": 0.0, "high": 1.0}, differences=False),
    _clip("crossed", ", low, high", torch.clamp, feed={**ONES, "low": 2.0, "high": 1.0}, differences=False),
    _clip("equal", ", low, high", torch.clamp, feed={**ONES, "low": 1.0, "high": 1.0}, differences=False),
    Case(
        "clip_empty",
        "(T[0,2] x, T low, T high) => (T[0,2] y) { y = Clip(x, low, high) }",
        torch.clamp,
        feed={"low": 0.0, "high": 1.0},
    ),
    Case("identity", "(T[2,3] x) => (T[2,3] y) { y = Identity(x) }", lambda x: 1.0 * x, half=True),
    Case(
        "cast_and_back",
        "(T[2,3] x) => (T[2,3] y) { n = Cast<to = 1>(x)  m = Sin(n)  y = Cast<to = @T>(m) }",
        lambda x: torch.sin(x.float()).to(x.dtype),
        differences=False,
    ),
    Case(
        "cast_wider",
        "(T[2,3] x) => (T[2,3] y) { n = Cast<to = 11>(x)  m = Sin(n)  y = Cast<to = @T>(m) }",
        torch.sin,
        half=True,
    ),
    Case(
        "cast_to_integers",
        "(T[3] x) => (T[3] y) { n = Cast<to = 7>(x)  m = Cast<to = @T>(n)  y = Mul(m, x) }",
        lambda x: x * x.detach().trunc(),
    ),
    Case(
        "cast_of_truth",
        "(T[3] x, bool[3] c) => (T[3] y) { m = Cast<to = @T>(c)  y = Mul(m, x) }",
        lambda x, c: x * c,
        feed={"c": [True, False, True]},
    ),
    Case(
        "castlike",
        "(T[3] x) => (T[3] y) { w = Cast<to = 11>(x)  n = CastLike(x, w)  m = Exp(n)  y = CastLike(m, x) }",
        torch.exp,
        half=True,
    ),
    Case("dropout_default", "(T[2,3] x) => (T[2,3] y) { y = Dropout(x) }", lambda x: 1.0 * x, half=True),
    Case(
        "dropout_inference",
        "(T[2,3] x) => (T[2,3] y) <T r = {0.5}, bool t = {0}> { y = Dropout(x, r, t) }",
        lambda x: 1.0 * x,
        wrt=("x",),
        opset=16,
    ),
    Case(
        "dropout_training_of_none",
        "(T[2,3] x) => (T[2,3] y) <T r = {0.0}, bool t = {1}> { y, m = Dropout(x, r, t) }",
        lambda x: 1.0 * x,
        wrt=("x",),
    ),
    Case(
        "dropout_training_is_an_input",
        "(T[2,3] x, bool t) => (T[2,3] y) { y, m = Dropout(x, , t) }",
        lambda x, t: 1.0 * x,
        feed={"t": False},
        opset=22,
    ),
]
