"""Slopes along directions, by central differences, and whether a gradient has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lucid_onnx.reference.schema import Array

LEAN = 2.0
"""How far a direction leans on the gradient itself: by it a wrong factor shows in nearly every direction."""

SPREAD = 6.0
"""What an error of size 1 in a gradient is in a direction at most: its lean, and four standard deviations."""


@dataclass(frozen=True)
class Slope:
    """A slope, and how far it may be off: by curvature, rounding, or a kink within the step; without end at a jump.

    A kink at the very point bends the line between the two sides however small the step is; curvature does so the less,
    the smaller it is.
    """

    slope: float
    doubt: float


def direction(grad: Array, rng: np.random.Generator) -> Array:
    """A random direction, standard normal, that leans on a gradient.

    The error of a gradient does not know the direction, so that it shows in its full size: the error of ``grad * d``
    summed is a normal number times its length, whatever the errors of the elements have to do with each other.
    """
    noise: Array = np.asarray(rng.standard_normal(grad.shape))
    length = size(grad)
    return noise + LEAN * grad / length if 0 < length < np.inf else noise


def difference(value: Callable[[float], Mapping[str, Array]], seeds: Mapping[str, Array], step: float) -> Slope:
    """The slope of ``sum(output * seed)`` along a line, from two steps extrapolated to none.

    Parameters
    ----------
    value : callable
        The outputs at a place of the line, in float64.
    seeds : mapping of str to Array
        Their upstream gradients.
    step : float
        How far to go.
    """
    here = value(0.0)
    places = {shift: value(shift) for shift in (step, -step, step / 2, -step / 2)}
    if any(found[name].shape != here[name].shape for found in places.values() for name in seeds):
        return Slope(np.nan, np.inf)

    def change(shift: float) -> float:
        return sum(weighed(places[shift][name] - here[name], seed) for name, seed in seeds.items()) / shift

    with np.errstate(all="ignore"):
        (ahead, behind), (ahead_near, behind_near) = ((change(h), change(-h)) for h in (step, step / 2))
    far, near = (ahead + behind) / 2, (ahead_near + behind_near) / 2
    jump = 2 * (ahead_near - behind_near) - (ahead - behind)
    doubt = max(abs(near - far), abs(jump) / 2)
    return Slope((4 * near - far) / 3, doubt if np.isfinite(doubt) else np.inf)


def weighed(change: Array, seed: Array) -> float:
    """``sum(change * seed)``, in float64."""
    return float(np.sum(change * seed, dtype=np.float64))


def size(array: Array) -> float:
    """Euclidean length."""
    return float(np.linalg.norm(array.reshape(-1).astype(np.float64)))
