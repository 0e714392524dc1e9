"""Shapes of the inputs and outputs that models have in common, and checks of the sizes they are made for."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
import onnx_ir as ir

from lucid_onnx.operators.tensors import TensorSpec
from lucid_onnx.reference.schema import SPATIAL_AXES, ArgumentError

LARGEST = 2**31
"""Sizes, channels and the like are less than this."""


def image_spec(name: str, channels: int | None, sizes: Sequence[int] | None, axes: int) -> TensorSpec:
    """A batch of float32 images (N, C, H, W) or volumes (N, C, D, H, W); what is None is symbolic."""
    spatial = SPATIAL_AXES[axes + 2] if sizes is None else tuple(sizes)
    return TensorSpec(name, ir.DataType.FLOAT, ("N", "C" if channels is None else channels, *spatial))


def theta_spec(axes: int) -> TensorSpec:
    """A batch of affine maps, (N, 2, 3) or (N, 3, 4)."""
    return TensorSpec("theta", ir.DataType.FLOAT, ("N", axes, axes + 1))


def check_count(model: str, argument: str, count: object, least: int = 1) -> None:
    """Raise unless `count` is a whole number from `least` up, of a size that a machine may hold."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not least <= count < LARGEST:
        raise ArgumentError(f"{model}: {argument} must be {least} or more, and less than {LARGEST}; got {count!r}")


def check_sizes(
    model: str, argument: str, sizes: Sequence[int], axes: int | None = None, least: int = 1
) -> tuple[int, ...]:
    """`sizes` as a tuple, if they are those of an image or a volume of at least `least` pixels an axis."""
    try:
        given = tuple(index(size) for size in sizes)
    except TypeError:
        given = ()
    if len(given) not in ((2, 3) if axes is None else (axes,)) or not all(least <= n < LARGEST for n in given):
        names = {2: "(H, W)", 3: "(D, H, W)", None: "(H, W) or (D, H, W)"}[axes]
        raise ArgumentError(
            f"{model}: {argument} must be {names}, each {least} or more, and less than {LARGEST}; got {sizes!r}"
        )
    return given
