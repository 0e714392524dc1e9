"""The contract of the two operators: names, modes, dtypes, shapes and what is said when they do not fit.

Everything here is plain data and checks. `lucid_onnx.operators` reads the same names and raises the
same errors as the NumPy reference, so a mistake reads the same whichever way it is made.

Source: the autograd nodes of the Lucid framework (``OpSchema``, ``AmpPolicy``), ONNX's GridSample and
AffineGrid (opset 16, 20 and 22), and ``torch.nn.functional.grid_sample``.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
"""A NumPy array of any shape and dtype."""

MODES = ("bilinear", "nearest", "bicubic")
"""PyTorch's names of the interpolation modes, and those of ONNX's GridSample at opset 16."""

PADDING_MODES = ("zeros", "border", "reflection")
"""What lies outside the image: zero, the edge pixel, or the image mirrored."""

ONNX_MODES = {"linear": "bilinear", "nearest": "nearest", "cubic": "bicubic"}
"""Names that the modes have in ONNX from opset 20 on, where GridSample is N-D, and in PyTorch."""

TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
"""Pixels that each mode reads along one axis."""

KEYS_A = -0.75
"""Free parameter of Keys' cubic kernel, as PyTorch and ONNX have it."""

FLOAT_DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes an image, a grid or a theta may have."""

SPATIAL_AXES = {4: ("H", "W"), 5: ("D", "H", "W")}
"""Names of the spatial axes of an image of rank 4 and 5, outermost first."""


class LucidError(Exception):
    """Base of every error that lucid-onnx raises on purpose."""


class ArgumentError(LucidError, ValueError):
    """An argument has a value or a shape that does not fit."""


class DtypeError(LucidError, TypeError):
    """An argument has a type or a dtype that does not fit."""


class UnsupportedError(LucidError, NotImplementedError):
    """What is asked for is well-formed, but nothing here provides it."""


class RunError(LucidError, RuntimeError):
    """A runtime failed while it ran a model."""


class AmpPolicy(enum.Enum):
    """What `autocast` does to the inputs of an operator.

    ``Promote`` casts them to the dtype of the autocast; ``KeepInput`` leaves them as they are;
    ``ForceFP32`` always computes in float32.
    """

    Promote = "promote"
    KeepInput = "keep_input"
    ForceFP32 = "force_fp32"


_autocast_dtype: contextvars.ContextVar[np.dtype[Any] | None] = contextvars.ContextVar(
    "lucid_onnx_autocast", default=None
)


@contextlib.contextmanager
def autocast(dtype: npt.DTypeLike | str | None) -> Iterator[None]:
    """Run the operators inside the block in `dtype`, as each operator's `AmpPolicy` allows.

    Parameters
    ----------
    dtype : str, dtype or None
        "float16", "bfloat16", "float32" or "float64"; None switches an outer autocast off. NumPy runs on the
        CPU, where float16 stands for float32: inside ``autocast("float16")`` inputs are cast to float32 and
        results are float32.

    Raises
    ------
    DtypeError
        If `dtype` is not one of the four.

    Examples
    --------
    >>> import numpy as np
    >>> from lucid_onnx.reference import affine_grid, autocast
    >>> theta = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> with autocast("bfloat16"):
    ...     print(affine_grid(theta, (1, 1, 2, 2)).dtype)
    bfloat16
    """
    token = _autocast_dtype.set(None if dtype is None else float_dtype(dtype, "autocast", "dtype"))
    try:
        yield
    finally:
        _autocast_dtype.reset(token)


@dataclass(frozen=True)
class OpSchema:
    """Identity of an operator and its policy under `autocast`.

    Parameters
    ----------
    name : str
        Name of the operator, which errors begin with.
    version : int
        Grows when the meaning changes.
    amp_policy : AmpPolicy
        What `autocast` does to the inputs.
    real_valued : bool
        The result is real whatever came in: integer inputs are promoted to float32.

    Examples
    --------
    >>> schema = OpSchema("grid_sample", 1, AmpPolicy.Promote, real_valued=True)
    >>> schema.input_dtype("uint8", "x"), schema.input_dtype("float16", "x")
    (dtype('float32'), dtype('float16'))
    """

    name: str
    version: int
    amp_policy: AmpPolicy
    real_valued: bool = False

    def input_dtype(self, dtype: npt.DTypeLike, argument: str, operator: str | None = None) -> np.dtype[Any]:
        """Dtype to which an input of `dtype` is cast before anything is computed.

        An error begins with `operator`, by default the name of the schema.
        """
        given = np.dtype(dtype)
        if self.real_valued and given.kind in "iub":
            given = np.dtype(np.float32)
        given = float_dtype(given, operator or self.name, argument)
        cast = _autocast_dtype.get()
        if self.amp_policy is AmpPolicy.ForceFP32:
            return np.dtype(np.float32)
        if cast is None or self.amp_policy is AmpPolicy.KeepInput:
            return given
        return np.dtype(np.float32) if cast == np.float16 else cast


def float_dtype(dtype: npt.DTypeLike | str, operator: str, argument: str) -> np.dtype[Any]:
    """`dtype` as a NumPy dtype, if it is one of `FLOAT_DTYPES`; an error that names `argument` otherwise."""
    try:
        given = None if dtype is None else np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    except TypeError:
        given = None
    if given is None or given.name not in FLOAT_DTYPES:
        raise DtypeError(
            f"{operator}: {argument} must be one of {', '.join(FLOAT_DTYPES)}; "
            f"got {dtype if given is None else given.name}"
        )
    return given.newbyteorder("=")


def as_array(value: npt.ArrayLike, operator: str, argument: str) -> Array:
    """`value` as an array, or an error that names `argument`."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"{operator}: {argument} must be an array of numbers; {error}") from None


def as_flag(flag: object, operator: str, argument: str = "align_corners") -> bool:
    """`flag` as a bool; None means False."""
    if flag is None or isinstance(flag, bool | int | np.bool_ | np.integer):
        return bool(flag)
    raise DtypeError(f"{operator}: {argument} must be True, False or None; got {flag!r}")


def compute_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype of the arithmetic: the widest of `dtypes`, and at least float32."""
    return np.dtype(np.float64 if np.dtype(np.float64) in dtypes else np.float32)


def check_choice(operator: str, argument: str, value: object, choices: Sequence[str]) -> None:
    """Raise if `value` is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"{operator}: {argument} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_rank(operator: str, rank: object) -> int:
    """`rank` as an int, if it is that of a batch of images or of volumes."""
    if not isinstance(rank, int | np.integer) or rank not in SPATIAL_AXES:
        raise ArgumentError(f"{operator}: rank must be 4 or 5; got {rank!r}")
    return int(rank)


def check_modes(operator: str, mode: object, padding_mode: object) -> None:
    """Raise unless both are names that grid_sample knows."""
    check_choice(operator, "mode", mode, MODES)
    check_choice(operator, "padding_mode", padding_mode, PADDING_MODES)


def check_grid_sample(
    x: Sequence[int | None],
    grid: Sequence[int | None],
    mode: object,
    padding_mode: object,
    operator: str = "grid_sample",
) -> None:
    """Raise if an image of shape `x` cannot be sampled with a grid of shape `grid` that way.

    A dimension that is None is not known, and fits. Bicubic with a 5-D image passes here: ONNX defines it,
    PyTorch and `grid_sample` do not.
    """
    check_modes(operator, mode, padding_mode)
    rank = len(x)
    if rank not in SPATIAL_AXES:
        raise ArgumentError(f"{operator}: x must be (N,C,H,W) or (N,C,D,H,W); got shape {shown(x)}")
    axes = SPATIAL_AXES[rank]
    if len(grid) != rank or grid[-1] not in (len(axes), None):
        outputs = ",".join(f"{axis}o" for axis in axes)
        raise ArgumentError(
            f"{operator}: grid must be (N,{outputs},{len(axes)}) for x of shape {shown(x)}; got shape {shown(grid)}"
        )
    if x[0] != grid[0] and None not in (x[0], grid[0]):
        raise ArgumentError(
            f"{operator}: x and grid must have the same batch size; got {x[0]} in x and {grid[0]} in grid"
        )
    if 0 in (*x[:2], *grid[:-1]):
        return
    for axis, size in zip(axes, x[2:], strict=True):
        if size == 0:
            raise ArgumentError(
                f"{operator}: x must have at least one pixel along {axis} to be sampled; got shape {shown(x)}"
            )


def check_volume_mode(rank: int, mode: str, operator: str) -> None:
    """Raise for bicubic with a 5-D image, which PyTorch's grid_sample does not have."""
    if rank == 5 and mode == "bicubic":
        raise ArgumentError(
            f"{operator}: mode must be 'bilinear' or 'nearest' for a 5-D x; got 'bicubic'. "
            "ONNX defines cubic for volumes: reference.grid_sample_nd and operator_model(..., rank=5) have it"
        )


def check_grad_out(x: Sequence[int | None], grid: Sequence[int | None], grad_out: Sequence[int | None]) -> None:
    """Raise if `grad_out` is not shaped like the result of ``grid_sample(x, grid)``; None fits anything."""
    expected = (x[0], x[1], *grid[1:-1])
    if not _fits(grad_out, expected):
        raise ArgumentError(
            f"grid_sample_backward: grad_out must have the shape of the output, {shown(expected)}; "
            f"got {shown(grad_out)}"
        )


def check_grad_grid(grad_grid: Sequence[int | None], size: Sequence[int | None]) -> None:
    """Raise if `grad_grid` is not shaped like the grid that affine_grid gives for `size`; None fits anything."""
    expected = (size[0], *size[2:], len(size) - 2)
    if not _fits(grad_grid, expected):
        raise ArgumentError(
            f"affine_grid_backward: grad_grid must have the shape of the grid, {shown(expected)}; "
            f"got {shown(grad_grid)}"
        )


def check_size(size: Sequence[int], operator: str = "affine_grid") -> tuple[int, ...]:
    """`size` as a tuple of 4 or 5 integers that are not negative."""
    try:
        sizes = tuple(index(dimension) for dimension in size)
    except TypeError:
        raise DtypeError(f"{operator}: size must be a sequence of integers; got {size!r}") from None
    if len(sizes) not in SPATIAL_AXES or min(sizes) < 0:
        raise ArgumentError(f"{operator}: size must be (N,C,H,W) or (N,C,D,H,W), integers from 0 up; got {sizes}")
    return sizes


def check_theta(theta: Sequence[int | None], size: Sequence[int | None], operator: str = "affine_grid") -> None:
    """Raise if a theta of shape `theta` does not fit `size`; None fits anything."""
    d = len(size) - 2
    expected = (size[0], d, d + 1)
    if not _fits(theta, expected):
        raise ArgumentError(
            f"{operator}: theta must be {shown(expected)} for size {shown(size)}; got shape {shown(theta)}"
        )


def _fits(shape: Sequence[int | None], expected: Sequence[int | None]) -> bool:
    return len(shape) == len(expected) and all(a == b or None in (a, b) for a, b in zip(shape, expected, strict=True))


def shown(shape: Sequence[int | str | None]) -> str:
    """A shape as errors print it, with a question mark for what is not known."""
    return "(" + ", ".join("?" if dimension is None else str(dimension) for dimension in shape) + ")"


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that there is no `kind` called `name`, and what there is."""
    names = ", ".join(known)
    return f"there is no {kind} {name!r} (there is {names or 'none'})"
