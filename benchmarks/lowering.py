"""onnxruntime's GridSample beside what lowering makes of it, and PyTorch, interleaved in one process.

    python benchmarks/lowering.py [--shapes A,B,2x16x128x128:64x64] [--json] [--plot out.png] [--memory] [--repeats 7]

The same as ``lucid-onnx bench``; PyTorch's column needs PyTorch. The exit status is 1 if a result is over its bound.
"""

from __future__ import annotations

import sys

from lucid_onnx.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
