"""What ONNX's converter does not do, or not rightly: a Split into equal parts, and a Resize from before opset 11."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from lucid_onnx.lowering.opsets.obstacles import StuckError
from lucid_onnx.lowering.opsets.steps import Step, constant_step
from lucid_onnx.lowering.opsets.value_types import small_constant_of


def split_by_sizes(node: ir.Node) -> tuple[Step, ...]:
    """A Split into `num_outputs` chunks, the last of which may be smaller, said by the sizes of the chunks."""
    axis, parts = node.attributes.get_int("axis", 0), len(node.outputs)
    length, *sizes = (_length(value, axis) for value in (node.inputs[0], *node.outputs))
    if None in sizes:
        if length is None:
            raise StuckError(f"the size of its input along axis {axis} is not known")
        chunk = -(-length // parts)
        sizes = [min(chunk, max(length - chunk * i, 0)) for i in range(parts)]
    attributes = tuple(attribute for name, attribute in node.attributes.items() if name != "num_outputs")
    outputs = tuple(f"y{i}" if value.name else "" for i, value in enumerate(node.outputs))
    return (
        constant_step("split", ir.tensor(np.array(sizes, np.int64))),
        Step("Split", ("x0", "split"), outputs, attributes),
    )


def _length(value: ir.Value | None, axis: int) -> int | None:
    """The size of `value` along `axis`, where it is known."""
    shape = None if value is None else value.shape
    length = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    return length if isinstance(length, int) else None


def resized_as_before_11(node: ir.Node, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Tell a Resize that comes from before opset 11 to sample as then, which ONNX's converter forgets.

    Upsample and Resize had their pixels at integer coordinates. Nearest took the pixel at or before an enlarged
    one, and (onnx's own test of a scale of 0.6, onnxruntime) the one at or after a reduced one.
    """
    return tuple(
        Step(
            step.operator,
            step.inputs,
            step.outputs,
            (
                *step.attributes,
                ir.AttrString("coordinate_transformation_mode", "asymmetric"),
                ir.AttrString("nearest_mode", _nearest_mode(node)),
            ),
        )
        if step.operator == "Resize"
        else step
        for step in steps
    )


def _nearest_mode(node: ir.Node) -> str:
    mode = node.attributes.get_string("mode", "nearest")
    if node.op_type == "Upsample" or mode != "nearest":
        return "floor"
    scales = None if node.inputs[1] is None else small_constant_of(node.inputs[1])
    if scales is None:
        raise StuckError("whether it enlarges or reduces is not known")
    values = scales.numpy()
    if (values >= 1).all():
        return "floor"
    if (values <= 1).all():
        return "ceil"
    raise StuckError("it enlarges one axis and reduces another")
