"""Adding what belongs to one place, exactly and with the same bytes at any number of threads.

`scatter_add` mirrors ``_scatter_add`` of `lucid_onnx.reference.grid_sample`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from lucid_onnx.operators.building import Builder, Value, cast, dims, known_ints, reshape

OLDEST_OPSET_OF_LAYERS = 18
"""The first opset with a ScatterElements that takes the maximum."""


def scatter_add(op: Builder, table: Value, index: Value, updates: Value) -> Value:
    """`table` (C, M) with `updates` (C, P) added to its columns `index` (P,), in the order of the points.

    ScatterElements, not ScatterND: onnxruntime's CPU kernel of the latter adds from several threads without
    a lock, so that updates of one column are lost where `index` repeats (measured with 1.32: wrong in 4 of
    5 runs on two threads). Along the last axis, where it is 2 to 3 times faster than along the first.
    """
    columns = op.Expand(index, op.Shape(updates))
    return op.ScatterElements(table, columns, updates, axis=1, reduction="add")


def scatter_cells(
    op: Builder,
    table: Value,
    rows: Value,
    first: Value,
    distances: Sequence[Value],
    weights: Sequence[Value | None],
    depth: int,
    kept: Value | None = None,
) -> Value:
    """`table` (M, C) with `rows` (P, C), times each of K weights (P,), added to K rows of it.

    They are row `first` (P,), of int64, and those at `distances` (1,) from it; only the points that are `kept` (P,)
    count, by default all. Points that share no `first` share none of these rows, tap for tap. So one point of each is
    taken at a time, the last one, and its rows are added by a ScatterND whose indices do not repeat: whole rows, and by
    several threads. What is left after `depth` of that is added by ScatterElements, in the order of the points.
    """
    taps = _Taps(rows, distances, weights)
    left = op.Range(0, op.Squeeze(dims(op, rows, 0, 1)), 1)
    # Compress is told the only axis: onnxruntime is then five times as fast, and OpenVINO knows the rank of the result.
    if kept is not None:
        left, first = op.Compress(left, kept, axis=0), op.Compress(first, kept, axis=0)
    apart: list[tuple[Value, Value]] = []
    for _ in range(depth):
        nobody = op.ConstantOfShape(dims(op, table, 0, 1), value=ir.tensor([0]))
        last = op.ScatterElements(nobody, first, left, axis=0, reduction="max")
        alone = op.Equal(op.GatherElements(last, first, axis=0), left)
        apart += taps.updates(op, op.Compress(left, alone, axis=0), op.Compress(first, alone, axis=0))
        others = op.Not(alone)
        left, first = op.Compress(left, others, axis=0), op.Compress(first, others, axis=0)
    rest = [_by_number(op, table, *update) for update in taps.updates(op, left, first)]
    # The sums stand behind all that they add: of the inputs of a node onnxruntime computes first what is listed last,
    # and so adds each before it makes the next. The other way round it holds all of them at once.
    for index, update in apart:
        table = op.ScatterND(table, op.Unsqueeze(index, [1]), update, reduction="add")
    numbers = reshape(op, table, [-1])
    for index, update in rest:
        numbers = op.ScatterElements(numbers, index, update, axis=0, reduction="add")
    return op.Reshape(numbers, op.Shape(table), allowzero=1)


def layers(points: Value, cells: Value) -> int:
    """How often to take one point of each cell: what is then left, some 4 %, costs no more than another time would.

    For each time that is added to it, onnxruntime copies the table. For points that are thrown at random, d a cell,
    these are d and two standard deviations more.
    """
    known = known_ints(points), known_ints(cells)
    density = known[0][0] / max(known[1][0], 1) if known[0] and known[1] else 1.0
    return min(max(math.ceil(density + 2 * math.sqrt(density)), 1), MOST_LAYERS)


MOST_LAYERS = 8
"""A graph that took more would be large."""


class _Taps:
    """What points add to their taps."""

    def __init__(self, rows: Value, distances: Sequence[Value], weights: Sequence[Value | None]) -> None:
        self._rows, self._distances, self._weights = rows, distances, weights

    def updates(self, op: Builder, points: Value, first: Value) -> list[tuple[Value, Value]]:
        """For each tap the rows (U,) to which `points` (U,) add, and what they add, (U, C)."""
        rows = op.Gather(self._rows, points, axis=0)
        updates = []
        for distance, weight in zip(self._distances, self._weights, strict=True):
            update = rows
            if weight is not None:
                update = op.Mul(rows, op.Unsqueeze(op.GatherElements(weight, points, axis=0), [1]))
            updates.append((op.Add(first, cast(op, distance, ir.DataType.INT64)), update))
        return updates


def _by_number(op: Builder, table: Value, index: Value, update: Value) -> tuple[Value, Value]:
    """The numbers of the elements of `table` (M, C) in its rows `index` (U,), and of `update` (U, C), in a row."""
    channels = dims(op, table, 1, 2)
    starts = op.Unsqueeze(op.Mul(index, channels), [1])
    return reshape(op, op.Add(starts, op.Range(0, op.Squeeze(channels), 1)), [-1]), reshape(op, update, [-1])
