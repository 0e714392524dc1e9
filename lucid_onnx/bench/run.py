"""Lowering, measured: onnxruntime's kernel, what lowering makes of it, and PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import onnx

from lucid_onnx.bench.accuracy import judge_sampled
from lucid_onnx.bench.cases import LOWERED_SHAPES, Cell, cells, inputs, kernel_model, parse_shapes
from lucid_onnx.bench.memory import check_memory, grown
from lucid_onnx.bench.peers import pytorch_forward, pytorch_on
from lucid_onnx.bench.rows import Row
from lucid_onnx.bench.timing import REPEATS, THREADS, as_repeats, medians, open_session
from lucid_onnx.lowering import lower
from lucid_onnx.reference.schema import Array


def run_bench(
    shapes: Sequence[str] = LOWERED_SHAPES,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    repeats: int = REPEATS,
    memory: bool = False,
) -> list[Row]:
    """Measure onnxruntime's GridSample, what lowering makes of it, and PyTorch, in every cell of `shapes`.

    A cell is a shape, a grid, a mode, a padding mode and align_corners, in float32, on two threads. Volumes have
    no cubic cells, since onnxruntime refuses those.

    Parameters
    ----------
    shapes : sequence of str
        As `parse_shapes` reads them.
    progress : callable
        Wraps the iteration over the cells.
    repeats : int
        Rounds of each cell at the least; where calls are short, there are more.
    memory : bool
        Whether to measure memory, too, in processes of their own: for each shape, mode and padding mode in the
        cell of the uniform grid without align_corners, since neither changes what a run allocates.

    Returns
    -------
    list of Row

    Raises
    ------
    ArgumentError
        What is written is no shape, or `repeats` is below 1.
    UnsupportedError
        `memory`, where the system does not tell.

    Examples
    --------
    >>> rows = run_bench(["1x1x4x4"], repeats=1)
    >>> len(rows), all(row.ok for row in rows)
    (36, True)
    """
    to_measure = cells(parse_shapes(shapes))
    rounds = as_repeats(repeats)
    if memory:
        check_memory()
    with pytorch_on(THREADS):
        return [measure(cell, rounds, memory) for cell in progress(to_measure)]


def measure(cell: Cell, repeats: int, memory: bool = False) -> Row:
    """Measure one cell."""
    x, grid = inputs(cell.shape, cell.grid)
    feed = {"X": x, "grid": grid}
    kernel = kernel_model(cell)
    lowered, report = lower(kernel, "onnxruntime-cpu", assume_finite=True)
    guarded, guarded_report = lower(kernel, "onnxruntime-cpu")
    models = {"kernel": kernel, "lowered": lowered, "guarded": guarded}
    first = _first_alike(models)
    forms = {"lowered": report.entries[0].action, "guarded": guarded_report.entries[0].action}
    forms = {name: "kept" if first[name] == "kernel" else form for name, form in forms.items()}

    sessions = {name: open_session(models[name]) for name in dict.fromkeys(first.values())}
    results = {name: session.run(None, feed)[0] for name, session in sessions.items()}
    verdicts = dict(zip(results, judge_sampled(list(results.values()), x, grid, cell), strict=True))
    del results
    calls: dict[str, Callable[[], object]] = {
        name: partial(session.run, None, feed) for name, session in sessions.items()
    }
    peer = pytorch_forward(x, grid, cell)
    if peer is not None:
        peer()
        calls["pytorch"] = peer
    times = medians(calls, repeats)
    return Row(
        cell.shape.name,
        cell.grid,
        cell.mode,
        cell.padding_mode,
        cell.align_corners,
        form=forms["lowered"],
        guarded_form=forms["guarded"],
        kernel=times["kernel"],
        lowered=times[first["lowered"]],
        guarded=times[first["guarded"]],
        pytorch=times.get("pytorch"),
        lowered_verdict=verdicts[first["lowered"]],
        guarded_verdict=verdicts[first["guarded"]],
        memory=_memory(models, first, feed) if memory and _stands_for_others(cell) else None,
    )


def _first_alike(models: Mapping[str, onnx.ModelProto]) -> dict[str, str]:
    """For each model the first one that does the same: timing that again would only add noise."""
    content = {name: _content(model) for name, model in models.items()}
    return {name: next(other for other in content if content[other] == content[name]) for name in content}


def _content(model: onnx.ModelProto) -> list[object]:
    """What a model computes, but for names of nodes and the order of attributes."""
    nodes = [
        (node.op_type, list(node.input), list(node.output), sorted(a.SerializeToString() for a in node.attribute))
        for node in model.graph.node
    ]
    return [*nodes, *sorted(tensor.SerializeToString() for tensor in model.graph.initializer)]


def _stands_for_others(cell: Cell) -> bool:
    """Whether memory is measured in this cell."""
    return cell.grid == "uniform" and not cell.align_corners


def _memory(models: Mapping[str, onnx.ModelProto], first: Mapping[str, str], feed: Mapping[str, Array]) -> float:
    if first["lowered"] == "kernel":
        return 1.0
    lowered, kernel = (grown(models[name], feed, THREADS) for name in ("lowered", "kernel"))
    return lowered / kernel
