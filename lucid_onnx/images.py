"""Pictures to arrays and back. Needs Pillow, of the extra ``viz``."""

from __future__ import annotations

import os
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from lucid_onnx.files import check_readable, replacing
from lucid_onnx.reference.schema import FLOAT_DTYPES, ArgumentError, Array, UnsupportedError

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Names of picture files end so."""

_PILLOW_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is that of a picture."""
    return os.fspath(path).lower().endswith(SUFFIXES)


def read_image(path: str | os.PathLike[str], channels: int = 3, longest: int | None = None) -> Array:
    """A picture as a batch of one, (1, channels, H, W) of float32 from 0 to 1, upright.

    Parameters
    ----------
    path : path
        A picture of 8 or 16 bits a channel.
    channels : {1, 3, 4}
        Grey, RGB or RGBA, whatever the file holds.
    longest : int, optional
        Pixels along the longer side at the most; a larger picture is scaled down.

    Raises
    ------
    ArgumentError
        There is no such file, it is no picture of 8 or 16 bits, or `channels` is another number.
    UnsupportedError
        Pillow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_image(f"{folder}/white.png", np.ones((3, 2, 4)))
    ...     read_image(f"{folder}/white.png").shape
    (1, 3, 2, 4)
    """
    name = os.fspath(path)
    if channels not in _PILLOW_MODES:
        raise ArgumentError(f"a picture has 1, 3 or 4 channels; {name!r} cannot be read as {channels}")
    pillow, operations = _pillow()
    check_readable(path)
    try:
        with warnings.catch_warnings(), pillow.open(path) as picture:
            warnings.simplefilter("ignore")
            upright = operations.exif_transpose(picture)
            if longest is not None:
                upright.thumbnail((longest, longest))
            pixels, white = _pixels(upright, channels)
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise ArgumentError(f"{name!r} is not a picture that can be read: {error}") from None
    image = np.moveaxis(pixels.reshape(*pixels.shape[:2], channels), -1, 0)[None]
    return image.astype(np.float32) / np.float32(white)


def _pixels(picture: Any, channels: int) -> tuple[Array, int]:
    """Pixels (H, W, channels), and the value of white."""
    if picture.mode.startswith("I;16"):
        grey = np.asarray(picture, np.uint16)[..., None]
        alpha = np.full_like(grey, 65535)
        return np.concatenate([grey] * min(channels, 3) + [alpha] * (channels == 4), axis=-1), 65535
    if picture.mode in ("I", "F"):
        raise ValueError(f"its pixels have no fixed range (Pillow's mode {picture.mode!r})")
    return np.asarray(picture.convert(_PILLOW_MODES[channels])), 255


def write_image(path: str | os.PathLike[str], image: Array) -> None:
    """Write (C, H, W) as a picture of 1, 3 or 4 channels: uint8 as it is, floats from 0 to 1, the rest clipped.

    Raises
    ------
    ArgumentError
        Another shape or dtype, or a file that cannot be written.
    UnsupportedError
        Pillow is not installed.
    """
    if image.ndim != 3 or image.shape[0] not in _PILLOW_MODES or 0 in image.shape:
        raise ArgumentError(f"a picture is (C, H, W) with 1, 3 or 4 channels; got {image.shape}")
    pixels = image
    if image.dtype != np.uint8:
        if image.dtype.name not in FLOAT_DTYPES:
            raise ArgumentError(f"a picture is of uint8, or of floats from 0 to 1; got {image.dtype.name}")
        finite = np.nan_to_num(image.astype(np.float64), nan=0.0)
        pixels = np.rint(np.clip(finite, 0, 1) * 255).astype(np.uint8)
    pillow, _ = _pillow()
    last = np.moveaxis(pixels, 0, -1)
    picture = pillow.fromarray(last[..., 0] if last.shape[-1] == 1 else last)
    with replacing(path) as beside:
        try:
            picture.save(beside)
        except ValueError as error:
            raise ArgumentError(f"cannot write {os.fspath(path)!r}: {error}") from None


def _pillow() -> tuple[ModuleType, ModuleType]:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise UnsupportedError("pictures need Pillow: pip install 'lucid-onnx[viz]'") from None
    return Image, ImageOps
