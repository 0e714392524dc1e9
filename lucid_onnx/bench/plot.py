"""A picture of the rows: how many times faster than onnxruntime's kernel, one panel a shape. Needs matplotlib."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lucid_onnx.bench.cases import GRIDS, parse_shapes
from lucid_onnx.bench.rows import Row
from lucid_onnx.files import replacing
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError

COLOURS = {"linear": ("#1f6fb4", "#92c1e5"), "nearest": ("#2f8f4e", "#9ad3ab"), "cubic": ("#c8622a", "#f0b492")}
"""For each mode the colours of its bars: of a uniform grid, and of a smooth one."""

PANELS = 5
"""Panels side by side."""

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
    shapes = list(dict.fromkeys(row.shape for row in rows))
    labels = list(dict.fromkeys(_label(row) for row in rows))
    across = min(len(shapes), PANELS)
    down = -(-len(shapes) // across)
    width = 2.6 * across + 2.4
    figure = _figure(width, (0.3 * len(labels) + 0.8) * down + 1)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, shape in zip(panels, shapes, strict=False):
        _panel(axes, shape, [row for row in rows if row.shape == shape], labels)
    for axes in panels[len(shapes) :]:
        axes.set_axis_off()
    _scale(panels[0], rows)
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.4, -0.6)
    figure.supxlabel("times as fast as onnxruntime's GridSample (logarithmic)", fontsize=9)
    columns = int(width / 1.5)
    figure.legend(handles=_legend(rows), loc="outside upper center", ncols=columns, fontsize=8, frameon=False)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=130)


def _panel(axes: Any, shape: str, rows: Sequence[Row], labels: Sequence[str]) -> None:
    """The bars of one shape: two to a line, one a grid."""
    for row in rows:
        which = GRIDS.index(row.grid)
        line = labels.index(_label(row)) + (0.2 if which else -0.2)
        axes.barh(line, row.speedup - 1, 0.38, left=1, color=COLOURS[row.mode][which])
        if row.pytorch is not None:
            axes.plot(
                row.kernel / row.pytorch,
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


def _scale(axes: Any, rows: Sequence[Row]) -> None:
    """The axis that all panels share: logarithmic, with ticks at powers of two, around all that is drawn."""
    drawn = [row.speedup for row in rows] + [row.kernel / row.pytorch for row in rows if row.pytorch is not None]
    low, high = min(1, *drawn) / 1.2, max(1, *drawn) * 1.2
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    every = -(-len(powers) // MOST_TICKS)
    axes.set_xticks([2.0**power for power in powers if power % every == 0])
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter("{x:g}")


def _legend(rows: Sequence[Row]) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=colour, label=f"{mode}, {grid}")
        for mode in dict.fromkeys(row.mode for row in rows)
        for grid, colour in zip(GRIDS, COLOURS[mode], strict=True)
    ]
    if any(row.pytorch is not None for row in rows):
        handles.append(Line2D([], [], color="#222222", marker="d", linestyle="", markersize=4, label="PyTorch"))
    return handles


def _title(shape: str) -> str:
    """A shape in two lines, so that neighbours do not run into each other."""
    (known,) = parse_shapes([shape])
    return str(known).replace(" -> ", "\nto ")


def _label(row: Row) -> str:
    return f"{row.mode}, {row.padding_mode}{', corners' if row.align_corners else ''}"


def _figure(width: float, height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("the plot needs matplotlib: pip install 'lucid-onnx[viz]'") from None
    return Figure(figsize=(width, height), layout="constrained")
