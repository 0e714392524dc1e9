"""The matrix that most tests run over: modes and paddings, image sizes, and families of grids."""

from __future__ import annotations

import itertools
import zlib
from fractions import Fraction

import numpy as np

CELLS = [
    (rank, mode, padding_mode, align_corners)
    for rank, mode, padding_mode, align_corners in itertools.product(
        (4, 5), ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)
    )
]
"""Every combination; bicubic of a 5-D image is ONNX's, for `grid_sample_nd` and the graphs."""

PYTORCH_CELLS = [cell for cell in CELLS if cell[:2] != (5, "bicubic")]

IMAGES = {
    4: [(2, 3, 3, 4), (1, 1, 1, 5), (2, 2, 6, 1), (1, 3, 1, 1), (2, 1, 8, 5), (1, 2, 4, 8)],
    5: [(2, 2, 2, 3, 4), (1, 1, 1, 1, 5), (1, 2, 4, 1, 2), (1, 1, 1, 1, 1), (1, 2, 4, 4, 2)],
}
"""Shapes (N, C, …): odd and even sizes, not square, axes of one pixel, powers of two for exact coordinates."""

POINTS = {4: (4, 5), 5: (2, 3, 3)}
"""Output sizes."""

FAMILIES = ("inside", "outside", "far", "very far", "centres", "ties", "borders")
"""Finite grids, by what they probe."""

NONFINITE = (float("nan"), float("inf"), float("-inf"), 3e38)


def cell_id(cell) -> str:
    rank, mode, padding_mode, align_corners = cell
    return f"{rank}d-{mode}-{padding_mode}-{'corners' if align_corners else 'edges'}"


def generator(*key) -> np.random.Generator:
    """A random generator that depends on `key` only."""
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def normalize(pixel: np.ndarray, size: int, align_corners: bool) -> np.ndarray:
    """Normalised coordinate of a pixel coordinate; with one pixel and align_corners every one is that pixel."""
    if align_corners:
        return 2 * pixel / max(size - 1, 1) - 1
    return (2 * pixel + 1) / size - 1


def image(shape, dtype, *key) -> np.ndarray:
    return generator("image", shape, *key).standard_normal(shape).astype(dtype)


def grid(family: str, shape, align_corners: bool, dtype, *key) -> np.ndarray:
    """Grid for an image of `shape` from one of `FAMILIES`, or "nonfinite", which mixes in what is not."""
    rng = generator("grid", family, shape, align_corners, *key)
    sizes = shape[2:]
    axes = len(sizes)
    out = (shape[0], *POINTS[len(shape)], axes)
    scale = {"inside": 0.95, "outside": 3.0, "far": 1e3, "very far": 1e6, "nonfinite": 1.2}
    if family in scale:
        points = rng.uniform(-1, 1, out) * scale[family]
    else:
        points = np.empty(out)
        for axis, size in enumerate(sizes):
            pixels = {
                "centres": np.arange(-2.0, size + 2),
                "ties": np.arange(-2.5, size + 2),
                "borders": np.array([-1, -0.5, 0, size - 1, size - 0.5, size]),
            }[family]
            points[..., axes - 1 - axis] = normalize(rng.choice(pixels, out[:-1]), size, align_corners)
    if family == "nonfinite":
        points.reshape(-1)[::2] = np.resize(NONFINITE, points.reshape(-1)[::2].shape)
    with np.errstate(over="ignore"):
        return points.astype(dtype)


def grad_out(shape, dtype, *key) -> np.ndarray:
    """Upstream gradient for an image of `shape` sampled at a grid of this module."""
    y = (*shape[:2], *POINTS[len(shape)])
    return generator("grad", shape, *key).standard_normal(y).astype(dtype)


def reflected_home(coordinate: float, size: int) -> float:
    """Pixel to which reflection at the outer edges brings a normalised coordinate, without rounding on the way."""
    pixel = ((Fraction(coordinate) + 1) * size - 1) / 2
    flips, rest = divmod(abs(pixel + Fraction(1, 2)), size)
    home = float((size - rest if flips % 2 else rest) - Fraction(1, 2))
    return min(max(home, 0.0), size - 1.0)
