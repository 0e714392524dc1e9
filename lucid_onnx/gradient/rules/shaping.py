"""The same elements in another shape or order, repeated, or some of them left out by a condition."""

from __future__ import annotations

from lucid_onnx.gradient.call import Call
from lucid_onnx.gradient.placing import place
from lucid_onnx.gradient.registry import Gradients, rule
from lucid_onnx.operators.building import Value, count, dims, ints, known_ints, reshape


@rule("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshaped(call: Call, g: Value) -> Gradients:
    """The elements of x, in their order, so that dx is g in the shape of x."""
    return reshape(call.op, g, call.shape(call.x))


@rule("Transpose")
def transpose(call: Call, g: Value) -> Gradients:
    """Axis k of y is axis perm[k] of x, so that dx is g transposed by the inverse of perm."""
    perm = call.attribute("perm")
    if perm is None:
        return call.op.Transpose(g)
    return call.op.Transpose(g, perm=sorted(range(len(perm)), key=perm.__getitem__))


@rule("Expand", broadcast=True)
def expand(call: Call, g: Value) -> Gradients:
    """Copies of x, so that dx is g, summed over them."""
    return g


@rule("Tile")
def tile(call: Call, g: Value) -> Gradients:
    """r_k copies of x along axis k, so that dx is g, seen as (r_1, d_1, r_2, d_2, …), summed over the copies."""
    op, rank = call.op, call.rank(call.x)
    if rank == 0:
        return g
    repeats, shape = call.input(1), call.shape(call.x)
    numbers, known = known_ints(repeats), known_ints(shape)
    if numbers is not None and known is not None:
        pairs = ints(op, [number for pair in zip(numbers, known, strict=True) for number in pair])
    else:
        last = ints(op, [1])
        pairs = op.Reshape(op.Concat(op.Unsqueeze(repeats, last), op.Unsqueeze(shape, last), axis=1), ints(op, [-1]))
    return call.sum(reshape(op, g, pairs), range(0, 2 * rank, 2), keepdims=False)


@rule("DepthToSpace")
def depth_to_space(call: Call, g: Value) -> Gradients:
    """A permutation, whose inverse is SpaceToDepth; that of mode CRD with the channels before the blocks."""
    op, x, block = call.op, call.x, call.attribute("blocksize")
    folded = op.SpaceToDepth(g, blocksize=block)
    if call.attribute("mode", "DCR") == "DCR":
        return folded
    apart = reshape(op, folded, dims(op, x, 0, 1), [block * block], dims(op, call.y, 1, 2), dims(op, x, 2, 4))
    return reshape(op, op.Transpose(apart, perm=[0, 2, 1, 3, 4]), call.shape(x))


@rule("SpaceToDepth")
def space_to_depth(call: Call, g: Value) -> Gradients:
    """A permutation, whose inverse is DepthToSpace."""
    return call.op.DepthToSpace(g, blocksize=call.attribute("blocksize"))


@rule("ReverseSequence")
def reverse_sequence(call: Call, g: Value) -> Gradients:
    """A permutation that is its own inverse."""
    batch_axis, time_axis = call.attribute("batch_axis", 1), call.attribute("time_axis", 0)
    return call.op.ReverseSequence(g, call.input(1), batch_axis=batch_axis, time_axis=time_axis)


@rule("Compress")
def compress(call: Call, g: Value) -> Gradients:
    """The slices of x, or without an axis its elements, where the condition holds: g there, zeros elsewhere."""
    op, x = call.op, call.x
    index = op.Reshape(op.NonZero(call.input(1)), ints(op, [-1]))
    if call.attribute("axis") is None:
        return reshape(op, place(call, g, index, count(op, call.shape(x)), axis=0, rank=1), call.shape(x))
    axis = call.axis(x)
    return place(call, g, index, dims(op, x, axis, axis + 1), axis, call.rank(x))
