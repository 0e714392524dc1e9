"""Products of matrices and of tensors."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TypeAlias

import onnx_ir as ir

from lucid_onnx.gradient.broadcast import unbroadcast
from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Builder, Value, dims

Size: TypeAlias = int | ir.SymbolicDim | None
"""Size of an axis; None where it is not known."""

Factor: TypeAlias = tuple[str, Value]
"""A factor of an Einsum: the index of each of its axes, and its value."""


@rule("MatMul")
def matmul(call: Call, g: Value) -> Gradients:
    """Y = A B, so that dA = G B' and dB = A' G; a vector on the left is a row, one on the right a column."""
    op, a, b = call.op, call.x, call.input(1)
    ranks = call.rank(a), call.rank(b)
    if 1 not in ranks:
        return (
            _of_left(op, a, b, g, ranks) if call.wants(0) else None,
            _of_right(op, a, b, g, ranks) if call.wants(1) else None,
        )
    a = op.Unsqueeze(a, [0]) if ranks[0] == 1 else a
    b = op.Unsqueeze(b, [1]) if ranks[1] == 1 else b
    g = op.Unsqueeze(g, [axis for axis, rank in zip((-2, -1), ranks, strict=True) if rank == 1])
    matrices = max(ranks[0], 2), max(ranks[1], 2)
    da, db = _of_left(op, a, b, g, matrices), _of_right(op, a, b, g, matrices)
    return op.Squeeze(da, [0]) if ranks[0] == 1 else da, op.Squeeze(db, [1]) if ranks[1] == 1 else db


def _of_left(op: Builder, a: Value, b: Value, g: Value, ranks: tuple[int, int]) -> Value:
    """Gradient of a product with respect to its left factor."""
    if ranks[0] == 2 < ranks[1]:
        return _over_rows(op, _transposed(op, g, ranks[1]), _transposed(op, b, ranks[1]))
    grad = op.MatMul(g, _transposed(op, b, ranks[1]))
    return grad if ranks[1] == 2 or _same_batch(a, b) else unbroadcast(op, grad, a)


def _of_right(op: Builder, a: Value, b: Value, g: Value, ranks: tuple[int, int]) -> Value:
    """Gradient of a product with respect to its right factor."""
    if ranks[1] == 2 < ranks[0]:
        return _over_rows(op, a, g)
    grad = op.MatMul(_transposed(op, a, ranks[0]), g)
    return grad if ranks[0] == 2 or _same_batch(a, b) else unbroadcast(op, grad, b)


def _over_rows(op: Builder, a: Value, b: Value) -> Value:
    """The sum of A' B over the batch, as one product: neither as large nor as slow as one for each member."""
    return op.Gemm(op.Flatten(a, axis=-1), op.Flatten(b, axis=-1), transA=1)


def _transposed(op: Builder, value: Value, rank: int) -> Value:
    return op.Transpose(value, perm=[*range(rank - 2), rank - 1, rank - 2])


def _same_batch(a: Value, b: Value) -> bool:
    """Whether two stacks of matrices are known to be stacked alike."""
    return a.shape is not None and b.shape is not None and _are_same(list(a.shape)[:-2], list(b.shape)[:-2])


@rule("Gemm")
def gemm(call: Call, g: Value) -> Gradients:
    """Y = alpha A B + beta C, so that dA = alpha G B', dB = alpha A' G, dC = beta G; A and B as they are used."""
    op, a, b, c = call.op, call.x, call.input(1), call.optional(2)
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    a_turned, b_turned = int(call.attribute("transA", 0)), int(call.attribute("transB", 0))
    if a_turned:
        da = op.Gemm(b, g, alpha=alpha, transA=b_turned, transB=1)
    else:
        da = op.Gemm(g, b, alpha=alpha, transB=1 - b_turned)
    if b_turned:
        db = op.Gemm(g, a, alpha=alpha, transA=1, transB=a_turned)
    else:
        db = op.Gemm(a, g, alpha=alpha, transA=1 - a_turned)
    dc = None if c is None else unbroadcast(op, g, c)
    return da, db, dc if dc is None or beta == 1 else op.Mul(dc, beta)


@rule("Einsum")
def einsum(call: Call, g: Value) -> Gradients:
    """y = sum of products of all x, so that dx_k = sum of products of g and of the other x, at the indices of x_k."""
    terms, result = _indices(call)
    factors = [(term, call.input(k)) for k, term in enumerate(terms)]
    return [_of_factor(call, k, factors, (result, g)) if call.wants(k) else None for k in range(len(factors))]


def _indices(call: Call) -> tuple[list[str], str]:
    """Indices of each input of an Einsum and of its output, with letters in the place of an ellipsis."""
    equation = call.attribute("equation").replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        once = sorted(index for index in set(left) if index.isalpha() and left.count(index) == 1)
        result = "".join(["..."] * ("..." in left) + once)
    free = "".join(letter for letter in string.ascii_letters if letter not in equation)
    ranks = [call.rank(call.input(k)) - len(term) + 3 for k, term in enumerate(terms) if "..." in term]
    # All ellipses stand for the same axes.
    axes = free[: max(ranks, default=0)]
    return [term.replace("...", axes) for term in terms], result.replace("...", axes)


def _of_factor(call: Call, position: int, factors: Sequence[Factor], result: Factor) -> Value:
    """Gradient of an Einsum with respect to one factor, `result` being the gradient of the result."""
    op, (own, x) = call.op, factors[position]
    others = [result, *factors[:position], *factors[position + 1 :]]
    elsewhere = {index for term, _ in others for index in term}
    grad = _contract(op, others, "".join(index for index in dict.fromkeys(own) if index in elsewhere))
    added = [axis for axis, index in enumerate(own) if index not in elsewhere or index in own[:axis]]
    grad = op.Unsqueeze(grad, added) if added else grad
    for axis, index in enumerate(own):
        if index in own[:axis]:
            grad = op.Where(_on_diagonal(op, x, len(own), own.index(index), axis), grad, call.number(0.0))
    is_even = all(_is_even(index, factors) for index in own)
    if not is_even or not elsewhere.issuperset(own):
        grad = op.Expand(grad, call.shape(x))
    return grad if is_even else unbroadcast(op, grad, x)


def _contract(op: Builder, factors: Sequence[Factor], result: str) -> Value:
    """The sum of products; each factor follows one that shares its indices, for they are multiplied from the left."""
    ordered, left = [factors[0]], list(factors[1:])
    while left:
        seen = {index for term, _ in ordered for index in term}
        ordered.append(left.pop(max(range(len(left)), key=lambda k: len(seen.intersection(left[k][0])))))
    if len(ordered) == 1 and ordered[0][0] == result:
        return ordered[0][1]
    return op.Einsum(*(value for _, value in ordered), equation=",".join(term for term, _ in ordered) + "->" + result)


def _on_diagonal(op: Builder, x: Value, rank: int, first: int, second: int) -> Value:
    """Where the positions along two axes are the same."""
    numbers = op.Range(0, op.Squeeze(dims(op, x, first, first + 1)), 1)
    return op.Equal(*(op.Unsqueeze(numbers, [k for k in range(rank) if k != axis]) for axis in (first, second)))


def _is_even(index: str, factors: Sequence[Factor]) -> bool:
    """Whether an index is known to have the same size in all factors, so that none is repeated along it."""
    sizes = [
        None if value.shape is None else value.shape[axis]
        for term, value in factors
        for axis, letter in enumerate(term)
        if letter == index
    ]
    return len(sizes) == 1 or _are_same(sizes, [sizes[0]] * len(sizes))


def _are_same(sizes: Sequence[Size], others: Sequence[Size]) -> bool:
    """Whether sizes are known to be those, by number or by name."""
    known = all(isinstance(size, int) or (size is not None and size.value is not None) for size in sizes)
    return known and list(sizes) == list(others)
