"""How many nodes and functions each variant has, recorded so that growth shows in a review.

After a change that is meant: ``LUCID_UPDATE_SNAPSHOT=1 pytest tests/operators/test_sizes.py``.
"""

import json
import os
from collections import Counter
from pathlib import Path

import cells

import lucid_onnx as lo

SNAPSHOT = Path(__file__).with_name("sizes.json")


def measure(*arguments, **keywords):
    model = lo.operator_model(*arguments, **keywords)
    function = lo.operator_model(*arguments, **keywords, as_function=True)
    nodes = Counter(node.op_type for node in model.graph.node)
    return {
        "nodes": sum(nodes.values()),
        "gathers": nodes["Gather"],
        "scatters": nodes["ScatterElements"],
        "functions": len(function.functions),
    }


def test_no_variant_has_grown():
    sizes = {}
    for rank, mode, padding_mode, align_corners in cells.CELLS:
        for operator in ("GridSample", "GridSampleGrad"):
            cell = cells.cell_id((rank, mode, padding_mode, align_corners))
            sizes[f"{operator}-{cell}"] = measure(operator, rank, mode, padding_mode, align_corners)
    for operator in ("AffineGrid", "AffineGridGrad"):
        for rank in (4, 5):
            for align_corners in (False, True):
                sizes[f"{operator}-{rank}d-{'corners' if align_corners else 'edges'}"] = measure(
                    operator, rank, align_corners=align_corners
                )
    if os.environ.get("LUCID_UPDATE_SNAPSHOT"):
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(size)}" for name, size in sizes.items())
        SNAPSHOT.write_text(f"{{\n{lines}\n}}\n")
    assert sizes == json.loads(SNAPSHOT.read_text())
