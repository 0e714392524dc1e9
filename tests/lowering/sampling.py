"""Small models that sample, to be lowered, and what is asked of what became of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

import lucid_onnx as lo
from lucid_onnx.reference.schema import ONNX_MODES

DTYPES = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
ELEMENTS = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
}
SAMPLINGS = ("GridSample", "AffineGrid")


def parsed(text: str, opset: int = 20, more: str = "", ir_version: int = 9) -> onnx.ModelProto:
    """A model of `text`: a graph, which may be followed by functions; `more` imports other domains."""
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}{more}]>\n{text}')
    onnx.checker.check_model(model)
    return model


def single(node: onnx.NodeProto, inputs: Sequence[onnx.ValueInfoProto], y: onnx.ValueInfoProto, opset: int):
    """A model of one node."""
    opsets = [helper.make_opsetid("", opset)]
    graph = helper.make_graph([node], "single", inputs, [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=max(8, helper.find_min_ir_version_for(opsets)))


def grid_sample_model(cell, dtype, opset, x=None, points=None, grid_dtype=None) -> onnx.ModelProto:
    """One GridSample of a cell of `cells.CELLS`; shapes are symbolic unless that of the image is given."""
    rank, mode, padding_mode, align_corners = cell
    axes = rank - 2
    names = {ours: theirs for theirs, ours in ONNX_MODES.items()}
    node = helper.make_node(
        "GridSample",
        ["X", "grid"],
        ["Y"],
        "sample",
        mode=names[mode] if opset >= 20 else mode,
        padding_mode=padding_mode,
        align_corners=int(align_corners),
    )
    shapes = (["N", "C", *"DHW"[-axes:]], ["N", *"abc"[:axes], axes]) if x is None else (x, (x[0], *points, axes))
    elements = ELEMENTS[dtype], ELEMENTS[grid_dtype or dtype]
    inputs = [helper.make_tensor_value_info(*given) for given in zip(("X", "grid"), elements, shapes, strict=True)]
    return single(node, inputs, helper.make_tensor_value_info("Y", ELEMENTS[dtype], [None] * rank), opset)


def nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node, those of subgraphs and functions included."""

    def within(graph: onnx.GraphProto | onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
        for node in graph.node:
            yield node
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    yield from within(attribute.g)

    yield from within(model.graph)
    for function in model.functions:
        yield from within(function)


def operators(model: onnx.ModelProto) -> list[str]:
    """Types of all nodes."""
    return [node.op_type for node in nodes(model)]


def left(model: onnx.ModelProto) -> list[str]:
    """The samplings that a model still holds."""
    return [op for op in operators(model) if op in SAMPLINGS]


def opset_of(model: onnx.ModelProto) -> int:
    """The version of ONNX's own operators."""
    return {imported.domain: imported.version for imported in model.opset_import}[""]


def attributes(node: onnx.NodeProto) -> dict[str, object]:
    """Attributes of a node by name, strings as text."""
    values = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def run(model: onnx.ModelProto, feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime makes of a feed, in one thread."""
    return lo.session(model, threads=1).run(None, feed)
