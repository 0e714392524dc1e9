"""Pieces of Python that a reproducer is made of: arrays and models, written down."""

from __future__ import annotations

import base64
import lzma
import re
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper

from lucid_onnx.reference.schema import Array

MOST_NODES = 4
"""Nodes of the largest model that is shown as text; one that is larger is packed."""

PARTS = (1, 2, 128, 256)
"""Values that are whole numbers of these parts are written as such."""


def assignment(name: str, array: Array, module: str = "np") -> str:
    """A statement that makes an array.

    Parameters
    ----------
    name : str
        Of the variable.
    array : Array
        What it is to be, to the bit.
    module : {"np", "torch"}
        Whether it is an array of NumPy or a tensor of PyTorch.

    Examples
    --------
    >>> print(assignment("X", np.float32([[0.5, 0.75], [0.25, np.nan]])))
    X = np.array([[0.5, 0.75],
                  [0.25, nan]], np.float32)
    >>> print(assignment("X", np.float16([0.5, 0.75]), "torch"))
    X = torch.tensor([64, 96], dtype=torch.float16) / 128
    >>> print(assignment("grid", np.zeros((1, 0, 2))))
    grid = np.zeros((1, 0, 2), np.float64)
    """
    word = array.dtype.name
    dtype = f"dtype=torch.{word}" if module == "torch" else f"ml_dtypes.{word}" if word == "bfloat16" else f"np.{word}"
    for filled, value in (("zeros", 0), ("ones", 1)):
        # -0 is a value of its own.
        if array.size != 1 and (array == value).all() and not np.signbit(array.astype(np.float64)).any():
            return f"{name} = {module}.{filled}({array.shape}, {dtype})"
    start = f"{name} = {module}.{'tensor' if module == 'torch' else 'array'}("
    values, parts = _in_parts(array)
    return f"{start}{_nested(values, len(start))}, {dtype})" + (f" / {parts}" if parts > 1 else "")


def _in_parts(array: Array) -> tuple[list[Any], int]:
    """Values as nested lists of short texts, and by what they are to be divided."""
    if array.dtype.kind in "iu":
        return array.tolist(), 1
    wide = array.astype(np.float64)
    if np.isfinite(wide).all() and not np.signbit(wide[wide == 0]).any():
        for parts in PARTS:
            counts = wide * parts
            # So far up every dtype, bfloat16 too, has all whole numbers.
            if (np.abs(counts) <= 256).all() and (counts == np.rint(counts)).all():
                return counts.astype(np.int64).tolist(), parts
    texts = np.array([_shortest(value) for value in array.ravel()], dtype=object)
    return texts.reshape(array.shape).tolist(), 1


def _shortest(value: Any) -> str:
    """The shortest text that gives a value back if it is read as a float64 and rounded."""
    text = str(value)
    return text if np.isnan(value) or type(value)(float(text)) == value else repr(float(value))


def _nested(values: list[Any], indent: int) -> str:
    """Nested lists, with a row a line."""
    if not values or not isinstance(values[0], list):
        return f"[{', '.join(map(str, values))}]"
    between = ",\n" + " " * (indent + 1)
    return f"[{between.join(_nested(row, indent + 1) for row in values)}]"


def model_expression(model: onnx.ModelProto) -> str:
    """An expression for a model: its text if it is small, its bytes if it is not."""
    model = _bare(model)
    if len(model.graph.node) <= MOST_NODES:
        text = re.sub(
            r"<\s+ir_version: (\d+),\s+opset_import: (.*?)\s+>",
            r"<ir_version: \1, opset_import: \2>",
            onnx.printer.to_text(model),
        )
        return f'onnx.parser.parse_model("""\n{text.strip()}""")'
    packed = lzma.compress(_shortly_named(model).SerializeToString(), lzma.FORMAT_ALONE)
    # base64, since a page must write & and < of base85 as entities.
    lines = "\n".join(textwrap.wrap(base64.b64encode(packed).decode(), 100))
    return f'onnx.load_model_from_string(lzma.decompress(base64.b64decode("""\n{lines}""")))'


def _bare(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without what says nothing about the computation."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for field in ("producer_name", "producer_version", "doc_string"):
        bare.ClearField(field)
    for node in bare.graph.node:
        node.ClearField("name")
        node.ClearField("doc_string")
    return bare


def _shortly_named(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model`, with short names for its own values, which packs to half the size."""
    graph = model.graph
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    if any(attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for attribute in attributes):
        return model
    outside = {"", *(value.name for value in (*graph.input, *graph.output))}
    inside = {tensor.name for tensor in graph.initializer} | {name for node in graph.node for name in node.output}
    names = {name: f"_{number:x}" for number, name in enumerate(sorted(inside - outside))}
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    _rename(graph.node, names)
    del graph.value_info[:]
    return model


def _rename(nodes: Sequence[onnx.NodeProto], names: dict[str, str]) -> None:
    for node in nodes:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]


def between_casts(model: onnx.ModelProto) -> onnx.ModelProto:
    """`model` between Casts, so that its inputs and outputs of bfloat16, which NumPy lacks, are float32.

    Examples
    --------
    >>> from lucid_onnx.conformance.nodes import node_model
    >>> model = node_model("GridSample", 4, "bilinear", "zeros", False, "bfloat16", 22, {})
    >>> [node.op_type for node in between_casts(model).graph.node]
    ['Cast', 'Cast', 'GridSample', 'Cast']
    """
    outer = onnx.ModelProto()
    outer.CopyFrom(model)
    graph = outer.graph
    taken, given = ([value for value in values if _is_bfloat16(value)] for values in (graph.input, graph.output))
    inner = {value.name: f"{value.name}_bfloat16" for value in (*taken, *given)}
    for value in (*taken, *given):
        value.type.tensor_type.elem_type = TensorProto.FLOAT
    _rename(graph.node, inner)
    before = [helper.make_node("Cast", [value.name], [inner[value.name]], to=TensorProto.BFLOAT16) for value in taken]
    after = [helper.make_node("Cast", [inner[value.name]], [value.name], to=TensorProto.FLOAT) for value in given]
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return outer


def _is_bfloat16(value: onnx.ValueInfoProto) -> bool:
    return bool(value.type.tensor_type.elem_type == TensorProto.BFLOAT16)
