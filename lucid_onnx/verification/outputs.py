"""The outputs of the lowered model beside those of the original."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from lucid_onnx.conformance.tolerance import image_range
from lucid_onnx.lowering.nodes import FLOATS, scopes, walk
from lucid_onnx.reference.schema import FLOAT_DTYPES, Array
from lucid_onnx.verification.report import OutputRow

ALLOWED = {"float64": 1e-8, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1.5e-1}
"""Largest difference, in ranges of the output, by the narrowest dtype that the model computes in.

Both models round differently in a sampling, by some eps of an image's range, and by as many eps of its size in the
coordinates; the layers behind amplify that. For float32 this is 840 eps: registration by scaling and squaring, and
optical flow of two iterations, stay some fifty times below it, and what a wrong padding or mode does lies far above.
Half precision gets 20 eps: there the lowered model is the more exact one, since it keeps the coordinates in float32.
"""

CHOICES = 1e-3
"""Part of an output that may differ by more where values are chosen, by "nearest" or as integers are."""


def relative_bound(model: ir.Model) -> float:
    """The row of `ALLOWED` that counts for a typed model."""
    names = {value.dtype.numpy().name for value in _values(model) if value.dtype in FLOATS}
    return max((ALLOWED[name] for name in names), default=ALLOWED["float32"])


def chooses(model: ir.Model) -> bool:
    """Whether a node samples by choosing pixels."""
    return any(
        node.op_type == "GridSample" and "mode" in node.attributes and node.attributes["mode"].as_string() == "nearest"
        for scope in scopes(model)
        for node in walk(scope)
    )


def compare(name: str, got: Any, expected: Any, relative: float, choice: bool) -> OutputRow | None:
    """Compare an output.

    Parameters
    ----------
    name : str
        Its name.
    got, expected : Array
        That of the lowered model, and that of the original.
    relative : float
        The bound, in ranges of the output, zero included.
    choice : bool
        Whether a part of it, `CHOICES`, may differ by more; for integers it always may.

    Returns
    -------
    OutputRow or None
        None for what is no tensor of numbers.

    Examples
    --------
    >>> compare("y", np.float32([1.00001, 2]), np.float32([1, 2]), 1e-4, choice=False).ok
    True
    >>> compare("y", np.float32([1.1, 2]), np.float32([1, 2]), 1e-4, choice=False).ok
    False
    """
    if not all(isinstance(value, np.ndarray) and value.dtype != object for value in (got, expected)):
        return None
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return OutputRow(name, 0.0, 0.0, 0, max(got.size, expected.size, 1), False)
    is_float = expected.dtype.name in FLOAT_DTYPES
    allowed = relative * image_range(expected) if is_float else 0.0
    with np.errstate(all="ignore"):
        difference = np.abs(_wide(got) - _wide(expected))
    both = np.isfinite(difference)
    same = (got == expected) | (np.isnan(_wide(got)) & np.isnan(_wide(expected)))
    beyond = int((~same & ~(both & (difference <= allowed))).sum())
    aside = beyond if (choice or not is_float) and beyond <= CHOICES * expected.size else 0
    within = difference[both & (difference <= allowed)] if aside else difference[both]
    mismatches = beyond - aside
    return OutputRow(name, float(within.max(initial=0)), allowed, aside, mismatches, not mismatches)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _values(model: ir.Model) -> list[ir.Value]:
    made = (value for node in walk(model.graph) for value in node.outputs)
    return [*model.graph.inputs, *model.graph.initializers.values(), *made]
