"""Operators of ONNX's reference evaluator made right, or fast, in float64, where onnxruntime has none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import op_conv, op_max_pool

from lucid_onnx.reference.schema import Array


class Conv(op_conv.Conv):
    """The evaluator's own takes a step in Python for every tap and channel; it is left the rare ways of padding."""

    def _run(
        self,
        X: Array,
        W: Array,
        B: Array | None = None,
        auto_pad: str | None = None,
        dilations: Sequence[int] | None = None,
        group: int | None = None,
        kernel_shape: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array, ...]:
        if auto_pad not in (None, "", "NOTSET"):
            how = (auto_pad, dilations, group, kernel_shape, pads, strides)
            result: tuple[Array, ...] = super()._run(X, W, B, *how)  # type: ignore[no-untyped-call]
            return result
        groups, rank = group or 1, X.ndim - 2
        windows = _windows(X, W.shape[2:], strides, dilations, pads, 0.0)
        split = windows.reshape(X.shape[0], groups, -1, *windows.shape[2:])
        kernels = W.reshape(groups, -1, *W.shape[1:])
        taps = range(rank + 1, 2 * rank + 1)
        parts = [
            np.tensordot(split[:, k], kernels[k], axes=([1, *(tap + 1 for tap in taps)], [1, *range(2, rank + 2)]))
            for k in range(groups)
        ]
        y = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
        return (y if B is None else y + B.reshape(-1, *[1] * rank),)


class MaxPool(op_max_pool.MaxPool):
    """Likewise; the evaluator's own gives the indices, too."""

    def _run(  # type: ignore[override]
        self,
        x: Array,
        auto_pad: str | None = None,
        ceil_mode: int | None = None,
        dilations: Sequence[int] | None = None,
        kernel_shape: Sequence[int] | None = None,
        pads: Sequence[int] | None = None,
        storage_order: int | None = None,
        strides: Sequence[int] | None = None,
    ) -> tuple[Array, ...]:
        if auto_pad not in (None, "", "NOTSET") or ceil_mode or len(self.onnx_node.output) > 1 or not kernel_shape:
            how = (auto_pad, ceil_mode, dilations, kernel_shape, pads, storage_order, strides)
            result: tuple[Array, ...] = super()._run(x, *how)  # type: ignore[no-untyped-call]
            return result
        windows = _windows(x, kernel_shape, strides, dilations, pads, -math.inf)
        return (windows.max(axis=tuple(range(x.ndim, windows.ndim))),)


def _windows(
    x: Array,
    kernel: Sequence[int],
    strides: Sequence[int] | None,
    dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
    fill: float,
) -> Array:
    """What lies under a kernel at each place, (N, C, *places, *kernel), without a copy."""
    rank = x.ndim - 2
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x, around, constant_values=fill)
    spans = [(taps - 1) * step + 1 for taps, step in zip(kernel, dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=tuple(range(2, rank + 2)))
    every = [slice(None, None, step) for step in (*strides, *dilations)]
    result: Array = windows[:, :, *every]
    return result


class Erf(OpRun):
    """The evaluator's own rounds to float32."""

    def _run(self, x: Array) -> tuple[Array]:
        return (_erf(x),)


class Gelu(OpRun):
    """Likewise, as it is a function of Erf."""

    def _run(self, x: Array, approximate: str = "none") -> tuple[Array]:
        is_exact = approximate == "none"
        t = _erf(x / np.sqrt(2)) if is_exact else np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        return ((x * (1 + t) / 2).astype(x.dtype),)


class Softplus(OpRun):
    """The evaluator's own overflows."""

    def _run(self, x: Array) -> tuple[Array]:
        return (np.logaddexp(x, np.zeros_like(x)),)


def _erf(x: Array) -> Array:
    result: Array = np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype)
    return result


KERNELS: list[Any] = [Conv, MaxPool, Erf, Gelu, Softplus]
"""All of them."""
