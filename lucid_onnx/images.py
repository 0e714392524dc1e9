"""Pictures to arrays and back. Needs Pillow, of the extra ``viz``."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lucid_onnx.files import replacing
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError

Array = npt.NDArray[Any]

SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")
"""Names of picture files end so."""

_PILLOW_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def is_picture(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is that of a picture."""
    return os.fspath(path).lower().endswith(SUFFIXES)


def read_image(path: str | os.PathLike[str], channels: int = 3) -> Array:
    """A picture as a batch of one, (1, channels, H, W) of float32 from 0 to 1.

    Raises
    ------
    ArgumentError
        There is no such file, it is no picture, or `channels` is not 1, 3 or 4.
    UnsupportedError
        Pillow is not installed.
    """
    if channels not in _PILLOW_MODES:
        raise ArgumentError(f"a picture has 1, 3 or 4 channels; {path} cannot be read as {channels}")
    pillow = _pillow()
    try:
        with pillow.open(path) as picture:
            pixels = np.asarray(picture.convert(_PILLOW_MODES[channels]), np.float32)
    except FileNotFoundError:
        raise ArgumentError(f"cannot read {path}: No such file or directory") from None
    except (OSError, ValueError) as error:
        raise ArgumentError(f"{path} is not a picture that can be read: {error}") from None
    return np.moveaxis(pixels.reshape(*pixels.shape[:2], channels), -1, 0)[None] / np.float32(255)


def write_image(path: str | os.PathLike[str], image: Array) -> None:
    """Write (C, H, W), values from 0 to 1, as a picture of 1, 3 or 4 channels. What lies outside is clipped."""
    if image.ndim != 3 or image.shape[0] not in _PILLOW_MODES or 0 in image.shape:
        raise ArgumentError(f"a picture is (C, H, W) with 1, 3 or 4 channels; got {image.shape}")
    pillow = _pillow()
    finite = np.nan_to_num(image.astype(np.float32), nan=0.0)
    pixels = np.rint(np.clip(finite, 0, 1) * 255).astype(np.uint8)
    picture = pillow.fromarray(np.moveaxis(pixels, 0, -1).squeeze())
    with replacing(path) as beside:
        try:
            picture.save(beside)
        except (OSError, ValueError) as error:
            raise ArgumentError(f"cannot write {path}: {error}") from None


def _pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError("pictures need Pillow: pip install 'lucid-onnx[viz]'") from None
    return Image
