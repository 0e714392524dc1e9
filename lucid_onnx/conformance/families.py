"""Families of inputs: where the points lie, how large the images are, and what each probes.

Adding a family is a row of `FAMILIES`, and a function of `POINTS` if its points lie in a new way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lucid_onnx.conformance.draws import pick, uniform, whole
from lucid_onnx.reference.schema import Array

BATCH, CHANNELS = 2, 2
"""Of an image, where a family does not say otherwise."""

EXACT = {False: {4: (4, 8), 5: (2, 4, 8)}, True: {4: (3, 5), 5: (2, 3, 5)}}
"""Sizes by align_corners at which the coordinate of every pixel centre and tie is computed without rounding."""

OUTPUT = {4: (4, 5), 5: (2, 3, 4)}
"""Output sizes."""

OVERFLOW = 3e38
"""A float32 whose pixel coordinate overflows, on an axis of three pixels or more."""

NONFINITE = (math.nan, math.inf, -math.inf, OVERFLOW)
"""What no pixel coordinate is."""


@dataclass(frozen=True)
class Family:
    """One kind of input.

    Parameters
    ----------
    name : str
        Its part of a case's id.
    probes : str
        What it probes.
    points : str
        Where the points lie, a key of `POINTS`.
    scale : float
        What that function makes of it: how far out the points lie.
    sizes : dict, optional
        Spatial sizes by rank, by default those at which coordinates are exact.
    batch, channels : int
        Of the image.
    output : dict, optional
        Output sizes by rank.
    ordinary : bool
        Whether every coordinate is finite and near, so that runtimes are expected to agree.
    affine : bool
        Whether AffineGrid has it, too.
    """

    name: str
    probes: str
    points: str = "spread"
    scale: float = 1.5
    sizes: dict[int, tuple[int, ...]] | None = None
    batch: int = BATCH
    channels: int = CHANNELS
    output: dict[int, tuple[int, ...]] | None = None
    ordinary: bool = True
    affine: bool = False

    def image_shape(self, rank: int, align_corners: bool) -> tuple[int, ...]:
        """(N, C, H, W) or (N, C, D, H, W)."""
        sizes = EXACT[align_corners] if self.sizes is None else self.sizes
        return (self.batch, self.channels, *sizes[rank])

    def output_sizes(self, rank: int) -> tuple[int, ...]:
        """(Ho, Wo) or (Do, Ho, Wo)."""
        return (OUTPUT if self.output is None else self.output)[rank]


FAMILIES = {
    family.name: family
    for family in (
        Family("inside", "points within the image", scale=0.95, affine=True),
        Family("outside", "points up to three times as far out as the image reaches", scale=3.0, affine=True),
        Family("centres", "points on the centres of pixels, and of those that would lie outside", "centres"),
        Family("ties", "points half-way between two pixels, inside and outside", "ties"),
        Family("borders", "points on the outermost centres and edges of the image", "borders"),
        Family(
            "far",
            "points among which some are a thousand to a million times as far out as the image reaches",
            "far",
            1e3,
            affine=True,
        ),
        Family(
            "very-far",
            "points among which some are finite, but 2**23 to 1e20 times as far out",
            "far",
            2.0**23,
            ordinary=False,
        ),
        Family("non-finite", "NaN, infinities, and a finite 3e38", "nonfinite", 1.2, ordinary=False, affine=True),
        Family("nan", "NaN", "constant", math.nan, ordinary=False),
        Family("plus-infinity", "infinity", "constant", math.inf, ordinary=False),
        Family("minus-infinity", "minus infinity", "constant", -math.inf, ordinary=False),
        Family("overflow", "a finite 3e38 whose pixel is infinite", "constant", OVERFLOW, ordinary=False),
        Family("size-1", "an axis of one pixel", sizes={4: (1, 5), 5: (4, 1, 3)}, affine=True),
        Family("one-pixel", "an image of one pixel", sizes={4: (1, 1), 5: (1, 1, 1)}, affine=True),
        Family(
            "non-square", "sizes that are odd and far from each other", sizes={4: (2, 11), 5: (3, 2, 7)}, affine=True
        ),
        Family("many-channels", "more channels than a vector register has lanes", channels=37, batch=1),
        Family("many-batches", "more images than points", batch=19, output={4: (2, 3), 5: (1, 2, 3)}, affine=True),
        Family("empty-batch", "no images", batch=0, affine=True),
        Family("no-channels", "images without channels", channels=0),
        Family("empty-grid", "no points", output={4: (0, 5), 5: (2, 0, 4)}),
    )
}
"""Every family by name."""


def normalize(pixel: Array, size: int, align_corners: bool) -> Array:
    """Normalised coordinate of a pixel coordinate; with one pixel and align_corners every one is that pixel."""
    if align_corners:
        return 2 * pixel / max(size - 1, 1) - 1
    return (2 * pixel + 1) / size - 1


def coordinates(family: Family, seed: int, size: int, align_corners: bool, shape: tuple[int, ...]) -> Array:
    """Normalised coordinates along one axis of `size` pixels, as float64."""
    return POINTS[family.points](seed, size, align_corners, shape, family.scale)


Points = Callable[[int, int, bool, tuple[int, ...], float], Array]
"""Takes a seed, the size of the axis, align_corners, the shape to fill and the family's scale."""


def _spread(seed: int, size: int, align_corners: bool, shape: tuple[int, ...], scale: float) -> Array:
    return uniform(seed, shape) * scale


def _pixels(of: Callable[[int], list[float]]) -> Points:
    """Some of the pixel coordinates that `of` gives for a size."""

    def points(seed: int, size: int, align_corners: bool, shape: tuple[int, ...], scale: float) -> Array:
        return normalize(pick(seed, shape, of(size)), size, align_corners)

    return points


def _far(seed: int, size: int, align_corners: bool, shape: tuple[int, ...], scale: float) -> Array:
    """Every third coordinate is far out: both signs, and magnitudes that no binary fraction of another equals."""
    steps = (1.0, 7.3, 97.0, 911.0) if scale < 2**23 else (1.0, 2.0, 1e3, 6e11, 1.2e13)
    far = scale * pick(seed + 2, shape, [sign * step for step in steps for sign in (1, -1)])
    return np.where(_third(seed, shape), far, uniform(seed, shape))


def _nonfinite(seed: int, size: int, align_corners: bool, shape: tuple[int, ...], scale: float) -> Array:
    """Every third coordinate is not finite, so that each value meets finite ones along the other axes."""
    return np.where(_third(seed, shape), pick(seed + 2, shape, NONFINITE), uniform(seed, shape) * scale)


def _constant(seed: int, size: int, align_corners: bool, shape: tuple[int, ...], scale: float) -> Array:
    """Every third coordinate is `scale`, the others lie within the image."""
    return np.where(_third(seed, shape), scale, uniform(seed, shape))


def _third(seed: int, shape: tuple[int, ...]) -> Array:
    """Whether a place is one of every third, drawn."""
    third: Array = whole(seed + 1, shape, 0, 3) == 0
    return third


POINTS: dict[str, Points] = {
    "spread": _spread,
    "centres": _pixels(lambda size: [float(k) for k in range(-2, size + 2)]),
    "ties": _pixels(lambda size: [k - 0.5 for k in range(-2, size + 3)]),
    "borders": _pixels(lambda size: [-1.0, -0.5, 0.0, size - 1.0, size - 0.5, float(size)]),
    "far": _far,
    "nonfinite": _nonfinite,
    "constant": _constant,
}
"""How points lie along an axis, by name."""
