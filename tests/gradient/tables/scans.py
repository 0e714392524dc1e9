"""Sums and products of what comes before, equal steps, the largest numbers along an axis, and triangles."""

import torch
from gradient.checking import Case


def scanned(scan, exclusive=False, reverse=False):
    """Twin along the last axis but one of x, of `torch.cumsum` or `torch.cumprod`."""

    def twin(x, *_):
        x = x.flip(-2) if reverse else x
        y = scan(x, -2)
        if exclusive:
            first = torch.full_like(y[..., :1, :], 0.0 if scan is torch.cumsum else 1.0)
            y = torch.cat([first, scan(x[..., :-1, :], -2)], -2)
        return y.flip(-2) if reverse else y

    return twin


def scan_cases(operator, scan, opset):
    """Rows that both scans have."""
    name = operator.lower()
    for exclusive in (0, 1):
        for reverse in (0, 1):
            attributes = f"<exclusive={exclusive}, reverse={reverse}>"
            nodes = f"a = Constant<value_int=-2>() y = {operator}{attributes}(x, a)"
            for size in (5, 1):
                yield Case(
                    f"{name}_{'exclusive' * exclusive}{'reverse' * reverse}_{size}",
                    f"(T[2,{size},3] x) => (T[2,{size},3] y) {{ {nodes} }}",
                    scanned(scan, exclusive, reverse),
                    opset=opset,
                    symbolic=operator == "CumSum",
                )
    text = f"(T[5,2] x) => (T[5,2] y) {{ a = Constant<value_int=0>() y = {operator}(x, a) }}"
    more = {"opset": opset, "symbolic": operator == "CumSum"}
    yield Case(f"{name}_defaults", text, scanned(scan), half=True, **more)
    yield Case(f"{name}_empty_others", text.replace("5,2", "5,0"), scanned(scan), **more)
    yield Case(f"{name}_empty", text.replace("5,2", "0,2"), scanned(scan), **more)


def stepped(count):
    """Twin of Range: the limit, which decides only how many numbers there are, has a gradient of 0."""
    return lambda start, limit, step: start + step * torch.arange(count, dtype=start.dtype)


def ends(k, axis=-1, largest=True):
    return lambda x, *_: torch.topk(x, k, axis, largest).values


def both_ends(x):
    return torch.topk(x, 2, -1).values, torch.topk(x, 2, -1, False).values


CASES = [
    *scan_cases("CumSum", torch.cumsum, 20),
    *scan_cases("CumProd", torch.cumprod, 26),
    Case(
        "cumsum_oldest",
        "(T[5,2] x) => (T[5,2] y) { a = Constant<value_int=0>() y = CumSum(x, a) }",
        scanned(torch.cumsum),
        opset=16,
    ),
    Case("cumsum_run_time", "(T[5,2] x, int32 a) => (T[5,2] y) { y = CumSum(x, a) }", scanned(torch.cumsum), {"a": 0}),
    Case(
        "cumsum_run_time_1",
        "(T[5,2] x, int64[1] a) => (T[5,2] y) { y = CumSum(x, a) }",
        scanned(torch.cumsum),
        {"a": [0]},
    ),
    Case(
        "cumprod_zeros",
        "(T[5,3] x) => (T[5,3] y) { a = Constant<value_int=0>() y = CumProd(x, a) }",
        scanned(torch.cumprod),
        {"x": [[0, 2, 3], [1, 0, -1], [2, 5, 0], [0, 3, 1], [2, 4, 0]]},
        opset=26,
        symbolic=False,
    ),
    Case("range", "(T a, T b, T c) => (T[5] y) { y = Range(a, b, c) }", stepped(5), {"a": 0.5, "b": 3, "c": 0.6}),
    Case("range_down", "(T a, T b, T c) => (T[2] y) { y = Range(a, b, c) }", stepped(2), {"a": 1, "b": 0, "c": -0.7}),
    Case("range_none", "(T a, T b, T c) => (T[0] y) { y = Range(a, b, c) }", stepped(0), {"a": 2, "b": 1, "c": 0.5}),
    Case(
        "range_squared",
        "(T a, T b, T c) => (T[3] z) { y = Range(a, b, c) z = Mul(y, y) }",
        lambda *parts: stepped(3)(*parts) ** 2,
        {"a": -1, "b": 4, "c": 2},
        opset=16,
    ),
    Case("topk", "(T[2,5] x) => (T[2,3] y) { k = Constant<value_ints=[3]>() y, i = TopK(x, k) }", ends(3), half=True),
    Case(
        "topk_oldest",
        "(T[2,5] x) => (T[2,3] y) { k = Constant<value_ints=[3]>() y, i = TopK(x, k) }",
        ends(3),
        opset=16,
    ),
    Case(
        "topk_newest",
        "(T[2,5] x) => (T[2,3] y) { k = Constant<value_ints=[3]>() y, i = TopK(x, k) }",
        ends(3),
        opset=24,
    ),
    Case(
        "topk_axis",
        "(T[2,5,3] x) => (T[2,2,3] y) { k = Constant<value_ints=[2]>() y, i = TopK<axis=-2>(x, k) }",
        ends(2, 1),
    ),
    Case(
        "topk_smallest",
        "(T[5,2] x) => (T[2,2] y) { k = Constant<value_ints=[2]>() y, i = TopK<axis=0, largest=0>(x, k) }",
        ends(2, 0, False),
    ),
    Case("topk_all", "(T[2,5] x) => (T[2,5] y) { k = Constant<value_ints=[5]>() y, i = TopK(x, k) }", ends(5)),
    Case("topk_none", "(T[2,5] x) => (T[2,0] y) { k = Constant<value_ints=[0]>() y, i = TopK(x, k) }", ends(0)),
    Case("topk_empty", "(T[0,5] x) => (T[0,2] y) { k = Constant<value_ints=[2]>() y, i = TopK(x, k) }", ends(2)),
    Case("topk_run_time", "(T[2,5] x, int64[1] k) => (T[2,3] y) { y, i = TopK(x, k) }", ends(3), {"k": [3]}),
    # The places of equal numbers are those that onnxruntime chose, the first ones.
    Case(
        "topk_ties",
        "(T[2,4] x) => (T[2,2] y) { k = Constant<value_ints=[2]>() y, i = TopK(x, k) }",
        lambda x: torch.stack([x[0, [1, 2]], x[1, [0, 1]]]),
        {"x": [[1, 2, 2, 2], [3, 3, 3, 1]]},
        differences=False,
    ),
    # In no order, the sum of what was chosen still has a gradient that can be told.
    Case(
        "topk_unsorted",
        "(T[2,5] x) => (T[2] z) { k = Constant<value_ints=[3]>() a = Constant<value_ints=[1]>()"
        " y, i = TopK<sorted=0>(x, k) s = Mul(y, y) z = ReduceSum<keepdims=0>(s, a) }",
        lambda x: ends(3)(x).square().sum(1),
    ),
    Case(
        "topk_twice",
        "(T[2,5] x) => (T[2,2] y, T[2,2] z)"
        " { k = Constant<value_ints=[2]>() y, i = TopK(x, k) z, j = TopK<largest=0>(x, k) }",
        both_ends,
    ),
    Case("trilu", "(T[3,4] x) => (T[3,4] y) { y = Trilu(x) }", torch.triu, half=True),
    Case("trilu_lower", "(T[2,4,3] x) => (T[2,4,3] y) { y = Trilu<upper=0>(x) }", torch.tril),
    Case(
        "trilu_above", "(T[3,4] x) => (T[3,4] y) { k = Constant<value_int=1>() y = Trilu(x, k) }", lambda x: x.triu(1)
    ),
    Case(
        "trilu_below",
        "(T[3,4] x) => (T[3,4] y) { k = Constant<value_int=-1>() y = Trilu<upper=0>(x, k) }",
        lambda x: x.tril(-1),
    ),
    Case("trilu_run_time", "(T[3,4] x, int64 k) => (T[3,4] y) { y = Trilu(x, k) }", lambda x, _: x.triu(-1), {"k": -1}),
    Case(
        "trilu_outside", "(T[3,3] x) => (T[3,3] y) { k = Constant<value_int=9>() y = Trilu(x, k) }", lambda x: x.triu(9)
    ),
    Case("trilu_empty", "(T[0,3] x) => (T[0,3] y) { y = Trilu(x) }", torch.triu),
]
