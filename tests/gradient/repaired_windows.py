"""Operators on windows in which ONNX's reference evaluator is wrong, and Pad."""

from __future__ import annotations

from itertools import product

import numpy as np
from onnx.reference.op_run import OpRun


class ConvTranspose(OpRun):
    """The evaluator's own is wrong for groups of more than one channel, and knows no output_shape without auto_pad."""

    def _run(
        self, x, w, b=None, auto_pad="NOTSET", dilations=None, group=1, kernel_shape=None,
        output_padding=None, output_shape=None, pads=None, strides=None,
    ):  # fmt: skip
        rank = x.ndim - 2
        strides, dilations = strides or [1] * rank, dilations or [1] * rank
        whole = [
            (size - 1) * stride + (taps - 1) * step + 1 + more
            for size, stride, taps, step, more in zip(
                x.shape[2:], strides, w.shape[2:], dilations, output_padding or [0] * rank, strict=True
            )
        ]
        if auto_pad.startswith("SAME") and not output_shape:
            output_shape = [size * stride for size, stride in zip(x.shape[2:], strides, strict=True)]
        if output_shape:
            total = [max(have - want, 0) for have, want in zip(whole, output_shape, strict=True)]
            begins = [n // 2 if auto_pad == "SAME_UPPER" else n - n // 2 for n in total]
            pads = [*begins, *(n - begin for n, begin in zip(total, begins, strict=True))]
        pads = pads or [0] * 2 * rank
        images = x.reshape(x.shape[0], group, x.shape[1] // group, *x.shape[2:])
        kernel = w.reshape(group, w.shape[0] // group, *w.shape[1:])
        y = np.zeros((x.shape[0], group, w.shape[1], *whole), x.dtype)
        for taps in product(*map(range, w.shape[2:])):
            where = tuple(
                slice(tap * step, tap * step + (size - 1) * stride + 1, stride)
                for tap, step, size, stride in zip(taps, dilations, x.shape[2:], strides, strict=True)
            )
            y[:, :, :, *where] += np.einsum("ngc...,gcm->ngm...", images, kernel[:, :, :, *taps])
        kept = tuple(slice(pads[k], whole[k] - pads[rank + k]) for k in range(rank))
        y = y.reshape(x.shape[0], group * w.shape[1], *whole)[:, :, *kept]
        return (y if b is None else y + b.reshape(-1, *[1] * rank),)


class GlobalLpPool(OpRun):
    """The evaluator has none."""

    def _run(self, x, p=2):
        axes = tuple(range(2, x.ndim))
        return (np.sum(np.abs(x) ** p, axis=axes, keepdims=True) ** (1 / p),)


class GlobalMaxPool(OpRun):
    """The evaluator's own is right in 2-D only."""

    def _run(self, x):
        return (np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True),)


class LpPool(OpRun):
    """The evaluator's own swaps pads, and averages over what a last window lacks in ceil_mode."""

    def _run(
        self, x, auto_pad="NOTSET", ceil_mode=0, dilations=None, kernel_shape=None, p=2, pads=None, strides=None
    ):  # fmt: skip
        rank = x.ndim - 2
        strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * 2 * rank
        spans = [(taps - 1) * step + 1 for taps, step in zip(kernel_shape, dilations, strict=True)]
        counts, begins = [], pads[:rank]
        for k, (size, stride, span) in enumerate(zip(x.shape[2:], strides, spans, strict=True)):
            if auto_pad.startswith("SAME"):
                counts.append(-(-size // stride))
                total = max((counts[k] - 1) * stride + span - size, 0)
                begins[k] = total // 2 if auto_pad == "SAME_UPPER" else total - total // 2
            else:
                room = size + pads[k] + pads[rank + k] - span
                counts.append((-(-room // stride) if ceil_mode else room // stride) + 1)
                counts[k] -= (counts[k] - 1) * stride >= size + pads[k]
        whole = [(count - 1) * stride + span for count, stride, span in zip(counts, strides, spans, strict=True)]
        ends = [max(want - size - begin, 0) for want, size, begin in zip(whole, x.shape[2:], begins, strict=True)]
        padded = np.pad(np.abs(x) ** p, [(0, 0), (0, 0), *zip(begins, ends, strict=True)])
        total = np.zeros((*x.shape[:2], *counts), x.dtype)
        for taps in product(*map(range, kernel_shape)):
            where = tuple(
                slice(tap * step, tap * step + (count - 1) * stride + 1, stride)
                for tap, step, count, stride in zip(taps, dilations, counts, strides, strict=True)
            )
            total += padded[:, :, *where]
        return (total ** (1 / p),)


class Pad(OpRun):
    """The evaluator refuses negative pads, which crop."""

    def _run(self, x, pads, value=None, axes=None, mode="constant"):
        axes = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes]
        widths, kept = [(0, 0)] * x.ndim, [slice(None)] * x.ndim
        for k, axis in enumerate(axes):
            begin, end = int(pads[k]), int(pads[len(axes) + k])
            widths[axis] = max(begin, 0), max(end, 0)
            kept[axis] = slice(max(-begin, 0), x.shape[axis] - max(-end, 0))
        x = x[tuple(kept)]
        if mode != "constant":
            return (np.pad(x, widths, mode=mode),)
        return (np.pad(x, widths, constant_values=0 if value is None else value),)


REPAIRED_WINDOWS = [ConvTranspose, GlobalLpPool, GlobalMaxPool, LpPool, Pad]
