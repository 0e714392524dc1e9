"""GridSample and AffineGrid as models of one node, in the spelling of an opset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from lucid_onnx._version import __version__
from lucid_onnx.reference.schema import ONNX_MODES, SPATIAL_AXES, Array, float_dtype

RENAMED = 20
"""The opset from which on "bilinear" and "bicubic" are "linear" and "cubic"."""


def spelled(mode: str, opset: int) -> str:
    """The name of a mode at an opset.

    Examples
    --------
    >>> spelled("bilinear", 16), spelled("bilinear", 22), spelled("nearest", 22)
    ('bilinear', 'linear', 'nearest')
    """
    return {ours: name for name, ours in ONNX_MODES.items()}[mode] if opset >= RENAMED else mode


def attributes(op: str, mode: str, padding_mode: str, align_corners: bool, opset: int) -> dict[str, Any]:
    """Attributes of the node."""
    if op == "AffineGrid":
        return {"align_corners": int(align_corners)}
    return {"mode": spelled(mode, opset), "padding_mode": padding_mode, "align_corners": int(align_corners)}


def node_model(
    op: str,
    rank: int,
    mode: str,
    padding_mode: str,
    align_corners: bool,
    dtype: str,
    opset: int,
    inputs: Mapping[str, Array],
) -> onnx.ModelProto:
    """A model of one node.

    Parameters
    ----------
    op : {"GridSample", "AffineGrid"}
        X, grid -> Y, or theta, size -> grid.
    rank, mode, padding_mode, align_corners, dtype, opset
        As in a `Case`.
    inputs : mapping of str to Array
        Inputs whose shapes the model states, and the size it holds as a constant; none for symbolic dimensions.

    Examples
    --------
    >>> model = node_model("GridSample", 4, "bicubic", "border", True, "float32", 20, {})
    >>> [(node.op_type, len(node.attribute)) for node in model.graph.node]
    [('GridSample', 3)]
    """
    element = helper.np_dtype_to_tensor_dtype(float_dtype(dtype, "conformance", "dtype"))
    axes = SPATIAL_AXES[rank]
    points, d = tuple(f"{axis}o" for axis in axes), len(axes)
    symbolic: dict[str, tuple[int | str, ...]] = {
        "X": ("N", "C", *axes),
        "grid": ("N", *points, d) if op == "GridSample" else ("N", *axes, d),
        "Y": ("N", "C", *points),
        "theta": ("N", d, d + 1),
    }
    known = {name: array.shape for name, array in inputs.items()}
    if inputs and op == "GridSample":
        known["Y"] = (*known["X"][:2], *known["grid"][1:-1])
    elif inputs:
        known["grid"] = (known["theta"][0], *np.asarray(inputs["size"])[2:].tolist(), d)
    shapes = {name: known.get(name, shape) for name, shape in symbolic.items()}
    names, result = (("X", "grid"), "Y") if op == "GridSample" else (("theta", "size"), "grid")
    held = ["size"] if "size" in inputs else []
    taken = [
        helper.make_tensor_value_info("size", TensorProto.INT64, (rank,))
        if name == "size"
        else helper.make_tensor_value_info(name, element, shapes[name])
        for name in names
        if name not in held
    ]
    node = helper.make_node(op, names, [result], op, **attributes(op, mode, padding_mode, align_corners, opset))
    output = helper.make_tensor_value_info(result, element, shapes[result])
    constants = [numpy_helper.from_array(np.asarray(inputs[name]), name) for name in held]
    graph = helper.make_graph([node], op, taken, [output], constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="lucid-onnx",
        producer_version=__version__,
    )
