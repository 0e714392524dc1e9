"""The opset of the rewritten model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from lucid_onnx.lowering.decide import has_kernel
from lucid_onnx.lowering.nodes import Sampling
from lucid_onnx.lowering.opsets import first_obstacle
from lucid_onnx.lowering.rows import Target
from lucid_onnx.operators.finishing import OLDEST_OPSET, newest_opset
from lucid_onnx.reference.schema import UnsupportedError


def choose_opset(
    model: ir.Model, target: Target, samplings: Sequence[Sampling], before: int, asked: int | None
) -> tuple[int, str]:
    """Opset of the rewritten model, and why it is another than before.

    Without one that was asked for, the opset is that at which the target has kernels for most of the nodes and to
    which the rest of the model can follow, and of several the one nearest to that of the model.
    """
    newest = target.newest_opset
    if asked is not None:
        if newest is not None and asked > newest:
            raise UnsupportedError(f"lower: {target.name} reads opsets up to {newest}; {asked} was asked for")
        return asked, "asked for"
    here = max(before, OLDEST_OPSET)
    why = f"GridSample came with opset {OLDEST_OPSET}" if here != before else ""
    if newest is not None and here > newest:
        here, why = newest, f"the target reads opsets up to {newest}"
    count = _kernels(target, samplings, here)
    best = here
    for other in sorted(_candidates(target, here), key=lambda opset: abs(opset - here)):
        more = _kernels(target, samplings, other)
        if more > count and first_obstacle(model, other) is None:
            best, count = other, more
            why = f"the target has no kernel at opset {here}"
    return best, why


def _kernels(target: Target, samplings: Sequence[Sampling], opset: int) -> int:
    """For how many of the nodes the target has a kernel at `opset`."""
    return sum(has_kernel(target, sampling, opset) for sampling in samplings)


def _candidates(target: Target, here: int) -> Iterator[int]:
    """For each row the opset nearest to `here` at which it counts."""
    limit = newest_opset() if target.newest_opset is None else target.newest_opset
    for kernel in target.kernels:
        oldest, newest = kernel.opsets
        yield min(max(here, oldest), limit if newest is None else min(newest, limit))
