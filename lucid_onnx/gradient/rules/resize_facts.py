"""What is known of a Resize when its gradient is built: its axes, and what is done along each."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.gradient.call import Call
from lucid_onnx.lowering.nodes import constant_of
from lucid_onnx.operators.building import Value

LARGEST_BLOCK = 16
"""Up to this factor a coordinate in float32 rounds to its pixel on every axis shorter than 2^18."""

_BLOCKS = {
    ("asymmetric", "floor"),
    *(
        (transformation, rounding)
        for transformation in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
        for rounding in ("round_prefer_floor", "round_prefer_ceil")
    ),
}
"""Modes of which a whole factor repeats every pixel that many times."""


@dataclass(frozen=True)
class Axis:
    """An axis that may be resized.

    Parameters
    ----------
    number : int
        Which of the input's.
    entry : int
        Its place in scales and sizes.
    """

    number: int
    entry: int


def given(call: Call, position: int) -> Value | None:
    """An optional input, or None where it is left out or empty, as those before opset 13 were written."""
    value = call.optional(position)
    return None if value is None or (value.shape is not None and 0 in value.shape) else value


def is_crop(call: Call) -> bool:
    """Whether a region of interest is resized."""
    return bool(call.attribute("coordinate_transformation_mode") == "tf_crop_and_resize")


def keeps_aspect_ratio(call: Call) -> bool:
    """Whether one scale holds for all axes, that of one of them."""
    return given(call, 2) is None and call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"


def axes_of(call: Call) -> list[Axis]:
    """The axes that scales and sizes speak of."""
    rank = call.rank(call.x)
    numbers = call.attribute("axes") or range(rank)
    return [Axis(number % rank, entry) for entry, number in enumerate(numbers)]


def resized_axes(call: Call) -> list[Axis]:
    """The axes of which it is not known that nothing is done along them."""
    return [axis for axis in axes_of(call) if not _is_kept(call, axis)]


def blocks(call: Call) -> dict[int, int] | None:
    """How many times each pixel is repeated, by axis; None where that is not all that is done."""
    modes = (
        call.attribute("coordinate_transformation_mode", "half_pixel"),
        call.attribute("nearest_mode", "round_prefer_floor"),
    )
    if call.attribute("mode", "nearest") != "nearest" or modes not in _BLOCKS or keeps_aspect_ratio(call):
        return None
    factors = {axis.number: _factor(call, axis) for axis in resized_axes(call)}
    if any(factor not in range(1, LARGEST_BLOCK + 1) for factor in factors.values()):
        return None
    return {number: int(factor) for number, factor in factors.items() if factor is not None}


def _is_kept(call: Call, axis: Axis) -> bool:
    if keeps_aspect_ratio(call) or (is_crop(call) and not _is_whole(call, axis)):
        return False
    return _factor(call, axis) == 1 or _is_own_length(call, axis)


def _is_whole(call: Call, axis: Axis) -> bool:
    roi, many = call.input(1), len(axes_of(call))
    return (entry_number(roi, axis.entry), entry_number(roi, many + axis.entry)) == (0.0, 1.0)


def _factor(call: Call, axis: Axis) -> float | None:
    """The scale along an axis, if it is known."""
    scales = given(call, 2)
    if scales is not None:
        return entry_number(scales, axis.entry)
    before, after = (None if value.shape is None else value.shape[axis.number] for value in (call.x, call.y))
    if isinstance(before, int) and isinstance(after, int):
        return after / before if before else 1.0
    return None


def entry_number(vector: Value | None, position: int) -> float | None:
    """A number in a vector, if it is known."""
    vector, position = _origin(vector, position)
    tensor = None if vector is None else constant_of(vector)
    return None if tensor is None else float(tensor.numpy().reshape(-1)[position])


def _is_own_length(call: Call, axis: Axis) -> bool:
    """Whether a size is the length that the axis has already."""
    vector, position = _origin(call.optional(3), axis.entry)
    node = None if vector is None else vector.producer()
    if node is None or node.op_type != "Shape" or node.inputs[0] is not call.node.inputs[0]:
        return False
    start = node.attributes.get_int("start", 0)
    return position + (start + call.rank(call.x) if start < 0 else start) == axis.number


def _origin(vector: Value | None, position: int) -> tuple[Value | None, int]:
    """Where a number in a vector comes from, through operators that only move it."""
    node = None if vector is None else vector.producer()
    moved: tuple[Value | None, int] | None = None
    if node is not None and node.op_type == "Concat":
        moved = _part(node, position)
    elif node is not None and node.op_type in ("Unsqueeze", "Squeeze", "Identity"):
        moved = node.inputs[0], position
    elif node is not None and node.op_type == "Slice":
        start = entry_number(node.inputs[1], 0)
        steps = node.inputs[4] if len(node.inputs) > 4 else None
        if start is not None and start >= 0 and (steps is None or entry_number(steps, 0) == 1):
            moved = node.inputs[0], position + int(start)
    elif node is not None and node.op_type == "Gather":
        index = entry_number(node.inputs[1], position)
        if index is not None and index >= 0:
            moved = node.inputs[0], int(index)
    return (vector, position) if moved is None else _origin(*moved)


def _part(node: ir.Node, position: int) -> tuple[Value | None, int] | None:
    """The part of a Concat, and the place in it, that a place in the whole is."""
    for part in node.inputs:
        length = None if part is None or part.shape is None else part.shape[0]
        if not isinstance(length, int):
            return None
        if position < length:
            return part, position
        position -= length
    return None
