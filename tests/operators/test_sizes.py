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
    """Nodes of the model, and functions and their nodes of the same as a function."""
    model = lo.operator_model(*arguments, **keywords)
    wrapped = lo.operator_model(*arguments, **keywords, as_function=True)
    nodes = Counter(node.op_type for node in model.graph.node)
    return {
        "nodes": sum(nodes.values()),
        "gathers": nodes["Gather"],
        "scatters": nodes["ScatterElements"],
        "functions": len(wrapped.functions),
        "function nodes": sum(node.op_type != "Constant" for f in wrapped.functions for node in f.node),
    }


STATIC = {
    "GridSample": {"X": (2, 3, 8, 9), "grid": (2, 4, 5, 2)},
    "GridSampleGrad": {"dY": (2, 3, 4, 5), "X": (2, 3, 8, 9), "grid": (2, 4, 5, 2)},
    "AffineGrid": {"theta": (2, 2, 3)},
    "AffineGridGrad": {"dgrid": (2, 8, 9, 2)},
}


def variants():
    for rank, mode, padding_mode, align_corners in cells.CELLS:
        for operator in ("GridSample", "GridSampleGrad"):
            cell = cells.cell_id((rank, mode, padding_mode, align_corners))
            yield f"{operator}-{cell}", (operator, rank, mode, padding_mode, align_corners), {}
    for operator in ("AffineGrid", "AffineGridGrad"):
        for rank in (4, 5):
            for align_corners in (False, True):
                corners = "corners" if align_corners else "edges"
                yield f"{operator}-{rank}d-{corners}", (operator, rank), {"align_corners": align_corners}
    for operator, shapes in STATIC.items():
        yield f"{operator}-4d-static", (operator,), {"shapes": shapes}
        yield f"{operator}-4d-float16", (operator,), {"dtype": "float16"}


def test_sizes_are_as_recorded():
    sizes = {name: measure(*arguments, **keywords) for name, arguments, keywords in variants()}
    if os.environ.get("LUCID_UPDATE_SNAPSHOT"):
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(size)}" for name, size in sizes.items())
        SNAPSHOT.write_text(f"{{\n{lines}\n}}\n")
    assert sizes == json.loads(SNAPSHOT.read_text())
