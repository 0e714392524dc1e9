"""What the change of opset changes for a node: by a table of meanings, and by the two signatures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import onnx_ir as ir

from lucid_onnx.lowering.opsets.obstacles import StuckError
from lucid_onnx.lowering.opsets.schemas import Signature, present
from lucid_onnx.lowering.opsets.value_types import Types


class Change(NamedTuple):
    """A change of meaning that an operator's signature does not show.

    Parameters
    ----------
    what : str
        What happened to the operator.
    converter : bool
        Whether ONNX's converter knows of it.
    concerns : callable
        Whether it concerns a node.
    """

    what: str
    converter: bool
    concerns: Callable[[ir.Node], bool]


def _always(node: ir.Node) -> bool:
    return True


def _with(attribute: str, *values: str) -> Callable[[ir.Node], bool]:
    """Whether a node has one of these values, or one that its function's caller chooses."""

    def concerns(node: ir.Node) -> bool:
        found = node.attributes.get(attribute)
        return found is not None and (found.is_ref() or found.value in values)

    return concerns


SEMANTICS_CHANGED: Mapping[tuple[str, int], Change] = {
    # operator and version: what happened, whether ONNX's converter knows, which nodes it concerns
    ("Scan", 9): Change("lost its batch axis", False, _always),
    ("Resize", 11): Change("gave pixels centres", True, _always),  # half of it: see resized_as_before_11
    ("Softmax", 13): Change("came to mean one axis only", True, _always),
    ("LogSoftmax", 13): Change("came to mean one axis only", True, _always),
    ("Hardmax", 13): Change("came to mean one axis only", False, _always),
    ("Resize", 13): Change(
        "lost tf_half_pixel_for_nn", False, _with("coordinate_transformation_mode", "tf_half_pixel_for_nn")
    ),
    ("BatchNormalization", 14): Change(
        "came to need training_mode for further outputs", False, lambda node: len(present(node.outputs)) > 1
    ),
    ("RoiAlign", 16): Change("moved by half a pixel", True, _always),
    ("ScatterElements", 18): Change("got the reductions max and min", False, _with("reduction", "max", "min")),
    ("ScatterND", 18): Change("got the reductions max and min", False, _with("reduction", "max", "min")),
    ("Split", 18): Change("got num_outputs", True, lambda node: len(present(node.inputs)) < 2),
    ("Pad", 19): Change("got the mode wrap", False, _with("mode", "wrap")),
    ("Resize", 19): Change(
        "got half_pixel_symmetric", False, _with("coordinate_transformation_mode", "half_pixel_symmetric")
    ),
    ("DFT", 20): Change("got another default axis", True, _always),
    ("GroupNormalization", 21): Change("came to scale channels instead of groups", False, _always),
    ("Attention", 24): Change("changed", True, _always),
    ("Attention", 25): Change("changed", True, _always),
    ("Mod", 28): Change("came to take floats with fmod=0", True, _always),
}
"""What changed between versions from `OLDEST_SOURCE` on although a node may look valid on both sides.

From the differences of the schemas' texts in onnx 1.23. AveragePool 19 and 22 word ceil_mode anew; onnxruntime 1.32
gives the same for all of them.
"""

_SAY_HOW_TO_ROUND = {
    # These came together with the element types that they speak of: who lacks the one lacks the other.
    *((operator, "saturate") for operator in ("Cast", "CastLike", "QuantizeLinear")),
    *((operator, "round_mode") for operator in ("Cast", "CastLike")),
}


def changes_between(node: ir.Node, source: int, opset: int) -> list[tuple[int, Change]]:
    """The rows of the table that concern `node` on its way, with their versions."""
    crossed = range(min(source, opset) + 1, max(source, opset) + 1)
    rows = [(version, SEMANTICS_CHANGED.get((node.op_type, version))) for version in crossed]
    return [(version, change) for version, change in rows if change is not None and change.concerns(node)]


def droppable(node: ir.Node, old: Signature, new: Signature, types: Types) -> tuple[str, ...]:
    """Attributes without which `node` is valid, and means the same, by the new signature."""
    _check_values(node, old, new)
    types.check(node, new)
    dropped = tuple(name for name in node.attributes if name not in new.defaults)
    for name in dropped:
        attribute = node.attributes[name]
        moot = (node.op_type, name) in _SAY_HOW_TO_ROUND
        if not moot and (attribute.is_ref() or attribute.value != old.defaults.get(name)):
            raise StuckError(f"it has no attribute {name} there")
    for name in new.defaults:
        if name not in node.attributes and name in old.defaults and old.defaults[name] != new.defaults[name]:
            raise StuckError(f"its attribute {name} has another default there")
    _check_required(node, new)
    return dropped


def _check_values(node: ir.Node, old: Signature, new: Signature) -> None:
    """Raise unless each input and output of `node` is the same one by the new signature."""
    for which, values, most in (("inputs", node.inputs, new.most_inputs), ("outputs", node.outputs, new.most_outputs)):
        for position, value in enumerate(present(values)):
            if value is None:
                continue
            before = old.formal(which, position).name
            if position >= most or new.formal(which, position).name != before:
                raise StuckError(f"it has no {which[:-1]} {before} there")


def _check_required(node: ir.Node, new: Signature) -> None:
    inputs = present(node.inputs)
    for position, parameter in enumerate(new.inputs):
        if parameter.required and (position >= len(inputs) or inputs[position] is None):
            raise StuckError(f"its input {parameter.name} is missing there")
    for name in new.required:
        if name not in node.attributes:
            raise StuckError(f"its attribute {name} is missing there")
