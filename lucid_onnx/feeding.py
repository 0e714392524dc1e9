"""From the words of a command line to the inputs of a model, and from its outputs to a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lucid_onnx.files import replacing
from lucid_onnx.images import SUFFIXES, is_picture, read_image, write_image
from lucid_onnx.reference.schema import ArgumentError
from lucid_onnx.runtime import Session, dtype_of_input

Array = npt.NDArray[Any]


def read_inputs(session: Session, words: Sequence[str]) -> dict[str, Array]:
    """Arrays for the inputs of a model.

    Parameters
    ----------
    session : Session
        The model.
    words : sequence of str
        Each is ``NAME=FILE`` (a picture or .npy), ``NAME=JSON``, an .npz with arrays by name, or a picture
        for the one input that takes one. Pictures run from 0 to 1. Pictures and JSON get the input's dtype.

    Raises
    ------
    ArgumentError
        A word that is none of these, a file that cannot be read, an input that the model does not have.
    """
    nodes = {node.name: node for node in session.get_inputs()}
    feed: dict[str, Array] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and word.endswith(".npz"):
            feed |= _read_npz(word)
        elif not equals and is_picture(word):
            name = _input_for_a_picture(nodes)
            feed[name] = _read(nodes[name], word)
        elif equals and name in nodes:
            feed[name] = _read(nodes[name], value)
        elif equals:
            raise ArgumentError(f"there is no input {name!r} (there is {', '.join(nodes)})")
        else:
            raise ArgumentError(f"{word!r} is not NAME=FILE, NAME=JSON, an .npz or a picture ({' '.join(SUFFIXES)})")
    return feed


def write_outputs(path: str, results: Mapping[str, Array], name: str | None = None) -> None:
    """Write all outputs as .npz, or one of them as a picture: that called `name`, or the first that is an image."""
    if name is not None and name not in results:
        raise ArgumentError(f"there is no output {name!r} (there is {', '.join(results)})")
    if path.endswith(".npz"):
        # NumPy cannot store bfloat16; float32 holds every one of its values.
        arrays = {key: array if array.dtype.kind != "V" else array.astype(np.float32) for key, array in results.items()}
        with replacing(path) as beside:
            np.savez(beside, allow_pickle=False, **arrays)
        return
    if not is_picture(path):
        raise ArgumentError(f"cannot tell from its name what to write to {path}: .npz or {' '.join(SUFFIXES)}")
    images = [key for key, array in results.items() if array.ndim == 4 and array.shape[1] in (1, 3, 4)]
    if name is None and not images:
        raise ArgumentError(f"no output is an image; write all to an .npz instead of {path}")
    chosen = results[images[0] if name is None else name]
    if chosen.ndim != 4 or chosen.shape[0] != 1:
        raise ArgumentError(f"a picture holds one image (1, C, H, W); got {chosen.shape}; write an .npz instead")
    write_image(path, chosen[0])


def _read(node: Any, value: str) -> Array:
    """The array that a word stands for, as the input `node`."""
    dtype = dtype_of_input(node)
    if is_picture(value):
        channels = node.shape[1] if len(node.shape) == 4 and isinstance(node.shape[1], int) else 3
        return read_image(value, channels).astype(dtype)
    if value.endswith(".npy"):
        return np.asarray(_load(value))
    try:
        return np.asarray(json.loads(value), dtype)
    except (ValueError, TypeError) as error:
        raise ArgumentError(f"{node.name}={value} is neither a file (.npy or a picture) nor JSON: {error}") from None


def _read_npz(path: str) -> dict[str, Array]:
    archive = _load(path)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ArgumentError(f"{path} is not an .npz archive")
    try:
        with archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError) as error:
        raise ArgumentError(f"cannot read {path}: {error}") from None


def _load(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise ArgumentError(f"cannot read {path}: No such file or directory") from None
    except (OSError, ValueError, EOFError) as error:
        raise ArgumentError(f"{path} is not a NumPy file that can be read: {error}") from None


def _input_for_a_picture(nodes: Mapping[str, Any]) -> str:
    names = [name for name, node in nodes.items() if len(node.shape) == 4]
    if len(names) != 1:
        has = ", ".join(names) if names else "none"
        raise ArgumentError(f"a picture alone needs one input of rank 4, the model has {has}; write NAME=picture")
    return names[0]
