"""Functions of one tensor, element by element."""

import torch
from gradient.checking import Case


def _case(name, operator, function, low=None, high=None, **options):
    text = f"(T[2,3] x) => (T[2,3] y) {{ y = {operator}(x) }}"
    return Case(name, text, function, low=low, high=high, half=True, **options)


def _at(name, operator, function, *points):
    """A case at points where the slope has no end, or there is none."""
    text = f"(T[{len(points)}] x) => (T[{len(points)}] y) {{ y = {operator}(x) }}"
    return Case(name, text, function, feed={"x": points}, differences=False)


CASES = [
    _case("sqrt", "Sqrt", torch.sqrt, 0.1, 2.0),
    _at("sqrt_at_zero", "Sqrt", torch.sqrt, 0.0, 4.0),
    _case("reciprocal", "Reciprocal", torch.reciprocal, 0.3, 2.0),
    _at("reciprocal_at_zero", "Reciprocal", torch.reciprocal, 0.0, -2.0),
    _case("exp", "Exp", torch.exp),
    Case("exp_scalar", "(T x) => (T y) { y = Exp(x) }", torch.exp),
    Case("exp_empty", "(T[0,3] x) => (T[0,3] y) { y = Exp(x) }", torch.exp),
    Case("exp_opset16", "(T[3] x) => (T[3] y) { y = Exp(x) }", torch.exp, opset=16),
    _at("exp_overflows", "Exp", torch.exp, 1000.0, -1000.0),
    _case("log", "Log", torch.log, 0.2, 3.0),
    _at("log_at_zero", "Log", torch.log, 0.0, 2.0),
    _case("erf", "Erf", torch.erf),
    _at("erf_far_out", "Erf", torch.erf, -40.0, 0.0, 40.0),
    _case("sin", "Sin", torch.sin),
    _case("cos", "Cos", torch.cos),
    _case("tan", "Tan", torch.tan, -1.0, 1.0),
    _case("asin", "Asin", torch.asin, -0.9, 0.9),
    _at("asin_at_the_ends", "Asin", torch.asin, -1.0, 0.0, 1.0),
    _case("acos", "Acos", torch.acos, -0.9, 0.9),
    _at("acos_at_the_ends", "Acos", torch.acos, -1.0, 0.0, 1.0),
    _case("atan", "Atan", torch.atan),
    _at("atan_far_out", "Atan", torch.atan, -1e30, 0.0, 1e30),
    _case("sinh", "Sinh", torch.sinh),
    _case("cosh", "Cosh", torch.cosh),
    _at("cosh_at_zero", "Cosh", torch.cosh, 0.0),
    _case("tanh", "Tanh", torch.tanh),
    _at("tanh_saturated", "Tanh", torch.tanh, -400.0, 0.0, 400.0),
    _case("asinh", "Asinh", torch.asinh),
    _case("acosh", "Acosh", torch.acosh, 1.2, 3.0),
    _at("acosh_at_one", "Acosh", torch.acosh, 1.0, 2.0),
    _case("atanh", "Atanh", torch.atanh, -0.9, 0.9),
    _at("atanh_at_the_ends", "Atanh", torch.atanh, -1.0, 0.0, 1.0),
]
