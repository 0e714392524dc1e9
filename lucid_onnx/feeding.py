"""From the words of a command line to the inputs of a model, and from its outputs to a file."""

from __future__ import annotations

import json
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lucid_onnx.files import check_readable, replacing
from lucid_onnx.images import SUFFIXES, is_picture, read_image, write_image
from lucid_onnx.reference.schema import FLOAT_DTYPES, ArgumentError, Array, no_such
from lucid_onnx.runtime import BFLOAT16, Session, dtype_of_input

DAMAGE = (OSError, ValueError, EOFError, MemoryError, SyntaxError, zipfile.BadZipFile, zlib.error, tokenize.TokenError)
"""What NumPy raises for files that are not what their names say."""


def read_inputs(session: Session, words: Sequence[str]) -> dict[str, Array]:
    """Arrays for the inputs of a model.

    Parameters
    ----------
    session : Session
        The model.
    words : sequence of str
        Each is ``NAME=FILE`` (a picture or .npy), ``NAME=JSON``, an .npz with arrays by name, or a picture
        for the one input that takes one. A picture runs from 0 to 1, or from 0 to 255 for an input of uint8.
        Pictures and JSON get the input's dtype; arrays keep theirs.

    Raises
    ------
    ArgumentError
        A word that is none of these, a file that cannot be read, an input that the model does not have or that
        is given twice.
    """
    nodes = session.inputs()
    feed: dict[str, Array] = {}
    for word in words:
        for name, array in _read_word(nodes, word).items():
            if name in feed:
                raise ArgumentError(f"input {name!r} is given twice")
            feed[name] = array
    return feed


def _read_word(nodes: Mapping[str, Any], word: str) -> dict[str, Array]:
    """The inputs that one word of the command line stands for."""
    named = [name for name in nodes if word.startswith(f"{name}=")]
    if named:
        name = max(named, key=len)
        return {name: _read(nodes[name], word[len(name) + 1 :])}
    if word.lower().endswith(".npz"):
        return _read_npz(word, lambda name: dtype_of_input(nodes[name]) if name in nodes else None)
    name, equals, _ = word.partition("=")
    if equals:
        raise ArgumentError(no_such("input", name, nodes))
    if is_picture(word):
        name = _input_for_a_picture(nodes)
        return {name: _read(nodes[name], word)}
    raise ArgumentError(f"{word!r} is not NAME=FILE, NAME=JSON, an .npz or a picture ({' '.join(SUFFIXES)})")


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of an .npz by name; two bytes without a meaning, as NumPy stores them, are bfloat16."""
    return _read_npz(path, lambda _: BFLOAT16)


def write_outputs(path: str, results: Mapping[str, Array], name: str | None = None) -> None:
    """Write outputs as .npz, or one as a picture: that called `name`; by default all, or the first that is an image.

    `name` is one of `results`.
    """
    if path.lower().endswith(".npz"):
        _write_npz(path, results if name is None else {name: results[name]})
        return
    if not is_picture(path):
        raise ArgumentError(f"cannot tell from its name what to write to {path}: .npz or {' '.join(SUFFIXES)}")
    images = [key for key, array in results.items() if np.ndim(array) == 4 and array.shape[1] in (1, 3, 4)]
    if name is None and not images:
        raise ArgumentError(f"no output is an image; write all to an .npz instead of {path}")
    chosen = results[images[0] if name is None else name]
    if np.ndim(chosen) != 4 or chosen.shape[0] != 1:
        raise ArgumentError(f"a picture holds one image (1, C, H, W); got {np.shape(chosen)}; write an .npz instead")
    write_image(path, chosen[0])


def _write_npz(path: str, results: Mapping[str, Array]) -> None:
    """Write arrays under any names; NumPy's own savez takes some of them for its arguments."""
    for name, array in results.items():
        if not isinstance(array, np.ndarray) or array.dtype == object:
            raise ArgumentError(f"output {name!r} is no tensor of numbers and cannot be written to {path!r}")
    with replacing(path) as beside, zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in results.items():
            # NumPy has no bfloat16 of its own; float32 holds every one of its values.
            plain = array.astype(np.float32) if array.dtype == BFLOAT16 else array
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, plain, allow_pickle=False)


def _read(node: Any, value: str) -> Array:
    """The array that a word stands for, as the input `node`."""
    dtype = dtype_of_input(node)
    if is_picture(value):
        return _read_picture(node, value, dtype)
    if value.lower().endswith(".npy"):
        return _as_stored(np.asarray(_load(value)), dtype)
    if os.path.exists(value):
        raise ArgumentError(f"{node.name} takes a picture ({' '.join(SUFFIXES)}), an .npy or JSON; got {value!r}")
    try:
        with np.errstate(over="raise"):
            return np.asarray(json.loads(value), dtype)
    except (ValueError, TypeError, OverflowError, FloatingPointError, RecursionError) as error:
        raise ArgumentError(
            f"{node.name}={value[:60]} is neither a file (.npy or a picture) nor JSON: {error}"
        ) from None


def _read_picture(node: Any, path: str, dtype: np.dtype[Any]) -> Array:
    channels = node.shape[1] if len(node.shape) == 4 and isinstance(node.shape[1], int) else 3
    image: Array = read_image(path, channels)
    if dtype == np.uint8:
        image = np.rint(image * 255)
    elif dtype.name not in FLOAT_DTYPES:
        raise ArgumentError(f"input {node.name!r} is of {dtype.name}; a picture is of uint8 or of floats; give an .npy")
    array: Array = image.astype(dtype)
    return array


def _read_npz(path: str, dtype_of: Callable[[str], np.dtype[Any] | None]) -> dict[str, Array]:
    """The arrays of an .npz, where `dtype_of` says what each is for, if it is for anything."""
    archive = _load(path)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ArgumentError(f"{path!r} is not an .npz archive")
    try:
        with archive:
            return {name: _as_stored(archive[name], dtype_of(name)) for name in archive.files}
    except DAMAGE as error:
        raise ArgumentError(f"{path!r} is damaged: {error}") from None


def _as_stored(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """`array`; NumPy stores bfloat16 as two bytes without a meaning, which an input of bfloat16 gives back."""
    stored: Array = array.view(BFLOAT16) if array.dtype == np.dtype("V2") and dtype == BFLOAT16 else array
    return stored


def _load(path: str) -> Any:
    check_readable(path)
    try:
        return np.load(path, allow_pickle=False)
    except DAMAGE as error:
        raise ArgumentError(f"{path!r} is not a NumPy file that can be read: {str(error).splitlines()[0]}") from None


def _input_for_a_picture(nodes: Mapping[str, Any]) -> str:
    names = [name for name, node in nodes.items() if len(node.shape) == 4]
    if len(names) != 1:
        has = ", ".join(names) if names else "none"
        raise ArgumentError(f"a picture alone needs one input of rank 4, the model has {has}; write NAME=picture")
    return names[0]
