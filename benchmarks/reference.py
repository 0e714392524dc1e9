"""Time of the NumPy reference as a multiple of PyTorch's, forward and backward, interleaved in one process.

    python benchmarks/reference.py [--repeat 7] [--at-most 15] [--json]

on an image (8, 64, 64, 64) of float32 and a grid of 64 x 64 points, uniform in ±1.1. It needs PyTorch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time

import numpy as np
import torch

from lucid_onnx.reference import grid_sample, grid_sample_backward
from lucid_onnx.reference.schema import MODES, PADDING_MODES


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def ratio(ours, theirs, repeat: int) -> float:
    """Median time of `ours` over that of `theirs`, taken in turns after one call of each."""
    ours(), theirs()
    times = [(seconds(ours), seconds(theirs)) for _ in range(repeat)]
    return statistics.median(t for t, _ in times) / statistics.median(t for _, t in times)


def measure(mode: str, padding_mode: str, align_corners: bool, repeat: int) -> dict:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((8, 64, 64, 64)).astype(np.float32)
    grid = rng.uniform(-1.1, 1.1, (8, 64, 64, 2)).astype(np.float32)
    grad_out = rng.standard_normal(x.shape).astype(np.float32)
    how = (mode, padding_mode, align_corners)
    tensors = [torch.tensor(array, requires_grad=True) for array in (x, grid)]
    upstream = torch.tensor(grad_out)
    y = torch.nn.functional.grid_sample(*tensors, *how)
    return {
        "mode": mode,
        "padding_mode": padding_mode,
        "align_corners": align_corners,
        "forward": ratio(
            lambda: grid_sample(x, grid, *how), lambda: torch.nn.functional.grid_sample(*tensors, *how), repeat
        ),
        "backward": ratio(
            lambda: grid_sample_backward(grad_out, x, grid, *how),
            lambda: torch.autograd.grad(y, tensors, upstream, retain_graph=True),
            repeat,
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--at-most", type=float, default=15, help="exit with 1 if a ratio is larger")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(*cell, options.repeat) for cell in itertools.product(MODES, PADDING_MODES, (False, True))]
    over = max(row[way] for row in rows for way in ("forward", "backward")) > options.at_most
    if options.json:
        print(json.dumps({"threads": torch.get_num_threads(), "torch": torch.__version__, "rows": rows}, indent=2))
        return int(over)
    print(f"times as a multiple of PyTorch {torch.__version__} on {torch.get_num_threads()} threads")
    for row in rows:
        cell = f"{row['mode']:9} {row['padding_mode']:11} align_corners={row['align_corners']!s:5}"
        print(f"{cell}  forward {row['forward']:5.1f}  backward {row['backward']:5.1f}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
