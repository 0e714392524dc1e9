"""Broadcasting undone: the one helper of all rules whose operators repeat their inputs."""

from __future__ import annotations

import onnx_ir as ir

from lucid_onnx.gradient.shapes import shape_of
from lucid_onnx.operators.building import Builder, Value, ints, reshape


def unbroadcast(op: Builder, grad: Value, like: Value) -> Value:
    """`grad` summed over the axes along which `like` was repeated: of the shape of `like`.

    Broadcasting is linear, and this is its transpose. Where the shapes do not say which axes these are, they are found
    at run time: those along which the two differ, and those that `like` does not have.
    """
    if grad.shape is not None and like.shape is not None:
        extra = len(grad.shape) - len(like.shape)
        pairs = list(zip(list(grad.shape)[extra:], like.shape, strict=True)) if extra >= 0 else []
        if extra >= 0 and all(_is_decided(a, b) for a, b in pairs):
            repeated = [extra + k for k, (a, b) in enumerate(pairs) if b == 1 and a != 1]
            if repeated or extra:
                axes = ints(op, [*range(extra), *repeated])
                grad = op.ReduceSum(grad, axes, keepdims=int(not extra))
            return reshape(op, grad, shape_of(op, like)) if extra and repeated else grad
    shape, target = shape_of(op, grad), shape_of(op, like)
    ones = op.Expand(ints(op, [1]), op.Sub(op.Shape(shape), op.Shape(target)))
    differ = op.Not(op.Equal(shape, op.Concat(ones, target, axis=0)))
    axes = op.Reshape(op.NonZero(differ), ints(op, [-1]))
    return reshape(op, op.ReduceSum(grad, axes, keepdims=1, noop_with_empty_axes=1), target)


def _is_decided(a: int | ir.SymbolicDim, b: int | ir.SymbolicDim) -> bool:
    """Whether it is known if a dimension was repeated from `b` to `a`."""
    if isinstance(b, int):
        # A dimension of 1 beside one that is not known: it is summed, which changes nothing where that is 1, too.
        return True
    return isinstance(a, ir.SymbolicDim) and a.value is not None and a == b
