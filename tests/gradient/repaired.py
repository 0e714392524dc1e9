"""Operators in which ONNX's reference evaluator is wrong, where onnxruntime has no kernel."""

import numpy as np
from gradient.repaired_windows import REPAIRED_WINDOWS
from onnx.reference.op_run import OpRun

from lucid_onnx.verification.kernels import Erf, Gelu, Softplus


class LRN(OpRun):
    """ONNX's own counts the batch where it means the channels, and takes 4-D only."""

    def _run(self, x, alpha=1e-4, beta=0.75, bias=1.0, size=None):
        before, channels, share = (size - 1) // 2, x.shape[1], float(alpha) / size
        squares = np.zeros_like(x)
        for c in range(channels):
            window = slice(max(0, c - before), min(channels, c - before + size))
            squares[:, c] = np.sum(x[:, window] ** 2, axis=1)
        return ((x / (float(bias) + share * squares) ** float(beta)).astype(x.dtype),)


REPAIRED = [LRN, Erf, Gelu, Softplus, *REPAIRED_WINDOWS]
