"""Reading GridSample and AffineGrid nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx_ir as ir

from lucid_onnx.operators.building import Value
from lucid_onnx.reference.schema import (
    MODES,
    ONNX_MODES,
    PADDING_MODES,
    SPATIAL_AXES,
    ArgumentError,
    UnsupportedError,
)

OPERATORS = ("GridSample", "AffineGrid")
"""The operators that are lowered."""

GUARDED = "lucid_onnx.guarded"
"""Metadata of a node whose coordinates are guarded already, so that lowering again adds nothing."""

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""The floating dtypes that are sampled, and that have a derivative."""

INPUTS = {"GridSample": ("X", "grid"), "AffineGrid": ("theta", "size")}


@dataclass(frozen=True)
class Sampling:
    """A node to lower, and what is known of it.

    Parameters
    ----------
    op : {"GridSample", "AffineGrid"}
        What it does.
    rank : int
        Rank of the image.
    mode, padding_mode : str
        As in `grid_sample`; empty for AffineGrid.
    align_corners : bool
        Likewise.
    dtype, grid_dtype : onnx_ir.DataType
        Of the image or theta, and of the grid.
    shape : tuple
        Of the image or theta; None where symbolic.
    sizes : tuple of int, optional
        Spatial sizes of the grid that AffineGrid makes, where they are constant.
    """

    op: str
    rank: int
    mode: str
    padding_mode: str
    align_corners: bool
    dtype: ir.DataType
    grid_dtype: ir.DataType
    shape: tuple[int | None, ...]
    sizes: tuple[int, ...] | None = None

    @property
    def channels(self) -> int | None:
        """Number of channels, where it is known."""
        return self.shape[1]

    def __str__(self) -> str:
        corners = f"align_corners={int(self.align_corners)}"
        if self.op == "AffineGrid":
            return f"{self.rank}-D {corners} {self.dtype.numpy().name}"
        return f"{self.rank}-D {self.mode} {self.padding_mode} {corners} {self.dtype.numpy().name}"


def is_sampling(node: ir.Node) -> bool:
    """Whether a node is one of the two operators."""
    return node.domain == "" and node.op_type in OPERATORS


def label(node: ir.Node) -> str:
    """What a message or a report calls a node."""
    name = node.name or (node.outputs[0].name if node.outputs else None) or "without a name"
    return f"{node.op_type} node {name!r}"


def subgraphs(node: ir.Node) -> list[ir.Graph]:
    """The graphs that are attributes of a node."""
    found: list[ir.Graph] = []
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            found.append(attribute.as_graph())
        elif attribute.type == ir.AttributeType.GRAPHS:
            found += attribute.as_graphs()
    return found


def scopes(model: ir.Model) -> list[ir.Graph | ir.Function]:
    """The main graph and every function: what has opset imports of its own."""
    return [model.graph, *model.functions.values()]


def walk(graph: ir.Graph | ir.Function) -> Iterator[ir.Node]:
    """Every node, those of subgraphs included, in an order that their rewriting does not disturb."""
    return iter([*graph.all_nodes()])


def read(node: ir.Node) -> Sampling:
    """What a GridSample or AffineGrid node does.

    Raises
    ------
    ArgumentError
        A mode or a padding mode that ONNX does not have.
    UnsupportedError
        A rank or a dtype that cannot be lowered, or one that is not known.
    """
    if len(node.outputs) != 1:
        raise ArgumentError(f"{label(node)}: it has {len(node.outputs)} outputs; ONNX's has one")
    if node.op_type == "AffineGrid":
        return _read_affine_grid(node)
    mode = _string(node, "mode", "linear")
    padding_mode = _string(node, "padding_mode", "zeros")
    mode = ONNX_MODES.get(mode, mode)
    for name, value, known in (("mode", mode, (*MODES, *ONNX_MODES)), ("padding_mode", padding_mode, PADDING_MODES)):
        if value not in known:
            raise ArgumentError(f"{label(node)}: {name} is {value!r}; ONNX has {', '.join(known)}")
    x, grid = (_input(node, k) for k in (0, 1))
    rank = _rank(node, x, grid)
    shape = known_dimensions(x, rank)
    return Sampling(
        "GridSample", rank, mode, padding_mode, _flag(node), _dtype(node, x, "X"), _dtype(node, grid, "grid"), shape
    )


def _read_affine_grid(node: ir.Node) -> Sampling:
    theta, size = _input(node, 0), _input(node, 1)
    rank = _length(size)
    if rank is None and theta.shape is not None and len(theta.shape) == 3 and isinstance(theta.shape[1], int):
        rank = theta.shape[1] + 2
    if rank not in SPATIAL_AXES:
        raise UnsupportedError(
            f"{label(node)}: the length of size {'is not known' if rank is None else f'is {rank}'}; "
            "give theta or size a static shape, for images (4) or volumes (5)"
        )
    dtype = _dtype(node, theta, "theta")
    constant = constant_of(size)
    sizes = None if constant is None else tuple(int(n) for n in constant.numpy()[2:])
    return Sampling("AffineGrid", rank, "", "", _flag(node), dtype, dtype, known_dimensions(theta, 3), sizes)


def constant_of(value: Value) -> ir.TensorProtocol | None:
    """The tensor of a value that is the same at every run: a Constant, or an initializer that is no input."""
    if value.is_graph_input():
        return None
    producer = value.producer()
    if producer is not None and producer.op_type == "Identity" and producer.domain == "":
        (source,) = producer.inputs
        return None if source is None else constant_of(source)
    return ir.convenience.get_const_tensor(value)


def _input(node: ir.Node, position: int) -> Value:
    name = INPUTS[node.op_type][position]
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None:
        raise ArgumentError(f"{label(node)}: its input {name} is missing")
    return value


def _rank(node: ir.Node, x: Value, grid: Value) -> int:
    output = node.outputs[0]
    ranks = {len(value.shape) for value in (x, grid, output) if value.shape is not None}
    if len(ranks) != 1:
        known = " and ".join(map(str, sorted(ranks))) or "unknown"
        raise UnsupportedError(
            f"{label(node)}: the ranks of X and grid must be known and equal, they are {known}; declare their shapes"
        )
    (rank,) = ranks
    if rank not in SPATIAL_AXES:
        raise UnsupportedError(f"{label(node)}: X is {rank}-D; only images (4-D) and volumes (5-D) are sampled")
    return rank


def known_dimensions(value: Value, rank: int) -> tuple[int | None, ...]:
    """Shape of a value that has `rank` dimensions; None where one is not known."""
    if value.shape is None:
        return (None,) * rank
    return tuple(d if isinstance(d, int) else None for d in value.shape)


def _dtype(node: ir.Node, value: Value, name: str) -> ir.DataType:
    if value.dtype is None:
        raise UnsupportedError(f"{label(node)}: the dtype of {name} is not known; declare it as a value_info")
    if value.dtype not in FLOATS and not (name == "X" and value.dtype in _COUNTED):
        raise UnsupportedError(
            f"{label(node)}: {name} is of {value.dtype.name.lower()}, which is not sampled; cast it to a float first"
        )
    return value.dtype


_COUNTED = (
    ir.DataType.BOOL,
    ir.DataType.UINT8,
    ir.DataType.INT8,
    ir.DataType.UINT16,
    ir.DataType.INT16,
    ir.DataType.INT32,
    ir.DataType.UINT32,
)
"""Integers of which a float64 holds every one, so that an image of them is sampled as floats."""


def _length(vector: Value) -> int | None:
    """Length of a one-dimensional value, where it is known."""
    if vector.shape is None or len(vector.shape) != 1 or not isinstance(vector.shape[0], int):
        return None
    return vector.shape[0]


def _string(node: ir.Node, name: str, default: str) -> str:
    attribute = node.attributes.get(name)
    if attribute is None:
        return default
    if attribute.is_ref() or attribute.type != ir.AttributeType.STRING:
        raise ArgumentError(f"{label(node)}: its attribute {name} must be a string")
    return text_of(node, name, attribute)


def text_of(node: ir.Node, name: str, attribute: ir.Attr) -> str:
    """A string attribute; bytes that are no UTF-8 stay bytes in onnx_ir."""
    if not isinstance(attribute.value, str):
        raise ArgumentError(f"{label(node)}: its attribute {name} is not text")
    return attribute.value


def _flag(node: ir.Node) -> bool:
    attribute = node.attributes.get("align_corners")
    if attribute is None:
        return False
    if attribute.is_ref() or attribute.type != ir.AttributeType.INT:
        raise ArgumentError(f"{label(node)}: its attribute align_corners must be an integer")
    return bool(attribute.as_int())
