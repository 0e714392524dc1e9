"""Reading models and writing files: nothing is ever left half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lucid_onnx.reference.schema import ArgumentError, DtypeError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

ModelSource: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto | ir.Model"
"""A model: its file, its protobuf, or its intermediate representation."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block ends without an error.

    Raises
    ------
    ArgumentError
        The folder does not exist or may not be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/note.txt") as beside:
    ...         _ = beside.write_text("whole")
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise ArgumentError(f"cannot write {path}: {error.strerror or error}") from None
    beside = Path(name)
    try:
        yield beside
        beside.chmod(0o666 & ~_umask())
        os.replace(beside, path)
    except IsADirectoryError:
        raise ArgumentError(f"cannot write {path}: it is a folder") from None
    finally:
        beside.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder `path`, made if it is not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"cannot make the folder {path}: {error.strerror or error}") from None
    return path


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Contents of a file, or an error that names it."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror or error}") from None


def as_proto(model: ModelSource) -> onnx.ModelProto:
    """The protobuf of a model. External data of a file stays in its own files.

    Raises
    ------
    ArgumentError
        There is no such file, or it holds no ONNX model.
    DtypeError
        What came is no model at all.
    """
    import onnx
    import onnx_ir as ir

    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, ir.Model):
        return ir.to_proto(model)
    if isinstance(model, str | os.PathLike):
        return _parse(read_bytes(model), str(model))
    raise DtypeError(f"a model must be a path, an onnx.ModelProto or an onnx_ir.Model; got {type(model).__name__}")


def write_model(model: onnx.ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(model.SerializeToString())


def _parse(content: bytes, path: str) -> onnx.ModelProto:
    import onnx
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        model.Clear()
    if not model.opset_import or not model.HasField("graph"):
        raise ArgumentError(f"{path} is not an ONNX model")
    return model


def _umask() -> int:
    """The process's file mode mask, which mkstemp does not follow."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
