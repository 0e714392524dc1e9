"""Processor time that lowering takes: 1,000 to 4,000 nodes, every twentieth of them a sampling of its own size.

``python benchmarks/rewriting.py --at-most 3`` exits with 1 if a model of 1,000 nodes takes longer than 3 seconds.
"""

from __future__ import annotations

import argparse
import time

import onnx
from onnx import helper

import lucid_onnx as lo

MODES = {"linear": 4, "nearest": 4, "cubic": 4, "linear, volumes": 5, "cubic, volumes": 5}
"""Modes of the samplings, and the rank of their images."""

EVERY = 20
"""One node of so many is a sampling."""


def model(nodes: int, mode: str, rank: int) -> onnx.ModelProto:
    """A model of `nodes` nodes, in which every sampling has an image and a grid of other sizes."""
    inputs, outputs, made = [], [], []
    for k in range(nodes // EVERY):
        sizes = [8 + k % 50, *[7 + k // 50 + nodes // 100] * (rank - 3)]
        x, grid = [1, 3, *sizes], [1, *sizes, rank - 2]
        inputs.append(helper.make_tensor_value_info(f"x{k}", onnx.TensorProto.FLOAT, x))
        inputs.append(helper.make_tensor_value_info(f"grid{k}", onnx.TensorProto.FLOAT, grid))
        outputs.append(helper.make_tensor_value_info(f"y{k}", onnx.TensorProto.FLOAT, x))
        sample = {"mode": mode.split(",")[0], "padding_mode": "border", "align_corners": 1}
        made.append(helper.make_node("GridSample", [f"x{k}", f"grid{k}"], [f"s{k}_0"], name=f"sample{k}", **sample))
        for step in range(EVERY - 1):
            target = f"y{k}" if step == EVERY - 2 else f"s{k}_{step + 1}"
            made.append(helper.make_node("Abs", [f"s{k}_{step}"], [target], name=f"abs{k}_{step}"))
    graph = helper.make_graph(made, "many", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-most", type=float, help="seconds that a model of 1,000 nodes may take")
    options = parser.parse_args()
    slowest = 0.0
    print(f"{'mode':<16}{'target':<18}" + "".join(f"{n:>8} nodes" for n in (1000, 2000, 4000)))
    for mode, rank in MODES.items():
        for target in ("onnxruntime-cpu", "portable"):
            times = []
            for nodes in (1000, 2000, 4000):
                start = time.process_time()
                lo.lower(model(nodes, mode, rank), target)
                times.append(time.process_time() - start)
            slowest = max(slowest, times[0])
            print(f"{mode:<16}{target:<18}" + "".join(f"{seconds:>12.2f} s" for seconds in times))
    return int(options.at_most is not None and slowest > options.at_most)


if __name__ == "__main__":
    raise SystemExit(main())
