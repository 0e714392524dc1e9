"""Taps, weights and their derivatives along one axis: nearest, linear and cubic; and their product over axes.

Every array here is (T, P) or (K, P): P points, and T taps along one axis of the image (1, 2 or 4 by mode) or
K taps in all of it (T to the power of its number of axes).

Mirrored by `lucid_onnx.operators.interpolation`.

Sources: R. Keys, *Cubic convolution interpolation for digital image processing*, 1981, with a = -0.75;
ONNX GridSample, opset 22; ``torch.nn.functional.grid_sample``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lucid_onnx.reference import coordinates
from lucid_onnx.reference.schema import KEYS_A, TAPS, Array


@dataclass(frozen=True)
class Taps:
    """Pixels that the points read along one axis.

    Parameters
    ----------
    index : Array
        (T, P) whole pixel coordinates, as floats.
    inside : Array
        (T, P) bool, whether the tap is read. One that is not counts as zero, whatever its weight.
    weight : Array, optional
        (T, P) weights; None where all are 1.
    """

    index: Array
    inside: Array
    weight: Array | None


def taps(pixel: Array, size: int, mode: str, padding_mode: str, align_corners: bool, rank: int) -> Taps:
    """Taps of points at the pixel coordinates `pixel`, (1, P), along an axis of `size` pixels.

    Nearest and linear pad the coordinate and then choose taps. Cubic takes its weights from the
    coordinate as it is and pads every tap.
    """
    nan_is_last = rank == 5
    if mode == "bicubic":
        lower = np.floor(pixel)
        index = np.concatenate([lower - 1, lower, lower + 1, lower + 2])
        index = coordinates.pad(index, size, padding_mode, align_corners, nan_is_last)
        # A point whose weights are NaN reads no pixel, so that its gradient spoils none.
        inside = _in_image(index, size) & coordinates.is_finite(pixel)
        return Taps(index, inside, cubic_weights(pixel - lower))
    padded = coordinates.pad(pixel, size, padding_mode, align_corners, nan_is_last)
    if mode == "nearest":
        index = np.rint(padded)
        return Taps(index, _in_image(index, size), None)
    lower = np.floor(padded)
    index = np.concatenate([lower, lower + 1])
    weight = _linear_weights(padded - lower)
    if rank == 5 and padding_mode == "zeros":
        weight = np.where(coordinates.is_finite(pixel), weight, 0)
    return Taps(index, _in_image(index, size), weight)


def slopes(pixel: Array, size: int, mode: str, padding_mode: str, align_corners: bool, rank: int) -> Array:
    """Derivatives (T, P) of the weights of `taps` with respect to `pixel`; linear and cubic only."""
    if mode == "bicubic":
        return cubic_slopes(pixel - np.floor(pixel))
    slope = coordinates.pad_slope(pixel, size, padding_mode, align_corners)
    if padding_mode == "zeros":
        # Where the coordinate is not finite a 4-D image gives NaN and a 5-D one 0: so do their derivatives.
        slope = np.where(coordinates.is_finite(pixel), slope, 0 if rank == 5 else np.nan)
    return np.concatenate([-slope, slope])


def corners(per_axis: Sequence[Array], mode: str) -> Array:
    """Product of one tap of every axis, for all combinations: arrays (T, P) in, (K, P) out.

    The taps of the last axis vary fastest.

    Examples
    --------
    >>> corners([np.array([[1.0], [2.0]]), np.array([[10.0], [20.0]])], "bilinear").ravel().tolist()
    [10.0, 20.0, 20.0, 40.0]
    """
    result, *others = _combinations(per_axis, mode)
    for other in others:
        result = result * other
    return result


def flat_index(per_axis: Sequence[Taps], sizes: Sequence[int], offset: Array, mode: str) -> tuple[Array, Array]:
    """Positions that the points read when the pixels of all images lie in one row.

    Parameters
    ----------
    per_axis : sequence of Taps
        Taps along each spatial axis, outermost first.
    sizes : sequence of int
        Pixels along each of these axes.
    offset : Array
        (P,) position of the first pixel of each point's image.
    mode : str
        The interpolation mode.

    Returns
    -------
    index, inside : Array
        (K, P) of int64 and of bool. `index` means nothing where not `inside`.
    """
    # Masked before the cast: what NaN and 1e20 become as integers differs between machines.
    along = [np.where(tap.inside, tap.index, 0).astype(np.int64) for tap in per_axis]
    index, *others = _combinations(along, mode)
    for other, size in zip(others, sizes[1:], strict=True):
        index = index * size + other
    inside, *others = _combinations([tap.inside for tap in per_axis], mode)
    for other in others:
        inside = inside & other
    return index + offset, inside


def _combinations(per_axis: Sequence[Array], mode: str) -> list[Array]:
    """The taps (T, P) of each axis, repeated to (K, P) so that the rows run through all combinations."""
    count = TAPS[mode]
    if count == 1:
        return list(per_axis)
    chosen = zip(*product(range(count), repeat=len(per_axis)), strict=True)
    return [values.take(rows, axis=0) for values, rows in zip(per_axis, chosen, strict=True)]


def _in_image(index: Array, size: int) -> Array:
    return (index >= 0) & (index <= size - 1)


def _linear_weights(t: Array) -> Array:
    return np.concatenate([1 - t, t])


def cubic_weights(t: Array) -> Array:
    """Weights of the taps at -1, 0, 1 and 2 for a point `t` beyond tap 0."""
    return np.concatenate([_keys_far(t + 1), _keys_near(t), _keys_near(1 - t), _keys_far(2 - t)])


def cubic_slopes(t: Array) -> Array:
    """Derivatives of `cubic_weights`: the taps ahead come nearer as `t` grows."""
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
