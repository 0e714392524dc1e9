"""Elements and slices read, or written, at given places."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.placing import accumulate, counting, integers, place, size, widen
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value, cast, count, dims, ints, known_ints, reshape


@rule("Gather")
def gather(call: Call, g: Value) -> Gradients:
    """Slices of x by number, so that those of g are added at these numbers to zeros."""
    op, x, indices = call.op, call.x, call.input(1)
    rank, axis = call.rank(x), call.axis(x, default=0)
    length = dims(op, x, axis, axis + 1)
    index = op.Reshape(indices, ints(op, [-1]))
    numbers = _unique(integers(indices), known_ints(length))
    if numbers is None:
        return accumulate(call, g, index, size(op, x, 0, axis), length, size(op, x, axis + 1, rank))
    before = [dims(op, x, 0, axis)] if axis else []
    after = [dims(op, x, axis + 1, rank)] if axis + 1 < rank else []
    part = reshape(op, g, *before, [len(numbers)], *after)
    if len(numbers) == 1 and numbers[0] >= 0:
        return widen(call, part, ints(op, [0] * axis + numbers + [0] * (rank - axis - 1)))
    return place(call, part, index, length, axis, rank)


def _unique(indices: Sequence[int] | None, length: Sequence[int] | None) -> list[int] | None:
    """Indices, counted from the first where `length` is known, if it is known that each is another one."""
    if indices is None:
        return None
    numbers = list(indices) if length is None else [index % max(length[0], 1) for index in indices]
    alike = length is not None or len({number < 0 for number in numbers}) <= 1
    return numbers if alike and len(set(numbers)) == len(numbers) else None


@rule("GatherElements")
def gather_elements(call: Call, g: Value) -> Gradients:
    """Elements of x by their numbers along an axis, so that those of g are added at these numbers to zeros."""
    axis = call.attribute("axis", 0)
    return call.op.ScatterElements(call.zeros_like(call.x), call.input(1), g, axis=axis, reduction="add")


@rule("GatherND")
def gather_nd(call: Call, g: Value) -> Gradients:
    """Slices of x by several numbers each: g is added at the places that the same GatherND reads in a list of them."""
    op, x, indices, batch_dims = call.op, call.x, call.input(1), call.attribute("batch_dims", 0)
    depth = indices.shape[-1] if indices.shape else None
    if not isinstance(depth, int):
        raise call.unsupported("the last dimension of its indices is not known", "declare their shape")
    last = batch_dims + depth
    leading = dims(op, x, 0, last)
    length = count(op, leading)
    numbers = reshape(op, counting(op, length), leading)
    index = op.Reshape(op.GatherND(numbers, indices, batch_dims=batch_dims), ints(op, [-1]))
    return accumulate(call, g, index, ints(op, [1]), length, size(op, x, last, call.rank(x)))


@rule("ScatterElements")
def scatter_elements(call: Call, g: Value) -> Gradients:
    """The updates u written into x at indices, or added or otherwise joined to it.

    - none: du is g there, and dx is g with zeros there. Updates of one place all get its g, as in PyTorch.
    - add: dx = g, and du is g there.
    - max, min: those of x and u that are the result get equal shares of g, as in PyTorch.
    - mul: dx is g times the product of the updates. That for u is a product of all others, and is not made.
    """
    op, x, indices, updates, axis = call.op, call.x, call.input(1), call.input(2), call.attribute("axis", 0)
    reduction = call.attribute("reduction", "none")
    if reduction == "none":
        kept = op.ScatterElements(g, indices, call.zeros_like(updates), axis=axis)
        return kept, None, op.GatherElements(g, indices, axis=axis)
    if reduction == "add":
        return g, None, op.GatherElements(g, indices, axis=axis)
    if reduction == "mul":
        if call.wants(2):
            raise call.unsupported(
                'reduction="mul" has no gradient for its updates', "leave what they depend on out of wrt"
            )
        ones = op.ConstantOfShape(call.shape(x), value=ir.tensor([1.0], dtype=call.dtype))
        return op.Mul(g, op.ScatterElements(ones, indices, updates, axis=axis, reduction="mul"))
    x_is_it = op.Equal(x, call.y)
    u_is_it = op.Equal(updates, op.GatherElements(call.y, indices, axis=axis))
    is_it = [cast(op, value, call.dtype) for value in (x_is_it, u_is_it)]
    share = op.Div(g, op.ScatterElements(is_it[0], indices, is_it[1], axis=axis, reduction="add"))
    return op.Where(x_is_it, share, 0.0), None, op.Where(u_is_it, op.GatherElements(share, indices, axis=axis), 0.0)


@rule("ScatterND")
def scatter_nd(call: Call, g: Value) -> Gradients:
    """Slices u written into x, or added to it: du is g there, and dx is g, with zeros there if written."""
    op, indices, updates = call.op, call.input(1), call.input(2)
    reduction = call.attribute("reduction", "none")
    if reduction not in ("none", "add"):
        raise call.unsupported(f'reduction="{reduction}" has no gradient', "use ScatterElements")
    kept = g if reduction == "add" else op.ScatterND(g, indices, call.zeros_like(updates))
    return kept, None, op.GatherND(g, indices)
