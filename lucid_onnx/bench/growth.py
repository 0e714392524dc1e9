"""Processor time that building a gradient takes, over the number of nodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from lucid_onnx.bench.gradient_rows import BuildingRow
from lucid_onnx.gradient import gradient
from lucid_onnx.operators.finishing import DEFAULT_OPSET

SIZES = (1000, 2000)
"""Nodes of the models."""

BLOCK = ("Conv", "Relu", "Add", "MatMul", "Tanh")
"""Operators that follow one another, again and again."""


def chain(nodes: int) -> onnx.ModelProto:
    """A model of that many nodes, one after the other, with weights of their own; Add closes a bypass.

    Examples
    --------
    >>> [node.op_type for node in chain(6).graph.node]
    ['Conv', 'Relu', 'Add', 'MatMul', 'Tanh', 'Conv']
    """
    rng = np.random.default_rng(0)
    made, weights, values = [], [], ["X"]
    shapes = {"Conv": (4, 4, 3, 3), "MatMul": (8, 8)}
    for k in range(nodes):
        operator = BLOCK[k % len(BLOCK)]
        operands = [values[-1]]
        if operator in shapes:
            weight = 0.1 * rng.standard_normal(shapes[operator], np.float32)
            weights.append(numpy_helper.from_array(weight, f"W{k}"))
            operands.append(f"W{k}")
        elif operator == "Add":
            operands.append(values[-3])
        how: dict[str, Any] = {"pads": [1, 1, 1, 1]} if operator == "Conv" else {}
        values.append(f"V{k}" if k < nodes - 1 else "Y")
        made.append(helper.make_node(operator, operands, [values[-1]], f"{operator}{k}", **how))
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4, 8, 8]) for name in "XY")
    graph = helper.make_graph(made, "chain", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", DEFAULT_OPSET)], ir_version=10)


def measure_building(sizes: Sequence[int] = SIZES) -> list[BuildingRow]:
    """Time for models of `sizes` nodes, with respect to all their weights.

    Examples
    --------
    >>> [row.nodes for row in measure_building([10, 20])]
    [10, 20]
    """
    gradient(chain(len(BLOCK)))  # what is loaded once counts for none
    rows: list[BuildingRow] = []
    for nodes in sizes:
        _, seconds = timed_gradient(chain(nodes))
        growth = seconds / nodes / (rows[0].seconds / rows[0].nodes) if rows else None
        rows.append(BuildingRow(nodes, seconds, growth))
    return rows


def timed_gradient(
    model: onnx.ModelProto, wrt: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> tuple[onnx.ModelProto, float]:
    """The gradient of a model, and the seconds of processor time that building it took."""
    before = time.process_time()
    found = gradient(model, wrt, outputs)
    return found, time.process_time() - before
