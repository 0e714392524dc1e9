"""Numbers that look random and are the same on every machine, in every version of Python and NumPy.

NumPy promises the bits of its generators, not the numbers that its distributions make of them. Here a number is
SplitMix64 of its place (G. Steele et al., *Fast splittable pseudorandom number generators*, 2014): whole numbers
of 64 bits that wrap around, and nothing that a processor could round in another way.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from lucid_onnx.reference.schema import Array


def seed_of(key: str) -> int:
    """A seed of 64 bits that depends on the text only.

    Examples
    --------
    >>> seed_of("inside")
    5033234534733736720
    """
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little")


def bits(seed: int, count: int) -> Array:
    """`count` numbers of 64 random bits."""
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = state ^ (state >> np.uint64(31))
    return mixed


def whole(seed: int, shape: Sequence[int], low: int, high: int) -> Array:
    """Whole numbers from `low` to `high`, `high` excluded, as int64.

    Examples
    --------
    >>> whole(7, (6,), -2, 3).tolist()
    [-2, 0, 0, 0, -1, -2]
    """
    drawn = bits(seed, math.prod(shape)) >> np.uint64(33)
    return (low + (drawn % np.uint64(high - low)).astype(np.int64)).reshape(tuple(shape))


def uniform(seed: int, shape: Sequence[int]) -> Array:
    """Multiples of 2**-24 from -1 to 1, 1 excluded, as float64; each is a float32, too."""
    drawn = (bits(seed, math.prod(shape)) >> np.uint64(39)).astype(np.float64)
    return (drawn * 2.0**-24 - 1).reshape(tuple(shape))


def pick(seed: int, shape: Sequence[int], values: Sequence[float]) -> Array:
    """Values out of `values`, as float64."""
    return np.asarray(values, np.float64)[whole(seed, shape, 0, len(values))]
