"""Operators in which ONNX's reference evaluator is wrong, where onnxruntime has no kernel."""

import math

import numpy as np
from gradient.repaired_windows import REPAIRED_WINDOWS
from onnx.reference.op_run import OpRun


class LRN(OpRun):
    """ONNX's own counts the batch where it means the channels, and takes 4-D only."""

    def _run(self, x, alpha=1e-4, beta=0.75, bias=1.0, size=None):
        before, channels, share = (size - 1) // 2, x.shape[1], float(alpha) / size
        squares = np.zeros_like(x)
        for c in range(channels):
            window = slice(max(0, c - before), min(channels, c - before + size))
            squares[:, c] = np.sum(x[:, window] ** 2, axis=1)
        return ((x / (float(bias) + share * squares) ** float(beta)).astype(x.dtype),)


class Erf(OpRun):
    """ONNX's own rounds to float32."""

    def _run(self, x):
        return (np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype),)


class Gelu(OpRun):
    """Likewise, as it is a function of Erf."""

    def _run(self, x, approximate="none"):
        if approximate == "tanh":
            t = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
        else:
            t = np.vectorize(math.erf, otypes=[np.float64])(x / np.sqrt(2))
        return ((x * (1 + t) / 2).astype(x.dtype),)


class Softplus(OpRun):
    """ONNX's own overflows."""

    def _run(self, x):
        return (np.logaddexp(x, np.zeros_like(x)),)


REPAIRED = [LRN, Erf, Gelu, Softplus, *REPAIRED_WINDOWS]
