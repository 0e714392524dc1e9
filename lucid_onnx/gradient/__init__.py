"""Gradients of whole models, ONNX to ONNX: reverse mode with one short rule an operator.

The package is what `lucid_onnx.gradient` names, and it can be called: ``lo.gradient(model)`` is
`lucid_onnx.gradient.gradient`.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.gradient import gradient, gradient_ir
from lucid_onnx.gradient.registry import CONSTANT, RULES, Gradients, Rule, rule

__all__ = ["CONSTANT", "RULES", "Call", "Gradients", "Rule", "gradient", "gradient_ir", "rule"]


class _Callable(ModuleType):
    """The module, which stands for its function where it is called: a package and a function share one name."""

    __signature__ = inspect.signature(gradient)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return gradient(*arguments, **named)


sys.modules[__name__].__class__ = _Callable
