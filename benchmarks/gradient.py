"""Forward and backward of GridSample by `gradient`, PyTorch and onnx-ad, interleaved in one process; whole networks.

    python benchmarks/gradient.py [--shapes A,B,2x16x128x128:64x64] [--json] [--plot out.png] [--memory] [--repeats 7]

The same as ``lucid-onnx bench --gradient``; PyTorch's column and the networks need PyTorch, onnx-ad's column needs
``pip install onnx-ad==0.3.0``. The exit status is 1 if a result is over its bound.
"""

from __future__ import annotations

import sys

from lucid_onnx.cli import main

if __name__ == "__main__":
    sys.exit(main(["bench", "--gradient", *sys.argv[1:]]))
