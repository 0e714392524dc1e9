"""Softmax and its logarithm."""

import torch
from gradient.checking import Case


def _cases(name, operator, function):
    return [
        Case(name, f"(T[2,3] x) => (T[2,3] y) {{ y = {operator}(x) }}", lambda x: function(x, -1), half=True, opset=16),
        Case(
            f"{name}_axis", f"(T[2,3,4] x) => (T[2,3,4] y) {{ y = {operator}<axis = 1>(x) }}", lambda x: function(x, 1)
        ),
        Case(
            f"{name}_negative_axis",
            f"(T[2,3,4] x) => (T[2,3,4] y) {{ y = {operator}<axis = -3>(x) }}",
            lambda x: function(x, 0),
        ),
        Case(f"{name}_of_one", f"(T[3,1] x) => (T[3,1] y) {{ y = {operator}(x) }}", lambda x: function(x, -1)),
        Case(f"{name}_empty", f"(T[3,0] x) => (T[3,0] y) {{ y = {operator}(x) }}", lambda x: function(x, -1)),
        Case(f"{name}_none", f"(T[0,3] x) => (T[0,3] y) {{ y = {operator}(x) }}", lambda x: function(x, -1)),
        Case(
            f"{name}_of_large",
            f"(T[2,3] x) => (T[2,3] y) {{ y = {operator}(x) }}",
            lambda x: function(x, -1),
            feed={"x": [900.0, 0.0, -900.0, 1000.0, 1000.0, 999.0]},
        ),
        Case(
            f"{name}_masked",
            f"(T[2,3] x) => (T[2,3] y) {{ y = {operator}(x) }}",
            lambda x: function(x, -1),
            feed={"x": [-torch.inf, 0.0, 1.0, 2.0, -torch.inf, -torch.inf]},
            differences=False,
        ),
    ]


CASES = [
    *_cases("softmax", "Softmax", torch.softmax),
    *_cases("logsoftmax", "LogSoftmax", torch.log_softmax),
    Case(
        "hardmax_is_constant",
        "(T[2,3] x) => (T[2,3] y) { h = Hardmax(x)  y = Mul(h, x) }",
        lambda x: x * torch.nn.functional.one_hot(x.argmax(-1), 3),
        half=True,
    ),
]
