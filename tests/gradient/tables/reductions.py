"""Reductions over axes: every operator in every spelling of the axes, and what is particular to each."""

import math

import torch
from gradient.checking import Case

INF = math.inf


def products(x, axes, keepdim):
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = x.prod(axis, keepdim)
    return x


TWINS = {
    "ReduceSum": lambda x, axes, keepdim: x.sum(axes, keepdim),
    "ReduceMean": lambda x, axes, keepdim: x.mean(axes, keepdim),
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceL1": lambda x, axes, keepdim: torch.linalg.vector_norm(x, 1, axes, keepdim),
    "ReduceL2": lambda x, axes, keepdim: torch.linalg.vector_norm(x, 2, axes, keepdim),
    "ReduceSumSquare": lambda x, axes, keepdim: x.square().sum(axes, keepdim),
    "ReduceLogSum": lambda x, axes, keepdim: x.sum(axes, keepdim).log(),
    "ReduceLogSumExp": torch.logsumexp,
    "ReduceProd": products,
}

# Name, graph of the operator R, axes, keepdims, and what else there is to say.
INPUTS = [
    (
        "input",
        "(T[2,3,4] x) => (T[2,1,4] y) { a = Constant<value_ints=[-2]>() y = R(x, a) }",
        [1],
        True,
        {"half": True},
    ),
    (
        "inputs_flat",
        "(T[2,3,4] x) => (T[3] y) { a = Constant<value_ints=[-1, 0]>() y = R<keepdims=0>(x, a) }",
        [0, 2],
        False,
        {},
    ),
    (
        "newest",
        "(T[2,3] x) => (T[2] y) { a = Constant<value_ints=[1]>() y = R<keepdims=0>(x, a) }",
        [1],
        False,
        {"opset": 24},
    ),
    ("all", "(T[2,3] x) => (T[1,1] y) { y = R(x) }", [0, 1], True, {}),
    ("all_flat", "(T[2,3] x) => (T y) { y = R<keepdims=0>(x) }", [0, 1], False, {}),
    ("missing_axes", '(T[2,3] x) => (T[1,1] y) { y = R(x, "") }', [0, 1], True, {}),
    ("no_axes", "(T[2,3] x) => (T[2,3] y) { y = R<noop_with_empty_axes=1>(x) }", [], True, {}),
    ("no_axes_flat", "(T[2,3] x) => (T[2,3] y) { y = R<noop_with_empty_axes=1, keepdims=0>(x) }", [], True, {}),
    ("empty_axes", "(T[2,3] x) => (T[1,1] y) <int64[0] a = {}> { y = R(x, a) }", [0, 1], True, {}),
    (
        "empty_axes_none",
        "(T[2,3] x) => (T[2,3] y) <int64[0] a = {}> { y = R<noop_with_empty_axes=1>(x, a) }",
        [],
        True,
        {},
    ),
    ("one", "(T[2,1] x) => (T[2,1] y) { a = Constant<value_ints=[1]>() y = R(x, a) }", [1], True, {}),
    ("empty", "(T[0,3] x) => (T[0,1] y) { a = Constant<value_ints=[1]>() y = R(x, a) }", [1], True, {}),
    ("scalar", "(T x) => (T y) { y = R(x) }", [], True, {}),
]
RUN_TIME = [
    ("run_time", "(T[2,3,4] x, int64[1] a) => (T[2,1,4] y) { y = R(x, a) }", [1], True, {"feed": {"a": [-2]}}),
    (
        "run_time_flat",
        "(T[2,3,4] x, int64[2] a) => (T[3] y) { y = R<keepdims=0>(x, a) }",
        [0, 2],
        False,
        {"feed": {"a": [2, 0]}},
    ),
    ("run_time_all", "(T[2,3] x, int64[0] a) => (T[1,1] y) { y = R(x, a) }", [0, 1], True, {}),
    ("run_time_all_flat", "(T[2,3] x, int64[0] a) => (T y) { y = R<keepdims=0>(x, a) }", [0, 1], False, {}),
    (
        "run_time_none",
        "(T[2,3] x, int64[0] a) => (T[2,3] y) { y = R<noop_with_empty_axes=1, keepdims=0>(x, a) }",
        [],
        False,
        {},
    ),
]
ATTRIBUTES = [
    ("attribute", "(T[2,3,4] x) => (T[2,1,4] y) { y = R<axes=[-2]>(x) }", [1], True, {"opset": 17}),
    ("attribute_flat", "(T[2,3,4] x) => (T[3] y) { y = R<axes=[0, -1], keepdims=0>(x) }", [0, 2], False, {"opset": 16}),
    ("attribute_all", "(T[2,3] x) => (T y) { y = R<keepdims=0>(x) }", [0, 1], False, {"opset": 16}),
]
NO_SUM = [name for name in TWINS if name != "ReduceSum"]
NO_PRODUCT = [name for name in TWINS if name != "ReduceProd"]


def row(operator, label, text, axes, keepdim, more):
    """A row; what is reduced over no axis goes, in PyTorch, along one of size 1. Logarithms want positive numbers."""

    def twin(x, *_):
        return TWINS[operator](x, axes, keepdim) if axes else TWINS[operator](x.unsqueeze(-1), [-1], False)

    text = text.replace("y = R", f"y = {operator}")
    return Case(f"{operator.lower()}_{label}", text, twin, **{"low": 0.5, "high": 2.0, "feed": {"a": []}, **more})


def along(operator, label, shape, x, **more):
    """A row that reduces given numbers along the last axis."""
    rows, columns = shape
    text = f"(T[{rows},{columns}] x) => (T[{rows}] y) {{ y = R<axes=[-1], keepdims=0>(x) }}"
    return row(operator, label, text, [-1], False, {"opset": 17, "feed": {"x": x}, **more})


CASES = [
    *(row(operator, *spelling) for operator in TWINS for spelling in INPUTS),
    *(row(operator, *spelling) for operator in NO_PRODUCT for spelling in RUN_TIME),
    *(row(operator, *spelling) for operator in NO_SUM for spelling in ATTRIBUTES),
    row("ReduceSum", "oldest", *INPUTS[1][1:4], {"opset": 16}),
    # Axes of size 0: there is nothing to have a gradient.
    *(
        row(
            operator,
            "over_nothing",
            "(T[2,0] x) => (T[2,1] y) { a = Constant<value_ints=[1]>() y = R(x, a) }",
            [1],
            True,
            {},
        )
        for operator in ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd")
    ),
    Case("reducemean_over_nothing", "(T[2,0] x) => (T[2,1] y) { y = ReduceMean<axes=[1]>(x) }", opset=17),
    # Kinks.
    along("ReduceMax", "ties", [3, 3], [[2, 2, 1], [1, 1, 1], [0, 1, 2]], differences=False),
    along("ReduceMin", "ties", [3, 3], [[2, 2, 1], [1, 1, 1], [1, 1, 2]], differences=False),
    row(
        "ReduceMax",
        "ties_everywhere",
        "(T[2,2] x) => (T y) { y = R<keepdims=0>(x) }",
        [0, 1],
        False,
        {"low": 1, "high": 1, "differences": False},
    ),
    along("ReduceMax", "signs", [2, 3], [[-3, -1, -2], [-INF, 1, 0]], differences=False),
    along("ReduceL1", "signs", [2, 3], [[-3, 1, -2], [4, 1, -1]]),
    along("ReduceL1", "zero", [2, 3], [[-3, 0, -2], [0, 0, 0]], differences=False),
    along("ReduceL2", "signs", [2, 3], [[-3, 1, -2], [4, 0, -1]]),
    along("ReduceL2", "zero", [2, 3], [[0, 0, 0], [3, 4, 0]], differences=False),
    # Numbers that want care.
    along("ReduceLogSum", "signs", [2, 3], [[-3, 1, 5], [4, 1, -1]]),
    along("ReduceLogSumExp", "large", [3, 2], [[1000, 999.5], [-1000, -1001], [-1000, 1000]]),
    along("ReduceLogSumExp", "infinite", [2, 3], [[-INF, 1, 0], [-INF, -INF, 2]]),
    along("ReduceProd", "zeros", [4, 3], [[0, 2, 3], [0, 0, -5], [0, 0, 0], [7, -8, 9]]),
    along("ReduceProd", "many", [2, 7], [[0.5, -2, 3, 4, 0, 2, 1.5], [2, 1, 0.5, 3, -2, -1, 4]]),
    row(
        "ReduceProd",
        "zeros_in_a_plane",
        "(T[2,2,3] x) => (T[3] y) { y = R<axes=[0, 1], keepdims=0>(x) }",
        [0, 1],
        False,
        {"opset": 17, "feed": {"x": [[[0, 2, 0], [3, 4, 5]], [[2, 0, 0], [-3, 2, 1]]]}},
    ),
    row(
        "ReduceProd",
        "zeros_in_all",
        "(T[2,2] x) => (T y) { y = R<keepdims=0>(x) }",
        [0, 1],
        False,
        {"feed": {"x": [[0, 2], [3, 4]]}},
    ),
]
