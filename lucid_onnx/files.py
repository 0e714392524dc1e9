"""Writing files, of models among others: nothing is ever left half-written."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lucid_onnx.reference.schema import ArgumentError, DtypeError

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

ModelSource: TypeAlias = "str | os.PathLike[str] | onnx.ModelProto | ir.Model"
"""A model: its file, its protobuf, or its intermediate representation."""

MOST_BYTES = 2**31 - 1
"""The length of the longest protobuf."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file beside `path` to write to, which takes its place when the block ends without an error.

    A link is followed, and a file that is replaced hands its permissions on.

    Raises
    ------
    ArgumentError
        The folder does not exist or may not be written to, `path` is no ordinary file, or the disk is full.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/note.txt") as beside:
    ...         _ = beside.write_text("whole")
    ...     Path(folder, "note.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    beside: Path | None = None
    try:
        mode = _mode_of(target)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem[:16]}-", suffix=target.suffix)
        os.close(handle)
        beside = Path(name)
        yield beside
        beside.chmod(mode)
        os.replace(beside, target)
    except OSError as error:
        raise ArgumentError(f"cannot write {os.fspath(path)!r}: {error.strerror or error}") from None
    finally:
        if beside is not None:
            beside.unlink(missing_ok=True)


class _NotWanted(Exception):  # noqa: N818 - it never gets out
    """Leaves a file as it is."""


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise what `replacing` raises, before the work whose result is to go to `path`.

    Examples
    --------
    >>> check_writable("/no/such/folder/report.html")
    Traceback (most recent call last):
    lucid_onnx.reference.schema.ArgumentError: cannot write '/no/such/folder/report.html': No such file or directory
    """
    with suppress(_NotWanted), replacing(path):
        raise _NotWanted


def _mode_of(target: Path) -> int:
    """Permissions for a file at `target`: those it has, or those of a new one; an error if it is no file."""
    if not target.exists():
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
    if not target.is_file():
        raise OSError(None, "it is a folder" if target.is_dir() else "it is not an ordinary file")
    if not os.access(target, os.W_OK):
        raise OSError(None, "it is read-only")
    return stat.S_IMODE(target.stat().st_mode)


def make_folder(path: str | os.PathLike[str]) -> Path:
    """The folder `path`, made if it is not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"cannot make the folder {os.fspath(path)!r}: {error.strerror or error}") from None
    return path


def check_readable(path: str | os.PathLike[str]) -> None:
    """Raise, with a name, unless `path` is a file that may be read."""
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"cannot read {os.fspath(path)!r}: {reason}") from None


def as_proto(model: onnx.ModelProto | ir.Model) -> onnx.ModelProto:
    """The protobuf of a model.

    Raises
    ------
    DtypeError
        What came is no model.
    """
    import onnx
    import onnx_ir as ir

    if isinstance(model, onnx.ModelProto):
        return model
    if isinstance(model, ir.Model):
        return ir.to_proto(model)
    raise DtypeError(f"a model must be a path, an onnx.ModelProto or an onnx_ir.Model; got {type(model).__name__}")


def write_model(model: onnx.ModelProto, path: str | os.PathLike[str]) -> None:
    """Write a model, whole or not at all."""
    with replacing(path) as beside:
        beside.write_bytes(serialized(model, os.fspath(path)))


def serialized(proto: onnx.ModelProto, name: str) -> bytes:
    """The bytes of a protobuf that is to become the file `name`."""
    from google.protobuf.message import EncodeError

    try:
        content: bytes = proto.SerializeToString()
    except (EncodeError, ValueError):
        raise too_large(f"cannot write {name!r}") from None
    return content


def too_large(subject: str) -> ArgumentError:
    """What to raise where a model does not fit into a protobuf."""
    return ArgumentError(f"{subject}: the embedded tensors exceed the 2 GB of a protobuf; keep them in external data")
