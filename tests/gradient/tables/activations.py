"""Activations; the floats among their attributes are of float32."""

import torch
from gradient.checking import Case
from torch.nn import functional

ALPHA, GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
POINTS = {"x": [-4.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 3.0, 4.0]}
FAR = {"x": [-1e4, -800.0, -90.0, 0.0, 90.0, 800.0, 1e4]}


def _cases(name, operator, function, attributes="", kink=True, opset=20, **options):
    """A case of ordinary points, one at the kinks of all activations, and one far out."""

    def text(shape):
        return f"(T{shape} x) => (T{shape} y) {{ y = {operator}{attributes}(x) }}"

    return [
        Case(name, text("[2,3]"), function, half=True, opset=opset, **options),
        Case(
            f"{name}_points",
            text("[10]"),
            function,
            feed=POINTS,
            differences=not kink,
            opset=opset,
        ),
        Case(f"{name}_far_out", text("[7]"), function, feed=FAR, differences=False, opset=opset),
    ]


def _selu(x, alpha=ALPHA, gamma=GAMMA):
    return gamma * functional.elu(x, alpha)


def _hard_sigmoid(alpha, beta):
    alpha, beta = (float(torch.tensor(number, dtype=torch.float32)) for number in (alpha, beta))

    def function(x):
        y = alpha * x + beta
        return torch.where(y <= 0, 0.0, torch.where(y >= 1, 1.0, y))

    return function


def _shrink(lambd, bias):
    return lambda x: torch.where(x < -lambd, x + bias, torch.where(x > lambd, x - bias, 0.0))


def _prelu(x, s):
    """functional.prelu, whose slope has as many as there are channels."""
    return torch.where(x > 0, x, s * x)


CASES = [
    *_cases("relu", "Relu", torch.relu),
    Case("relu_scalar", "(T x) => (T y) { y = Relu(x) }", torch.relu),
    Case("relu_empty", "(T[2,0] x) => (T[2,0] y) { y = Relu(x) }", torch.relu),
    Case("relu_opset16", "(T[5] x) => (T[5] y) { y = Relu(x) }", torch.relu, opset=16),
    *_cases("thresholdedrelu", "ThresholdedRelu", lambda x: functional.threshold(x, 1.0, 0.0)),
    *_cases("thresholdedrelu_alpha", "ThresholdedRelu", lambda x: functional.threshold(x, -0.5, 0.0), "<alpha = -0.5>"),
    *_cases("leakyrelu", "LeakyRelu", lambda x: functional.leaky_relu(x, 0.009999999776482582)),
    *_cases("leakyrelu_alpha", "LeakyRelu", lambda x: functional.leaky_relu(x, 0.25), "<alpha = 0.25>"),
    Case("prelu_same", "(T[2,3] x, T[2,3] s) => (T[2,3] y) { y = PRelu(x, s) }", _prelu, half=True),
    Case("prelu_channels", "(T[2,3,4] x, T[3,1] s) => (T[2,3,4] y) { y = PRelu(x, s) }", _prelu),
    Case("prelu_scalar", "(T[2,3] x, T s) => (T[2,3] y) { y = PRelu(x, s) }", _prelu),
    Case("prelu_one", "(T[2,3] x, T[1] s) => (T[2,3] y) { y = PRelu(x, s) }", functional.prelu, opset=16),
    Case(
        "prelu_at_zero",
        "(T[3,1] x, T[1] s) => (T[3,1] y) { y = PRelu(x, s) }",
        functional.prelu,
        feed={"x": [0.0, 1.0, -1.0], "s": [0.25]},
        differences=False,
    ),
    Case("prelu_slope_only", "(T[2,3] x, T[3] s) => (T[2,3] y) { y = PRelu(x, s) }", _prelu, wrt=("s",)),
    *_cases("elu", "Elu", functional.elu),
    *_cases("elu_alpha", "Elu", lambda x: functional.elu(x, 0.75), "<alpha = 0.75>"),
    *_cases("selu", "Selu", _selu),
    *_cases("selu_numbers", "Selu", lambda x: _selu(x, 0.5, 2.0), "<alpha = 0.5, gamma = 2.0>"),
    *_cases("celu", "Celu", functional.celu, opset=28),
    *_cases("celu_alpha", "Celu", lambda x: functional.celu(x, 2.0), "<alpha = 2.0>", opset=28),
    *_cases("sigmoid", "Sigmoid", torch.sigmoid, kink=False),
    *_cases("hardsigmoid", "HardSigmoid", _hard_sigmoid(0.2, 0.5)),
    *_cases("hardsigmoid_numbers", "HardSigmoid", _hard_sigmoid(0.25, 0.25), "<alpha = 0.25, beta = 0.25>"),
    *_cases("swish", "Swish", functional.silu, kink=False, opset=24),
    *_cases("swish_alpha", "Swish", lambda x: x * torch.sigmoid(1.5 * x), "<alpha = 1.5>", kink=False, opset=24),
    *_cases("hardswish", "HardSwish", functional.hardswish),
    *_cases("softplus", "Softplus", lambda x: torch.logaddexp(x, torch.zeros_like(x)), kink=False),
    *_cases("softsign", "Softsign", functional.softsign, kink=False),
    *_cases("mish", "Mish", functional.mish, kink=False),
    *_cases("gelu", "Gelu", functional.gelu, kink=False),
    *_cases(
        "gelu_tanh", "Gelu", lambda x: functional.gelu(x, approximate="tanh"), '<approximate = "tanh">', kink=False
    ),
    # onnxruntime's Shrink of float64 rounds to float32, which no difference survives.
    *_cases("shrink", "Shrink", lambda x: functional.hardshrink(x, 0.5), differences=False),
    *_cases(
        "shrink_soft", "Shrink", lambda x: functional.softshrink(x, 1.0), "<lambd = 1.0, bias = 1.0>", differences=False
    ),
    *_cases("shrink_bias", "Shrink", _shrink(0.5, 0.25), "<lambd = 0.5, bias = 0.25>", differences=False),
]
