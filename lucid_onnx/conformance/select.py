"""Choosing cases by an expression.

An expression compares the attributes of a case, as in ``op == "GridSample" and rank == 5 and mode in ("nearest",
"bicubic")``; a word or a string by itself asks whether the id of the case contains it, as in ``nearest and not
"non-finite"``.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from lucid_onnx.conformance.case import Case
from lucid_onnx.reference.schema import ONNX_MODES, ArgumentError

Predicate: TypeAlias = Callable[[Case], bool]

ATTRIBUTES = (
    "op",
    "rank",
    "mode",
    "padding_mode",
    "align_corners",
    "dtype",
    "opset",
    "shapes",
    "family",
    "ordinary",
    "id",
)
"""What an expression may compare."""

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


def selector(expression: str) -> Predicate:
    """The predicate that an expression stands for.

    Raises
    ------
    ArgumentError
        The expression is none, or names what a case does not have.

    Examples
    --------
    >>> case = Case("GridSample", 5, "bilinear", "border", False, "float32", 20, "symbolic", "far")
    >>> selector('rank == 5 and mode == "linear"')(case), selector("far and not border")(case)
    (True, False)
    """
    try:
        tree = ast.parse(" ".join(expression.split()), mode="eval").body
    except (SyntaxError, ValueError):
        raise _bad(expression, "it is no expression") from None
    checked = _truth(tree, expression)

    def predicate(case: Case) -> bool:
        try:
            return checked(case)
        except TypeError as error:
            raise _bad(expression, str(error)) from None

    return predicate


def _truth(node: ast.expr, expression: str) -> Predicate:
    """Whether `node` holds of a case."""
    match node:
        case ast.BoolOp(op=junction, values=values):
            parts = [_truth(value, expression) for value in values]
            join = all if isinstance(junction, ast.And) else any
            return lambda case: join(part(case) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            part = _truth(operand, expression)
            return lambda case: not part(case)
        case ast.Compare(left=left, ops=comparisons, comparators=rights):
            sides = [_value(side, expression) for side in (left, *rights)]
            steps = [_COMPARISONS.get(type(comparison)) for comparison in comparisons]
            if None in steps:
                raise _bad(expression, "it compares with something other than ==, !=, <, <=, >, >=, in and not in")
            return lambda case: all(
                step(a(case), b(case)) for step, a, b in zip(steps, sides, sides[1:], strict=False) if step
            )
        case ast.Constant(value=str(part_of_id)):
            return lambda case: part_of_id in case.id
        case ast.Name(id=("align_corners" | "ordinary") as flag):
            return lambda case: bool(getattr(case, flag))
        case ast.Name(id=name) if name not in ATTRIBUTES:
            return lambda case: name in case.id
        case ast.Constant(value=bool(always)):
            return lambda case: always
    raise _bad(expression, f"{ast.unparse(node)!r} is neither a comparison nor a part of an id")


def _value(node: ast.expr, expression: str) -> Callable[[Case], Any]:
    """What `node` is for a case."""
    if isinstance(node, ast.Name):
        if node.id not in ATTRIBUTES:
            raise _bad(expression, f"a case has no {node.id}; it has {', '.join(ATTRIBUTES)}")
        name = node.id
        return lambda case: getattr(case, name)
    try:
        constant = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        raise _bad(expression, f"{ast.unparse(node)!r} is neither an attribute nor a value") from None
    constant = _ours(constant)
    return lambda case: constant


def _ours(constant: Any) -> Any:
    """ONNX's names of the modes are PyTorch's here."""
    if isinstance(constant, str):
        return ONNX_MODES.get(constant, constant)
    return type(constant)(map(_ours, constant)) if isinstance(constant, tuple | list | set) else constant


def _bad(expression: str, reason: str) -> ArgumentError:
    return ArgumentError(
        f'cannot select by {expression!r}: {reason}; write for example mode == "nearest" and rank == 5'
    )
