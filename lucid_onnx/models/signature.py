"""Shapes of the inputs and outputs that models have in common, and checks of the sizes they are made for."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from lucid_onnx.operators.signature import TensorSpec
from lucid_onnx.reference.schema import SPATIAL_AXES, ArgumentError


def image_spec(name: str, channels: int | None, sizes: Sequence[int] | None, axes: int) -> TensorSpec:
    """A batch of float32 images (N, C, H, W) or volumes (N, C, D, H, W); what is None is symbolic."""
    spatial = SPATIAL_AXES[axes + 2] if sizes is None else tuple(sizes)
    return TensorSpec(name, ir.DataType.FLOAT, ("N", "C" if channels is None else channels, *spatial))


def theta_spec(axes: int) -> TensorSpec:
    """A batch of affine maps, (N, 2, 3) or (N, 3, 4)."""
    return TensorSpec("theta", ir.DataType.FLOAT, ("N", axes, axes + 1))


def check_count(model: str, argument: str, count: int | None) -> None:
    """Raise unless `count` is a number of channels or classes."""
    if count is not None and count < 1:
        raise ArgumentError(f"{model}: {argument} must be 1 or more; got {count}")


def check_sizes(
    model: str, argument: str, sizes: Sequence[int], axes: int | None = None, least: int = 1
) -> tuple[int, ...]:
    """`sizes` as a tuple, if they are those of an image or a volume of at least `least` pixels an axis."""
    given = tuple(sizes)
    if len(given) not in ((2, 3) if axes is None else (axes,)) or any(int(n) != n or n < least for n in given):
        names = {2: "(H, W)", 3: "(D, H, W)", None: "(H, W) or (D, H, W)"}[axes]
        raise ArgumentError(f"{model}: {argument} must be {names}, each {least} or more; got {given}")
    return given
