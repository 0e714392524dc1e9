"""Pictures of the rows: how many times as fast as something else, one panel a shape. They need matplotlib."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lucid_onnx.bench.cases import GRIDS, parse_shapes
from lucid_onnx.bench.gradient_rows import GradientRow, over
from lucid_onnx.bench.rows import CellRow, Row
from lucid_onnx.files import replacing
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError

COLOURS = {"linear": ("#1f6fb4", "#92c1e5"), "nearest": ("#2f8f4e", "#9ad3ab"), "cubic": ("#c8622a", "#f0b492")}
"""For each mode the colours of its bars: of a uniform grid, and of a smooth one."""

PANELS = 5
"""Panels side by side, at the most."""


@dataclass(frozen=True)
class Drawn:
    """What is drawn of a row: a bar and a mark, both how many times as fast as what the picture is about."""

    row: CellRow
    bar: float | None
    mark: float | None

    def ratios(self) -> list[float]:
        """What there is of both."""
        return [ratio for ratio in (self.bar, self.mark) if ratio is not None]


MOST_TICKS = 8
"""Ticks of a panel, more of which would run into each other."""


def check_plot(path: str | os.PathLike[str]) -> None:
    """Raise if a picture could not be written to `path`: to know that after minutes of measuring is too late.

    Raises
    ------
    ArgumentError
        The name does not end as one of a picture, or the folder is none that may be written to.
    UnsupportedError
        matplotlib is not installed.

    Examples
    --------
    >>> check_plot("bench.docx")
    Traceback (most recent call last):
    ...
    lucid_onnx.reference.schema.ArgumentError: bench: the name of a picture ends in .png, .svg or .pdf; got 'bench.docx'
    """
    formats = _figure(1, 1).canvas.get_supported_filetypes()
    file = Path(path)
    if file.suffix.lower().removeprefix(".") not in formats:
        raise ArgumentError(f"bench: the name of a picture ends in .png, .svg or .pdf; got {os.fspath(path)!r}")
    try:
        if file.is_dir():
            raise OSError(None, "it is a folder")
        with tempfile.TemporaryFile(dir=file.parent):
            pass
    except OSError as error:
        raise ArgumentError(f"cannot write {os.fspath(path)!r}: {error.strerror or error}") from None


def plot(rows: Sequence[Row], path: str | os.PathLike[str]) -> None:
    """Draw kernel/lowered of every row, and kernel/pytorch as a mark where PyTorch was measured.

    Parameters
    ----------
    rows : sequence of Row
        What `run_bench` gave.
    path : path
        A picture to write: .png, .svg, .pdf.

    Examples
    --------
    >>> import tempfile
    >>> from lucid_onnx.bench import run_bench
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot(run_bench(["1x1x2x2"], repeats=1), f"{folder}/bench.png")
    ...     [file.name for file in Path(folder).iterdir()]
    ['bench.png']
    """
    drawn = [Drawn(row, row.speedup, over(row.kernel, row.pytorch)) for row in rows]
    _draw(drawn, "times as fast as onnxruntime's GridSample (logarithmic)", "PyTorch", path)


def plot_gradients(rows: Sequence[GradientRow], path: str | os.PathLike[str]) -> None:
    """Draw pytorch/ours of every row, and pytorch/onnx-ad as a mark where that was measured.

    Parameters are those of `plot`.

    Examples
    --------
    >>> import tempfile
    >>> from lucid_onnx.bench import run_gradient_bench
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot_gradients(run_gradient_bench(["1x1x2x2"], repeats=1).cells, f"{folder}/bench.png")
    ...     [file.name for file in Path(folder).iterdir()]
    ['bench.png']
    """
    drawn = [Drawn(row, over(row.pytorch, row.ours), over(row.pytorch, row.onnx_ad)) for row in rows]
    _draw(drawn, "forward and backward: times as fast as PyTorch (logarithmic)", "onnx-ad", path)


def _draw(drawn: Sequence[Drawn], title: str, peer: str, path: str | os.PathLike[str]) -> None:
    rows = [each.row for each in drawn]
    shapes = list(dict.fromkeys(row.shape for row in rows))
    labels = list(dict.fromkeys(row.way for row in rows))
    down = -(-len(shapes) // PANELS)
    across = -(-len(shapes) // down)
    width = 2.6 * across + 2.4
    figure = _figure(width, (0.3 * len(labels) + 0.8) * down + 1)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, shape in zip(panels, shapes, strict=False):
        _panel(axes, shape, [each for each in drawn if each.row.shape == shape], labels)
    for axes in panels[len(shapes) :]:
        axes.set_axis_off()
    _scale(panels[0], [ratio for each in drawn for ratio in each.ratios()])
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.4, -0.6)
    figure.supxlabel(title, fontsize=9)
    columns = int(width / 1.5)
    handles = _legend(rows, peer if any(each.mark is not None for each in drawn) else None)
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, fontsize=8, frameon=False)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=130)


def _panel(axes: Any, shape: str, drawn: Sequence[Drawn], labels: Sequence[str]) -> None:
    """The bars of one shape: two to a line, one a grid."""
    for each in drawn:
        which = GRIDS.index(each.row.grid)
        line = labels.index(each.row.way) + (0.2 if which else -0.2)
        if each.bar is not None:
            axes.barh(line, each.bar - 1, 0.38, left=1, color=COLOURS[each.row.mode][which])
        if each.mark is not None:
            axes.plot(
                each.mark,
                line,
                "d",
                color="#222222",
                markeredgecolor="white",
                markeredgewidth=0.5,
                markersize=4.5,
            )
    axes.axvline(1, color="#222222", linewidth=0.8)
    axes.tick_params(axis="x", labelsize=8, labelbottom=True)
    axes.tick_params(axis="y", labelsize=8, length=0)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(_title(shape), fontsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _scale(axes: Any, ratios: Sequence[float]) -> None:
    """The axis that all panels share: logarithmic, with ticks at powers of two, around all that is drawn."""
    low, high = min([1, *ratios]) / 1.2, max([1, *ratios]) * 1.2
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = -(-len(powers) // MOST_TICKS)
    axes.set_xticks([2.0**power for power in powers if power % every == 0])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}" if x >= 1 else f"1/{1 / x:g}")


def _legend(rows: Sequence[CellRow], peer: str | None) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=colour, label=f"{mode}, {grid}")
        for mode in dict.fromkeys(row.mode for row in rows)
        for grid, colour in zip(GRIDS, COLOURS[mode], strict=True)
        if any((row.mode, row.grid) == (mode, grid) for row in rows)
    ]
    if peer is not None:
        handles.append(Line2D([], [], color="#222222", marker="d", linestyle="", markersize=4, label=peer))
    return handles


def _title(shape: str) -> str:
    """A shape in two lines, so that neighbours do not run into each other."""
    (known,) = parse_shapes([shape])
    return str(known).replace(" -> ", "\nto ")


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("the plot needs matplotlib: pip install 'lucid-onnx[viz]'") from None
    return Figure(figsize=(width, height), layout="constrained")
