"""Scatter-add that is exact and gives the same bytes at any number of threads.

Mirrors ``_scatter_add`` of `lucid_onnx.reference.grid_sample`.
"""

from __future__ import annotations

from lucid_onnx.operators.building import Builder, Value


def scatter_add(op: Builder, table: Value, index: Value, updates: Value) -> Value:
    """`table` (C, M) with `updates` (C, P) added to its columns `index` (P,), in the order of the points.

    ScatterElements, not ScatterND: onnxruntime's CPU kernel of the latter adds from several threads without
    a lock, so that updates of one column are lost where `index` repeats (measured with 1.32: wrong in 4 of
    5 runs on two threads). Along the last axis, where it is 2 to 3 times faster than along the first.
    """
    columns = op.Expand(index, op.Shape(updates))
    return op.ScatterElements(table, columns, updates, axis=1, reduction="add")
