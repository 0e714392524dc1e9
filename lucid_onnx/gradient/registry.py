"""The rules of reverse mode, by operator: from the gradients of a node's outputs to those of its inputs.

A rule is a function of the call and of the gradient with respect to the first output::

    @rule("Mul", broadcast=True)
    def mul(call, g):
        "z = x y, so that dx = g y and dy = g x."
        x, y = call.inputs
        return call.op.Mul(g, y), call.op.Mul(g, x)

It returns a gradient for each input, in order, or one for the first alone; None where there is none, or where it is
not `call.wanted`. What nothing needs is dropped later. With ``broadcast`` each is summed over what its input was
repeated along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lucid_onnx.gradient.call import Call
from lucid_onnx.operators.building import Value

Gradients: TypeAlias = Value | Sequence[Value | None] | None
Function: TypeAlias = Callable[[Call, Value], Gradients]


@dataclass(frozen=True)
class Rule:
    """How the gradients of an operator's inputs are made.

    Parameters
    ----------
    function : callable
        See above.
    broadcast : bool
        Whether the operator repeats its inputs along axes, so that their gradients are to be summed.
    """

    function: Function
    broadcast: bool


RULES: dict[tuple[str, str], Rule] = {}
"""Every rule by domain and operator."""

CONSTANT = {
    # The result is whole numbers or truth values, or steps: the derivative is 0 wherever there is one.
    "Ceil": "steps",
    "Floor": "steps",
    "Round": "steps",
    "Sign": "steps",
    "Hardmax": "steps",
    "BitShift": "whole numbers",
    # The result depends on the shape or the dtype of an input, not on its values.
    "ConstantOfShape": "a shape",
    "EyeLike": "a shape",
    "Shape": "a shape",
    "Size": "a shape",
    "Bernoulli": "random numbers",
    "Multinomial": "random numbers",
    "RandomNormalLike": "random numbers",
    "RandomUniformLike": "random numbers",
    # The result is an index or a truth value.
    "ArgMax": "an index",
    "ArgMin": "an index",
    "NonMaxSuppression": "an index",
    "NonZero": "an index",
    "And": "a truth value",
    "Equal": "a truth value",
    "Greater": "a truth value",
    "GreaterOrEqual": "a truth value",
    "IsInf": "a truth value",
    "IsNaN": "a truth value",
    "Less": "a truth value",
    "LessOrEqual": "a truth value",
    "Not": "a truth value",
    "Or": "a truth value",
    "Xor": "a truth value",
    "QuantizeLinear": "whole numbers",
}
"""Operators of ONNX whose result does not change with an input, and what it is: nothing flows back through them."""


def rule(*op_types: str, domain: str = "", broadcast: bool = False) -> Callable[[Function], Function]:
    """Make a function the rule of one or more operators; a rule of one's own may take the place of one here.

    Parameters
    ----------
    *op_types : str
        Names of the operators.
    domain : str
        Their domain; ONNX's own by default.
    broadcast : bool
        Whether the operator repeats its inputs along axes.

    Examples
    --------
    >>> @rule("Twice", domain="my.domain")
    ... def twice(call, g):
    ...     "y = 2 x, so that dx = 2 g."
    ...     return call.op.Mul(g, 2.0)
    >>> ("my.domain", "Twice") in RULES
    True
    >>> del RULES["my.domain", "Twice"]
    """

    def register(function: Function) -> Function:
        for op_type in op_types:
            RULES["" if domain == "ai.onnx" else domain, op_type] = Rule(function, broadcast)
        return function

    return register
