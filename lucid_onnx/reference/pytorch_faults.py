"""Where `grid_sample` does not follow PyTorch, because PyTorch is broken there.

Measured with PyTorch 2.13 on the CPU, in float32 unless said otherwise. On all other inputs, float32 and
float64, PyTorch is the witness of the semantics. Half precision on its CPU is no witness at all: it rounds
after every operation, and its 4-D kernels index with int16, so that planes above 32,768 pixels read and write
out of bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

OVERFLOW = 3e38
"""A float32 whose pixel coordinate overflows to infinity on an axis of 3 pixels or more."""


@dataclass(frozen=True)
class Fault:
    """One kind of input on which PyTorch is not followed.

    Parameters
    ----------
    rank : int
        Rank of the image.
    modes, padding_modes : tuple of str
        Where it happens.
    coordinates : tuple of float
        Normalised coordinates along one axis that show it.
    pytorch, here : str
        What PyTorch does and what this reference does.
    crashes : bool
        Whether PyTorch's backward takes the process down.
    dtype : str
        Dtype of image and grid.
    """

    rank: int
    modes: tuple[str, ...]
    padding_modes: tuple[str, ...]
    coordinates: tuple[float, ...]
    pytorch: str
    here: str
    crashes: bool = False
    dtype: str = "float32"


NAN, INF = float("nan"), float("inf")

FAULTS = (
    Fault(
        4,
        ("bilinear",),
        ("border",),
        (NAN,),
        "samples the first pixel; the backward reads and writes out of bounds",
        "the first pixel gets the gradient; the derivative along the axis is 0",
        crashes=True,
    ),
    Fault(
        4,
        ("bilinear",),
        ("reflection",),
        (NAN, INF, -INF, OVERFLOW),
        "samples the first pixel; the backward reads and writes out of bounds",
        "the first pixel gets the gradient; the derivative along the axis is 0",
        crashes=True,
    ),
    Fault(
        5,
        ("bilinear", "nearest"),
        ("border",),
        (NAN,),
        "samples the last pixel; the backward gives no gradient to any pixel",
        "the last pixel gets the gradient; the derivative along the axis is 0",
    ),
    Fault(
        5,
        ("bilinear", "nearest"),
        ("reflection",),
        (NAN, INF, -INF, OVERFLOW),
        "samples the last pixel; the backward gives no gradient to any pixel",
        "the last pixel gets the gradient; the derivative along the axis is 0",
    ),
    Fault(
        4,
        ("bilinear",),
        ("zeros",),
        (NAN, INF, -INF, OVERFLOW),
        "gives NaN; the derivative is 0 along the axis and NaN along the other",
        "gives NaN; the derivative is NaN along both axes",
    ),
    Fault(
        4,
        ("bicubic",),
        ("border", "reflection"),
        (NAN, INF, -INF, OVERFLOW),
        "gives NaN; the backward puts NaN into pixels on an edge",
        "gives NaN; the derivative is NaN along both axes, and no pixel gets anything",
    ),
    Fault(
        5,
        ("bilinear", "nearest"),
        ("reflection",),
        (5e9 + 2.3,),
        "takes the wrong parity of the reflections, which it counts in 32 bits",
        "the parity is that of a float64, right to 2**53 reflections",
        dtype="float64",
    ),
)
"""Every such case; a test holds each against this reference and against PyTorch where it is installed."""
