"""The tensors of a model whose data lies in files of their own: where they are, whether they are right, copies."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import Message

from lucid_onnx.reference.schema import ArgumentError

ENTRIES = "lucid_onnx.external_data"
"""Where a tensor keeps the entries of its external data that onnx_ir does not know, such as the checksum."""


def external_tensors(model: ir.Model) -> list[ir.ExternalTensor]:
    """The tensors of a model whose data lies in files, in the order of `all_tensors`."""
    return [tensor for tensor in all_tensors(model) if isinstance(tensor, ir.ExternalTensor)]


def check_external(tensors: Iterable[ir.ExternalTensor], subject: str) -> None:
    """Raise unless the data of every tensor is where a runtime will look for it."""
    sizes: dict[tuple[str, str], int] = {}
    for tensor in tensors:
        place = os.fspath(tensor.base_dir), os.fspath(tensor.location)
        try:
            if place not in sizes:
                sizes[place] = _size_of_data(*place)
            _check_span(tensor, sizes[place])
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            named = f"tensor {tensor.name!r}" if tensor.name else "a tensor without a name"
            raise ArgumentError(f"{subject}: the data of {named} is looked for in {tensor.path!r}: {reason}") from None


def _size_of_data(folder: str, location: str) -> int:
    """Bytes of a file of external data, which must be one that onnx opens too: no link, and inside the folder."""
    inside = os.path.normpath(location)
    if not location or os.path.isabs(location) or inside.split(os.sep)[0] == os.pardir:
        raise ValueError(f"the location {location!r} must be a path inside the folder of the model")
    path = os.path.join(os.path.realpath(folder), inside)
    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not an ordinary file")
    if os.path.realpath(path) != path or found.st_nlink > 1:
        raise ValueError("it is a link, which onnx does not follow; put the file itself there")
    with open(path, "rb"):
        return found.st_size


def _check_span(tensor: ir.ExternalTensor, size: int) -> None:
    """Raise unless the file, of `size` bytes, holds all of the tensor."""
    try:
        needed = tensor.nbytes
    except TypeError:  # the dtype has no width
        raise ValueError(f"a tensor of {tensor.dtype} cannot be external") from None
    offset, length = tensor.offset or 0, tensor.length or needed
    if length < needed:
        raise ValueError(f"its length is {length} bytes, and its shape needs {needed}")
    if offset < 0 or offset + length > size:
        raise ValueError(f"the file has {size} bytes, and the tensor ends at {offset + length}")


def check_apart(targets: Iterable[str], external: Iterable[ir.ExternalTensor]) -> None:
    """Raise if writing would destroy data that the model, or the file it was read from, refers to."""
    sources = {os.path.realpath(tensor.path) for tensor in external}
    for target in targets:
        if os.path.realpath(target) in sources:
            raise ArgumentError(f"cannot write {target!r}: it holds data of the model itself; choose another name")


def _place(tensor: ir.ExternalTensor) -> tuple[str, int, int]:
    return os.path.realpath(tensor.path), tensor.offset or 0, tensor.length or tensor.nbytes


def copy_data(external: Iterable[ir.ExternalTensor], target: Path) -> dict[tuple[str, int, int], int]:
    """Where in `target` the data of each place lies now. What several tensors share is copied once."""
    offsets: dict[tuple[str, int, int], int] = {}
    with open(target, "wb") as file:
        for tensor in external:
            place = _place(tensor)
            if place not in offsets:
                # A page, so that a runtime can map a large tensor.
                alignment = 4096 if place[2] >= 2**20 else 64
                file.write(bytes(-file.tell() % alignment))
                offsets[place] = file.tell()
                tensor.tofile(file)
    return offsets


def take_unknown_entries(tensor: onnx.TensorProto) -> dict[str, str]:
    """The entries that onnx_ir does not know, taken out, so that onnx does not warn that they are ignored."""
    if tensor.data_location != tensor.EXTERNAL:
        return {}
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if not all(isinstance(text, str) for entry in entries.items() for text in entry):
        raise ValueError(f"the external data of {tensor.name!r} is described in text that is not UTF-8")
    for key in ("offset", "length"):
        if not entries.get(key, "0").isdecimal():
            raise ValueError(f"the external data of {tensor.name!r} has {key} {entries[key]!r}")
    unknown = {key: value for key, value in entries.items() if key not in ("location", "offset", "length")}
    if unknown:
        del tensor.external_data[:]
        _add_entries(tensor, {key: value for key, value in entries.items() if key not in unknown})
    return unknown


def finish(
    tensor: ir.TensorProtocol, message: onnx.TensorProto, data: str, offsets: Mapping[tuple[str, int, int], int] | None
) -> None:
    """Say where the data of an external tensor lies, and undo what onnx_ir doubles."""
    if isinstance(tensor, ir.ExternalTensor):
        if offsets is None:
            _add_entries(message, tensor.meta.get(ENTRIES, {}))
        else:
            place = _place(tensor)
            del message.external_data[:]
            _add_entries(message, {"location": data, "offset": str(offsets[place]), "length": str(place[2])})
    properties = {entry.key: entry.value for entry in message.metadata_props}
    if len(properties) < len(message.metadata_props):
        del message.metadata_props[:]
        for key, value in properties.items():
            message.metadata_props.add(key=key, value=value)


def _add_entries(message: onnx.TensorProto, entries: Mapping[str, str]) -> None:
    for key, value in entries.items():
        message.external_data.add(key=key, value=value)


def messages(message: Message) -> Iterator[Message]:
    """A message and all inside it, but for what tensors hold: a look at their fields would copy their data."""
    yield message
    if not isinstance(message, onnx.TensorProto):
        for field, content in message.ListFields():
            if field.message_type is not None:
                for inner in (content,) if isinstance(content, Message) else content:
                    yield from messages(inner)


def tensor_messages(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of a protobuf, of graphs, attributes and functions."""
    return (message for message in messages(proto) if isinstance(message, onnx.TensorProto))


def all_tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    """Every tensor of a model, in the order of `tensor_messages`: by the numbers of the fields."""
    yield from _graph_tensors(model.graph)
    for function in model.functions.values():
        yield from _graph_tensors(function.graph)
        yield from _attribute_tensors(function.attributes.values())


def _graph_tensors(graph: ir.Graph) -> Iterator[ir.TensorProtocol]:
    for node in graph:
        yield from _attribute_tensors(node.attributes.values())
    for value in graph.initializers.values():
        if value.const_value is not None:
            yield value.const_value


def _attribute_tensors(attributes: Iterable[ir.Attr]) -> Iterator[ir.TensorProtocol]:
    """Taken by the type alone: ``as_tensor`` looks at every property, which loads a lazy tensor."""
    for attribute in attributes:
        if attribute.is_ref() or attribute.value is None:
            continue
        if attribute.type == ir.AttributeType.TENSOR:
            yield attribute.value
        elif attribute.type == ir.AttributeType.TENSORS:
            yield from attribute.value
        elif attribute.type == ir.AttributeType.GRAPH:
            yield from _graph_tensors(attribute.value)
        elif attribute.type == ir.AttributeType.GRAPHS:
            for graph in attribute.value:
                yield from _graph_tensors(graph)
