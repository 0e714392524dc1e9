"""Normalised and pixel coordinates, and what padding does to a coordinate; each with its derivative.

A normalised coordinate runs from -1 to 1 over an axis, a pixel coordinate from 0 to ``size - 1`` over the
centres of its pixels. With ``align_corners`` -1 and 1 are the centres of the outermost pixels, otherwise
their outer edges. All functions are elementwise, and raise NumPy's floating-point warnings where a
coordinate is not finite or a span is 0.

Mirrored by `lucid_onnx.operators.coordinates`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lucid_onnx.reference.schema import Array


def lattice(size: int, align_corners: bool, dtype: np.dtype[Any]) -> Array:
    """Normalised coordinates of the `size` pixels along an axis.

    ``-1 + 2k/(size-1)`` with `align_corners`, and 0 where ``size`` is 1; ``-1 + (2k+1)/size`` without.

    Examples
    --------
    >>> lattice(4, False, np.dtype(np.float32)).tolist()
    [-0.75, -0.25, 0.25, 0.75]
    >>> lattice(1, True, np.dtype(np.float32)).tolist()
    [0.0]
    """
    twice: Array = 2 * np.arange(size, dtype=dtype)
    if not align_corners:
        return (twice + 1) / size - 1
    if size == 1:
        return twice
    return twice / (size - 1) - 1


def unnormalize(coordinate: Array, size: int, align_corners: bool) -> Array:
    """Pixel coordinate of a normalised `coordinate`.

    The order of the operations is part of the contract: it decides on which side of a tie a float32
    coordinate falls.
    """
    if align_corners:
        return (coordinate + 1) / 2 * (size - 1)
    return ((coordinate + 1) * size - 1) / 2


def unnormalize_slope(size: int, align_corners: bool) -> float:
    """Derivative of `unnormalize`: pixels per normalised unit."""
    return (size - 1 if align_corners else size) / 2


def is_finite(pixel: Array) -> Array:
    """Whether a pixel coordinate is neither NaN nor infinite."""
    finite: Array = np.abs(pixel) < np.inf
    return finite


def clip(pixel: Array, size: int, nan_is_last: bool) -> Array:
    """`pixel` brought into ``[0, size - 1]``.

    The order of the two comparisons decides where a NaN lands: on the last pixel of a 5-D image, on the
    first of a 4-D one.
    """
    last = size - 1
    if nan_is_last:
        pixel = np.where(pixel < last, pixel, last)
        return np.where(pixel > 0, pixel, 0)
    pixel = np.where(pixel > 0, pixel, 0)
    return np.where(pixel < last, pixel, last)


def clip_slope(pixel: Array, size: int) -> Array:
    """Derivative of `clip`: 1 inside, 0 outside and on both ends, as PyTorch has it."""
    return ((pixel > 0) & (pixel < size - 1)).astype(pixel.dtype)


def reflect(pixel: Array, size: int, align_corners: bool, nan_is_last: bool) -> Array:
    """`pixel` mirrored into the image, then clipped.

    The mirrors stand on the centres of the outermost pixels (`align_corners`) or on their outer edges.
    """
    mirrored, _ = _mirror(pixel, size, align_corners)
    return clip(mirrored, size, nan_is_last)


def reflect_slope(pixel: Array, size: int, align_corners: bool) -> Array:
    """Derivative of `reflect`: the sign of the reflection, and 0 where its result is clipped."""
    mirrored, backwards = _mirror(pixel, size, align_corners)
    slope = clip_slope(mirrored, size)
    return np.where(backwards, -slope, slope)


def _mirror(pixel: Array, size: int, align_corners: bool) -> tuple[Array, Array]:
    """`pixel` folded back between the two mirrors, and whether it runs backwards there.

    Between which mirrors a pixel lies is known from the parity of the spans that fit into its distance
    from the first mirror. A span of 0 gives NaN, which clipping takes to the only pixel.
    """
    low, span = (0.0, size - 1) if align_corners else (-0.5, size)
    distance = np.abs(pixel - low)
    flips = np.floor(distance / span)
    odd = flips - 2 * np.floor(flips / 2) == 1
    remainder = np.fmod(distance, span)
    mirrored = np.where(odd, span - remainder, remainder) + low
    return mirrored, odd ^ (pixel < low)


def pad(pixel: Array, size: int, padding_mode: str, align_corners: bool, nan_is_last: bool) -> Array:
    """`pixel` as `padding_mode` moves it: clipped, mirrored, or left alone for zeros."""
    if padding_mode == "border":
        return clip(pixel, size, nan_is_last)
    if padding_mode == "reflection":
        return reflect(pixel, size, align_corners, nan_is_last)
    return pixel


def pad_slope(pixel: Array, size: int, padding_mode: str, align_corners: bool) -> Array:
    """Derivative of `pad`."""
    if padding_mode == "border":
        return clip_slope(pixel, size)
    if padding_mode == "reflection":
        return reflect_slope(pixel, size, align_corners)
    return np.ones_like(pixel)
