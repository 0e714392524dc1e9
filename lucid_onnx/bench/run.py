"""The measuring: every peer in one process, in turns.

onnxruntime's and PyTorch's threads go on spinning for a while after a call and disturb whatever is timed next.
So onnxruntime is told not to, every call is made after a pause in which the threads of the one before fall
asleep, and the order is drawn anew each round, so that no peer always follows the same other one.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import index
from typing import Any

import onnx
import onnxruntime as ort

from lucid_onnx.bench.accuracy import judge_sampled
from lucid_onnx.bench.cases import SHAPES, Cell, cells, inputs, kernel_model, parse_shapes
from lucid_onnx.bench.memory import check_memory, grown
from lucid_onnx.bench.rows import Row
from lucid_onnx.lowering import lower
from lucid_onnx.reference.schema import ONNX_MODES, ArgumentError, Array, DtypeError
from lucid_onnx.runtime import Session

THREADS = 2
"""Threads of every peer."""

REPEATS = 7
"""Rounds of each cell, by default and at the least."""

BUDGET = 0.6
"""Seconds in which a cell is measured for up to `MOST_REPEATS` times the rounds it must have."""

MOST_REPEATS = 4

PAUSE = 0.004
"""Seconds after which the threads of the call before sleep."""


def run_bench(
    shapes: Sequence[str] = tuple(SHAPES),
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
    rounds = _as_repeats(repeats)
    if memory:
        check_memory()
    with _pytorch_on(THREADS):
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

    sessions = {name: _session(models[name]) for name in dict.fromkeys(first.values())}
    results = {name: session.run(None, feed)[0] for name, session in sessions.items()}
    verdicts = dict(zip(results, judge_sampled(list(results.values()), x, grid, cell), strict=True))
    del results
    calls: dict[str, Callable[[], object]] = {
        name: partial(session.run, None, feed) for name, session in sessions.items()
    }
    peer = _pytorch(x, grid, cell)
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


def medians(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median time of each call in milliseconds, the calls made in turns, in an order drawn anew each round.

    Examples
    --------
    >>> sorted(medians({"a": list, "b": dict}, 2))
    ['a', 'b']
    """
    order = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in calls}
    started = time.perf_counter()
    for done in range(MOST_REPEATS * repeats):
        if done >= repeats and time.perf_counter() - started > BUDGET:
            break
        for name in order.sample(list(calls), len(calls)):
            time.sleep(PAUSE)
            before = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - before)
    return {name: 1e3 * statistics.median(each) for name, each in times.items()}


def _as_repeats(repeats: int) -> int:
    try:
        rounds = index(repeats)
    except TypeError:
        raise DtypeError(f"bench: repeats must be an integer; got {repeats!r}") from None
    if rounds < 1:
        raise ArgumentError(f"bench: repeats must be at least 1; got {rounds}")
    return rounds


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


def _session(model: onnx.ModelProto) -> Session:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return Session(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _stands_for_others(cell: Cell) -> bool:
    """Whether memory is measured in this cell."""
    return cell.grid == "uniform" and not cell.align_corners


def _memory(models: Mapping[str, onnx.ModelProto], first: Mapping[str, str], feed: Mapping[str, Array]) -> float:
    if first["lowered"] == "kernel":
        return 1.0
    lowered, kernel = (grown(models[name], feed, THREADS) for name in ("lowered", "kernel"))
    return lowered / kernel


def _pytorch(x: Array, grid: Array, cell: Cell) -> Callable[[], object] | None:
    """The same by PyTorch, where it is installed."""
    try:
        import torch
    except ImportError:
        return None
    tensors = torch.from_numpy(x), torch.from_numpy(grid)

    def call() -> object:
        with torch.inference_mode():
            return torch.nn.functional.grid_sample(
                *tensors, ONNX_MODES[cell.mode], cell.padding_mode, cell.align_corners
            )

    return call


@contextlib.contextmanager
def _pytorch_on(threads: int) -> Iterator[None]:
    """PyTorch, if it is installed, on that many threads; afterwards on as many as before."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
