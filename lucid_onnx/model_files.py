"""Models to rewrite, read and written: nothing of a model is lost, and external data stays external."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy, deepcopy
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, Message

from lucid_onnx.external_data import (
    ENTRIES,
    all_tensors,
    check_apart,
    check_external,
    copy_data,
    external_tensors,
    finish,
    messages,
    take_unknown_entries,
    tensor_messages,
)
from lucid_onnx.files import MOST_BYTES, ModelSource, as_proto, check_readable, replacing, serialized, too_large
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError

_LOST = {
    "sparse_initializer": "sparse initializers",
    "training_info": "training information",
    "sparse_tensor": "a sparse tensor in an attribute",
    "sparse_tensors": "sparse tensors in an attribute",
    "map_type": "a map type",
    "opaque_type": "an opaque type",
}
"""Fields that onnx_ir drops or refuses."""


def read_model(source: ModelSource, caller: str = "read_model") -> ir.Model:
    """Read a model to rewrite: the result shares nothing that a rewriter changes, and external data stays where it is.

    What is said of a value (its type, an annotation) is left out where the graph has no such value.

    Parameters
    ----------
    source : path, onnx.ModelProto or onnx_ir.Model
        The model. A file is read as a protobuf, whatever its name. External data is looked for beside a path, in the
        current folder for a ``ModelProto``; it is mapped into memory when it is used, never before.
    caller : str
        Who asks, for messages.

    Raises
    ------
    ArgumentError
        The file cannot be read or is no ONNX model, or external data is missing, short or outside the model's folder.
    DtypeError
        What came is no model.
    UnsupportedError
        The model holds something that would be lost, or is newer than the installed onnx.

    Examples
    --------
    >>> import lucid_onnx as lo
    >>> model = read_model(lo.operator_model("GridSample"))
    >>> [value.name for value in model.graph.inputs]
    ['X', 'grid']
    """
    subject = f"{caller}: {os.fspath(source)!r}" if isinstance(source, str | os.PathLike) else f"{caller}: the model"
    if isinstance(source, str | os.PathLike):
        model = _from_proto(_parse(source, subject), os.path.dirname(os.path.abspath(source)), subject)
    elif isinstance(source, ir.Model):
        model = _copy(source, subject)
    else:
        own = onnx.ModelProto()
        own.CopyFrom(as_proto(source))
        model = _from_proto(own, os.getcwd(), subject)
    check_external(external_tensors(model), subject)
    return model


def write_ir(model: ir.Model, path: str | os.PathLike[str]) -> list[str]:
    """Write a model, whole or not at all; embedded tensors stay embedded, external ones external.

    Where the external tensors lie in the folder of `path` they stay as they are. Otherwise all of them are copied, in
    pieces, into one file beside `path`, named as it is with ``.data`` after it. `model` stays what it was.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    ArgumentError
        `path` cannot be written or holds data of the model itself, external data is missing, or what is embedded
        exceeds the 2 GB of a protobuf.

    Examples
    --------
    >>> import tempfile
    >>> import lucid_onnx as lo
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_ir(read_model(lo.operator_model("GridSample")), f"{folder}/sample.onnx")
    ...     [os.path.basename(name) for name in written]
    ['sample.onnx']
    """
    name = os.fspath(path)
    path = os.path.realpath(path) if os.path.islink(path) else os.fspath(path)
    external = external_tensors(model)
    check_external(external, f"cannot write {name!r}")
    folder = os.path.realpath(Path(path).parent)
    moved = any(os.path.realpath(tensor.base_dir) != folder for tensor in external)
    data = f"{path}.data"
    check_apart([path, data] if moved else [path], external)
    if moved and os.path.islink(data):
        raise ArgumentError(f"cannot write {data!r}: it is a link, which onnx does not follow")
    with ExitStack() as stack:
        # The model takes its place first: where it may not, the data of an older one must stay.
        offsets = copy_data(external, stack.enter_context(replacing(data))) if moved else None
        beside = stack.enter_context(replacing(path))
        proto = to_proto(model, f"cannot write {name!r}", Path(data).name, offsets)
        beside.write_bytes(serialized(proto, name))
    return [name, data] if moved else [name]


def _parse(path: str | os.PathLike[str], subject: str) -> onnx.ModelProto:
    check_readable(path)
    if os.path.getsize(path) > MOST_BYTES:
        raise ArgumentError(f"{subject} is not an ONNX model: it is larger than the 2 GB of a protobuf")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(Path(path).read_bytes())
    except DecodeError:
        raise ArgumentError(f"{subject} is not an ONNX model: it cannot be parsed") from None
    return proto


def _from_proto(proto: onnx.ModelProto, folder: str, subject: str) -> ir.Model:
    """The model of a protobuf, which becomes part of it."""
    _check_complete(proto, subject)
    try:
        for message in messages(proto):
            _check_message(message, subject)
        entries = [take_unknown_entries(tensor) for tensor in tensor_messages(proto)]
        model = ir.from_proto(proto)
        _add_types_of_inputs(model, proto)
    except ArgumentError:
        raise
    except (ir.serde.SerdeError, ValueError) as error:
        raise ArgumentError(f"{subject} is not a valid ONNX model: {_cause(error)}") from error
    tensors = list(all_tensors(model))
    if len(tensors) != len(entries):
        raise ArgumentError(f"{subject} is not a valid ONNX model: an attribute of type tensor holds none")
    for tensor, unknown in zip(tensors, entries, strict=True):
        if isinstance(tensor, ir.ExternalTensor):
            tensor.base_dir = folder
            tensor.meta.update({ENTRIES: unknown} if unknown else {})
    return model


def _add_types_of_inputs(model: ir.Model, proto: onnx.ModelProto) -> None:
    """What a function says of its inputs; onnx_ir writes it, but does not read it."""
    for function, message in zip(model.functions.values(), proto.functions, strict=True):
        inputs = {value.name: value for value in function.inputs}
        for info in message.value_info:
            if info.name in inputs:
                ir.serde.deserialize_value_info_proto(info, inputs[info.name])


def _check_complete(proto: onnx.ModelProto, subject: str) -> None:
    """A file that was cut off, or that holds something else, may still parse."""
    if not proto.HasField("graph"):
        raise ArgumentError(f"{subject} is not an ONNX model: it has no graph")
    if not proto.opset_import:
        raise ArgumentError(f"{subject} is not a complete ONNX model: it imports no operator set")
    if proto.ir_version > onnx.IR_VERSION:
        raise UnsupportedError(
            f"{subject} has IR version {proto.ir_version}; the installed onnx {onnx.__version__} "
            f"knows those up to {onnx.IR_VERSION}"
        )


def _check_message(message: Message, subject: str) -> None:
    """Raise unless onnx_ir keeps all of this message; spell what it only keeps in another spelling."""
    if isinstance(message, onnx.TensorProto):
        if message.HasField("segment"):
            raise UnsupportedError(f"{subject} holds a segment of the tensor {message.name!r}, which would be lost")
        if message.data_type not in onnx.TensorProto.DataType.values()[1:]:
            raise ArgumentError(f"{subject} has a tensor {message.name!r} of the unknown dtype {message.data_type}")
    elif isinstance(message, onnx.ModelProto | onnx.GraphProto | onnx.AttributeProto | onnx.TypeProto):
        for field, _ in message.ListFields():
            if field.name in _LOST:
                raise UnsupportedError(f"{subject} holds {_LOST[field.name]}, which would be lost")
    if isinstance(message, onnx.ModelProto):
        _check_unique([(f.domain, f.name, f.overload) for f in message.functions], f"{subject} has functions")
    elif isinstance(message, onnx.GraphProto):
        _check_unique([tensor.name for tensor in message.initializer], f"{subject} has initializers")
    elif isinstance(message, onnx.NodeProto):
        _check_unique([attribute.name for attribute in message.attribute], f"{subject} has, in a node, attributes")
    elif isinstance(message, onnx.AttributeProto) and not (message.type or message.ref_attr_name):
        raise ArgumentError(f"{subject} has an attribute {message.name!r} without a type")
    elif isinstance(message, onnx.TypeProto.Tensor) and not message.HasField("elem_type"):
        message.elem_type = onnx.TensorProto.UNDEFINED  # without it the shape would be lost
    elif isinstance(message, onnx.OperatorSetIdProto) and message.domain == "ai.onnx":
        message.domain = ""  # as onnx_ir spells it in every node


def _check_unique(names: Sequence[object], holder: str) -> None:
    """Raise unless each name is there and differs from the others: onnx_ir would keep one of two, and none without."""
    if "" in names or len(set(names)) < len(names):
        raise ArgumentError(f"{holder} without a name, or two of one name")


def _cause(error: BaseException) -> str:
    """What went wrong first: onnx_ir wraps an error once a level, with the text of all that is inside."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _copy(model: ir.Model, subject: str) -> ir.Model:
    """A copy with types and tensors of its own: a value that is renamed or cast changes them in place."""
    try:
        copied = model.clone()
    except RuntimeError as error:
        raise ArgumentError(f"{subject} has nodes out of order, or nodes that use values outside of it") from error
    copied.meta.update(model.meta)
    for imports in (copied.opset_imports, *(function.opset_imports for function in copied.functions.values())):
        if "ai.onnx" in imports:
            imports.setdefault("", imports.pop("ai.onnx"))
    tensors: dict[int, ir.TensorProtocol] = {}
    for graph in [copied.graph, *(function.graph for function in copied.functions.values())]:
        for part in (graph, *graph.subgraphs()):
            outputs = (value for node in part for value in node.outputs)
            for value in {*part.inputs, *part.initializers.values(), *outputs}:
                value.type = deepcopy(value.type)
                if (tensor := value.const_value) is not None:
                    value.const_value = tensors.setdefault(id(tensor), own_tensor(tensor))
    return copied


def own_tensor(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """A tensor with a name of its own over the same data."""
    if isinstance(tensor, ir.TensorProtoTensor):
        proto = onnx.TensorProto()
        proto.CopyFrom(tensor.raw)
        return ir.TensorProtoTensor(proto)
    if not isinstance(tensor, ir.ExternalTensor):
        return copy(tensor)
    own = ir.ExternalTensor(
        tensor.location,
        tensor.offset,
        tensor.length,
        tensor.dtype,
        shape=tensor.shape,
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
        base_dir=tensor.base_dir,
    )
    own.meta.update(tensor.meta)
    return own


def to_proto(
    model: ir.Model, subject: str, data: str = "", offsets: Mapping[tuple[str, int, int], int] | None = None
) -> onnx.ModelProto:
    """The protobuf of a model that `read_model` read: external data stays where it is, or goes to `data` at `offsets`.

    Raises
    ------
    ArgumentError
        What is embedded exceeds the 2 GB of a protobuf, or is no model.
    """
    embedded = sum(_width(tensor) for tensor in all_tensors(model) if not isinstance(tensor, ir.ExternalTensor))
    if embedded > MOST_BYTES:
        raise too_large(subject)
    try:
        proto = ir.to_proto(model)
    except ir.serde.SerdeError as error:
        raise ArgumentError(f"{subject}: {_cause(error)}") from error
    for tensor, message in zip(all_tensors(model), tensor_messages(proto), strict=True):
        finish(tensor, message, data, offsets)
    return proto


def _width(tensor: ir.TensorProtocol) -> int:
    try:
        return tensor.nbytes
    except TypeError:  # the dtype has no width
        return 0
