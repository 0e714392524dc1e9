"""Taps, weights and their derivatives along one axis: nearest, linear and cubic; and their product over axes.

Every array here has a leading axis of taps, ``T`` for one axis of the image (1, 2 or 4 by mode), ``K`` for
all of them together (``T`` to the power of the rank), and behind it the axes of the points.

Mirrored by `lucid_onnx.operators.interpolation`.

Sources: R. Keys, *Cubic convolution interpolation for digital image processing*, 1981, with a = -0.75;
ONNX GridSample, opset 22; ``torch.nn.functional.grid_sample``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from lucid_onnx.reference import coordinates
from lucid_onnx.reference.coordinates import Array

KEYS_A = -0.75
"""Keys' free parameter, as PyTorch and ONNX have it."""


class Taps(NamedTuple):
    """Pixels that a point reads along one axis.

    Parameters
    ----------
    index : Array
        (T, …) whole pixel coordinates as floats; any number where not `inside`.
    inside : Array
        (T, …) bool, whether the tap is read. A tap that is not read counts as zero, whatever its weight.
    weight : Array
        (T, …) weights.
    """

    index: Array
    inside: Array
    weight: Array


def taps(pixel: Array, size: int, mode: str, padding_mode: str, align_corners: bool, rank: int) -> Taps:
    """Taps of the points at pixel coordinate `pixel`, shape (1, …), along an axis of `size` pixels.

    Nearest and linear pad the coordinate and then choose taps. Cubic takes its weights from the
    coordinate as it is and pads every tap.
    """
    nan_is_last = rank == 5
    if mode == "bicubic":
        lower = np.floor(pixel)
        index = coordinates.pad(lower + _offsets(4, -1, pixel), size, padding_mode, align_corners, nan_is_last)
        # A point whose weights are NaN reads no pixel, so that its gradient spoils none.
        inside = _in_image(index, size) & coordinates.is_finite(pixel)
        return Taps(index, inside, _cubic_weights(pixel - lower))
    padded = coordinates.pad(pixel, size, padding_mode, align_corners, nan_is_last)
    if mode == "nearest":
        index = np.rint(padded)
        return Taps(index, _in_image(index, size), np.ones_like(padded))
    lower = np.floor(padded)
    index = lower + _offsets(2, 0, pixel)
    weight = _linear_weights(padded - lower)
    if rank == 5:
        weight = np.where(coordinates.is_finite(padded), weight, 0)
    return Taps(index, _in_image(index, size), weight)


def slopes(pixel: Array, size: int, mode: str, padding_mode: str, align_corners: bool, rank: int) -> Array:
    """Derivatives of the weights of `taps` with respect to `pixel`, (T, …)."""
    if mode == "nearest":
        return np.zeros_like(pixel)
    if mode == "bicubic":
        return _cubic_slopes(pixel - np.floor(pixel))
    slope = coordinates.pad_slope(pixel, size, padding_mode, align_corners)
    if padding_mode == "zeros":
        # The value is NaN there for a 4-D image and constant for a 5-D one, and so is its derivative.
        slope = np.where(coordinates.is_finite(pixel), slope, 0 if rank == 5 else np.nan)
    return np.concatenate([-slope, slope])


def corners(per_axis: Sequence[Array]) -> Array:
    """Products of the taps of every axis: arrays (T, …) in, (K, …) out, the last axis varying fastest.

    Examples
    --------
    >>> corners([np.array([[1.0], [2.0]]), np.array([[10.0], [20.0]])]).ravel().tolist()
    [10.0, 20.0, 20.0, 40.0]
    """
    return reduce(_outer, per_axis)


def flat_index(per_axis: Sequence[Taps], sizes: Sequence[int], offset: Array) -> tuple[Array, Array]:
    """Where the corners lie in an image whose pixels are laid out in one row, and whether they are read.

    Parameters
    ----------
    per_axis : sequence of Taps
        Taps of each spatial axis, outermost first.
    sizes : sequence of int
        Pixels along each of these axes.
    offset : Array
        Position of the first pixel of each point's image; broadcast against the points.

    Returns
    -------
    index, inside : Array
        (K, …) of int64 and of bool. `index` is a valid position, and of no meaning where not `inside`.
    """
    index: Array | None = None
    for tap, size in zip(per_axis, sizes, strict=True):
        # Before the cast: what an integer made of NaN or of 1e20 is differs between machines.
        along = np.where(tap.inside, tap.index, 0).astype(np.int64)
        index = along if index is None else _outer(index * size, along, np.add)
    return index + offset, corners([tap.inside for tap in per_axis])


def _outer(a: Array, b: Array, combine: np.ufunc = np.multiply) -> Array:
    """Every tap of `a` (A, …) combined with every tap of `b` (B, …): (A*B, …)."""
    both = combine(a[:, None], b[None, :])
    return both.reshape(a.shape[0] * b.shape[0], *both.shape[2:])


def _offsets(count: int, first: int, like: Array) -> Array:
    """Column of the steps from the pixel at or below a point to its `count` taps."""
    steps = np.arange(first, first + count, dtype=like.dtype)
    return steps.reshape(count, *[1] * (like.ndim - 1))


def _in_image(index: Array, size: int) -> Array:
    return (index >= 0) & (index <= size - 1)


def _linear_weights(t: Array) -> Array:
    return np.concatenate([1 - t, t])


def _cubic_weights(t: Array) -> Array:
    """Weights of the taps at -1, 0, 1 and 2 for a point `t` beyond tap 0."""
    return np.concatenate([_keys_far(t + 1), _keys_near(t), _keys_near(1 - t), _keys_far(2 - t)])


def _cubic_slopes(t: Array) -> Array:
    """Derivatives of `_cubic_weights`: the taps ahead come nearer as `t` grows."""
    return np.concatenate(
        [_keys_far_slope(t + 1), _keys_near_slope(t), -_keys_near_slope(1 - t), -_keys_far_slope(2 - t)]
    )


def _keys_near(s: Array) -> Array:
    """Keys' kernel at a distance of 0 to 1."""
    return ((KEYS_A + 2) * s - (KEYS_A + 3)) * s * s + 1


def _keys_far(s: Array) -> Array:
    """Keys' kernel at a distance of 1 to 2."""
    return ((KEYS_A * s - 5 * KEYS_A) * s + 8 * KEYS_A) * s - 4 * KEYS_A


def _keys_near_slope(s: Array) -> Array:
    return (3 * (KEYS_A + 2) * s - 2 * (KEYS_A + 3)) * s


def _keys_far_slope(s: Array) -> Array:
    return (3 * KEYS_A * s - 10 * KEYS_A) * s + 8 * KEYS_A
