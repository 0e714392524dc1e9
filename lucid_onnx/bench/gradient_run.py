"""Gradients, measured: sampling and both its gradients by `gradient`, PyTorch and onnx-ad; networks; and building."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx

from lucid_onnx.bench.accuracy import judge_gradients, judge_sampled
from lucid_onnx.bench.cases import SHAPES, Cell, gradient_cells, inputs, kernel_model, parse_shapes
from lucid_onnx.bench.gradient_report import GradientResults
from lucid_onnx.bench.gradient_rows import GradientRow
from lucid_onnx.bench.growth import measure_building
from lucid_onnx.bench.memory import check_memory, grown, grown_calling
from lucid_onnx.bench.networks import measure_network, with_pytorch
from lucid_onnx.bench.peers import onnx_ad_gradient, pytorch_gradient, pytorch_on
from lucid_onnx.bench.timing import REPEATS, THREADS, as_repeats, medians, open_session
from lucid_onnx.conformance.tolerance import as_computed, undecided
from lucid_onnx.gradient import gradient
from lucid_onnx.reference.schema import ONNX_MODES, Array

Call = Callable[[], Any]
RESULTS = ("Y", "X_grad", "grid_grad")


def run_gradient_bench(
    shapes: Sequence[str] | None = None,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
    repeats: int = REPEATS,
    memory: bool = False,
) -> GradientResults:
    """Measure GridSample and both its gradients in every cell of `shapes`; and, by default, networks and building, too.

    Parameters
    ----------
    shapes : sequence of str, optional
        As `parse_shapes` reads them, and nothing else is measured; by default all of `SHAPES`, whole networks,
        and how long building a gradient takes.
    progress, repeats
        As in `run_bench`.
    memory : bool
        Whether to measure memory, too, in processes of their own: of linear sampling with zeros on the uniform grid,
        and of the networks.

    Raises
    ------
    ArgumentError, UnsupportedError
        As `run_bench` does.

    Examples
    --------
    >>> results = run_gradient_bench(["1x1x4x4"], repeats=1)
    >>> len(results.cells), results.ok
    (19, True)
    """
    to_measure = gradient_cells(parse_shapes([*SHAPES] if shapes is None else shapes))
    rounds = as_repeats(repeats)
    if memory:
        check_memory()
    networks = with_pytorch() if shapes is None else {}
    notes: dict[str, None] = {}
    basics: dict[str, Call] = {}
    with pytorch_on(THREADS):
        cells = [measure(cell, rounds, basics, notes, memory) for cell in progress(to_measure)]
        del basics
        rows = [measure_network(name, networks[name], rounds, memory) for name in progress(list(networks))]
    return GradientResults(cells, rows, measure_building() if shapes is None else [], list(notes))


def measure(
    cell: Cell, repeats: int, basics: dict[str, Call], notes: dict[str, None], memory: bool = False
) -> GradientRow:
    """Measure one cell; its call goes to `basics` if others are compared with it, and why a peer lacks to `notes`."""
    x, grid = inputs(cell.shape, cell.grid)
    grad_out = upstream(cell, grid)
    kernel = kernel_model(cell)
    model, feed = gradient(kernel), {"X": x, "grid": grid, "Y_grad": grad_out}
    ours = partial(open_session(model).run, RESULTS, feed)
    y, grad_x, grad_grid = ours()
    (of_y,) = judge_sampled([y], x, grid, cell)
    of_gradients = judge_gradients(grad_x, grad_grid, x, grid, grad_out, cell)
    del y, grad_x, grad_grid
    calls: dict[str, Call] = {"ours": ours}
    if _stands_for_others(cell):
        basics[cell.shape.name] = ours
    elif not cell.is_basic:
        calls["basic"] = basics[cell.shape.name]
    peers = {"pytorch": pytorch_gradient(x, grid, grad_out, cell), "onnx_ad": _onnx_ad(kernel, feed, notes)}
    for name, peer in peers.items():
        if peer is not None:
            peer()
            calls[name] = peer
    times = medians(calls, repeats)
    return GradientRow(
        cell.shape.name,
        cell.grid,
        cell.mode,
        cell.padding_mode,
        cell.align_corners,
        ours=times["ours"],
        pytorch=times.get("pytorch"),
        onnx_ad=times.get("onnx_ad"),
        basic=times.get("basic"),
        verdicts=dict(zip(RESULTS, (of_y, *of_gradients), strict=True)),
        memory=_memory(model, feed, cell) if memory and "pytorch" in calls and _stands_for_others(cell) else None,
    )


def upstream(cell: Cell, grid: Array) -> Array:
    """An upstream gradient of noise; 0 for points that may land on either of two pixels, which no one can judge."""
    sizes, how = cell.shape.image[2:], (ONNX_MODES[cell.mode], cell.padding_mode, cell.align_corners)
    noise = np.random.default_rng(1).standard_normal(cell.shape.result, np.float32)
    doubtful = undecided(as_computed(grid, sizes, cell.align_corners, "float32"), sizes, *how, "float32")
    noise[np.broadcast_to(doubtful[:, None], noise.shape)] = 0
    return noise


def _onnx_ad(kernel: onnx.ModelProto, feed: Mapping[str, Array], notes: dict[str, None]) -> Call | None:
    """A run of onnx-ad's model, where there is one; its upstream gradient has an axis more."""
    model, why = onnx_ad_gradient(kernel)
    if model is None:
        notes[why] = None
        return None
    (seed,) = (value.name for value in model.graph.input if value.name not in feed)
    return partial(
        open_session(model).run, None, {"X": feed["X"], "grid": feed["grid"], seed: feed["Y_grad"][..., None]}
    )


def _stands_for_others(cell: Cell) -> bool:
    """Whether memory is measured in this cell, and the other ways are compared with it."""
    return cell.is_basic and cell.grid == "uniform"


def _memory(model: onnx.ModelProto, feed: Mapping[str, Array], cell: Cell) -> float:
    theirs = partial(pytorch_gradient, feed["X"], feed["grid"], feed["Y_grad"], cell)
    return grown(model, feed, THREADS) / grown_calling(theirs, THREADS)
