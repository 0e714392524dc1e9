"""The main job, shown: a photograph under affine maps, in onnxruntime, against the reference."""

from __future__ import annotations

import importlib.resources
import itertools
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnxscript import GraphBuilder

from lucid_onnx import reference
from lucid_onnx.conformance.tolerance import Verdict, image_limits, image_range, judge, undecided
from lucid_onnx.files import make_folder, replacing, write_model
from lucid_onnx.images import read_image
from lucid_onnx.models.checks import image_spec, theta_spec
from lucid_onnx.operators.building import dims, named
from lucid_onnx.operators.finishing import DEFAULT_OPSET, call_function, checked, declare_outputs, new_model
from lucid_onnx.operators.model import DOMAIN, operator_function
from lucid_onnx.operators.tensors import TensorSpec
from lucid_onnx.reference.schema import MODES, PADDING_MODES, Array, UnsupportedError
from lucid_onnx.runtime import session

CELLS = {f"{mode}_{padding}": (mode, padding) for mode, padding in itertools.product(MODES, PADDING_MODES)}
"""Every mode with every padding mode, by the name of its output of ``warp.onnx``."""


LONGEST = 640
"""Pixels along the longer side of the photograph at the most: 27 warps of 12 megapixels would take minutes."""


@dataclass(frozen=True)
class Row:
    """One warped image and how it compares with the reference."""

    transform: str
    mode: str
    padding_mode: str
    verdict: Verdict

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        cell = {"transform": self.transform, "mode": self.mode, "padding_mode": self.padding_mode}
        return {**cell, **asdict(self.verdict), "ok": self.verdict.ok}


def transforms(height: int, width: int) -> dict[str, Array]:
    """Affine maps of the demo, (1, 2, 3) of float32, for an image of `height` by `width` pixels.

    In normalised coordinates both axes run from -1 to 1, so a rotation of the pixels needs the aspect ratio.
    The shear also zooms out, to show the padding; its odd numbers keep pixels off the ties of "nearest".
    """
    angle, aspect = np.deg2rad(30), width / height
    cos, sin = np.cos(angle), np.sin(angle)
    maps = {
        "rotation by 30 degrees": [[cos, -sin / aspect, 0], [sin * aspect, cos, 0]],
        "zoom 2x": [[0.5, 0, 0.1], [0, 0.5, -0.1]],
        "shear 0.4": [[1.17, 0.4 / aspect, 0.013], [0, 1.17, 0.017]],
    }
    return {name: np.array([theta], np.float32) for name, theta in maps.items()}


def warp_model() -> onnx.ModelProto:
    """An image and theta in; the warped image in every mode and padding mode out.

    One AffineGrid feeds a GridSample for each; all are model-local functions of standard operators.

    Examples
    --------
    >>> [value.name for value in warp_model().graph.output][:2]
    ['bilinear_zeros', 'bilinear_border']
    """
    inputs = [image_spec("X", None, None, 2), theta_spec(2)]
    opsets = {"": DEFAULT_OPSET, DOMAIN: 1}
    graph = ir.Graph([spec.value() for spec in inputs], [], nodes=[], opset_imports=opsets, name="warp")
    builder = GraphBuilder(graph)
    x, theta = graph.inputs
    grid = named(call_function(builder, operator_function("AffineGrid"), theta, dims(builder.op, x, 0, 4)), "grid")
    warped, specs = [], []
    for name, (mode, padding_mode) in CELLS.items():
        sampler = operator_function("GridSample", mode=mode, padding_mode=padding_mode, name=f"GridSample_{name}")
        warped.append(call_function(builder, sampler, x, grid))
        specs.append(TensorSpec(name, ir.DataType.FLOAT, inputs[0].shape))
    declare_outputs(builder.op, graph, warped, specs)
    model = new_model(graph)
    model.functions.update(builder.functions)
    return checked(model)


def run_demo(
    image: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> tuple[list[Row], Path, Path]:
    """Warp a photograph, judge every result, and write the model and a picture.

    Parameters
    ----------
    image : path, optional
        A picture, scaled down to `LONGEST` pixels if it is larger; by default the one that ships with the
        package.
    out : path
        Folder for ``warp.onnx`` and ``warp.png``.
    progress : callable
        Wraps the iteration over the maps.

    Returns
    -------
    rows : list of Row
        A row for each map, mode and padding mode.
    model, picture : Path
        The files written.

    Raises
    ------
    ArgumentError
        `image` is no picture, or `out` cannot be written to.
    UnsupportedError
        Pillow or matplotlib is not installed.
    """
    _matplotlib()
    x = read_image(_photograph() if image is None else image, longest=LONGEST)
    model = warp_model()
    warp = session(model)
    rows, panels = [], []
    for transform, theta in progress(list(transforms(*x.shape[2:]).items())):
        results = warp.run(list(CELLS), {"X": x, "theta": theta})
        for (mode, padding_mode), result in zip(CELLS.values(), results, strict=True):
            rows.append(Row(transform, mode, padding_mode, _judge(result, x, theta, mode, padding_mode)))
            panels.append(result[0])
    # Written last, so that a failure leaves nothing behind; the picture first, which is likelier to fail.
    folder = make_folder(out)
    model_path, picture_path = folder / "warp.onnx", folder / "warp.png"
    _draw(x[0], rows, panels, picture_path)
    write_model(model, model_path)
    return rows, model_path, picture_path


def _photograph() -> Path:
    return Path(str(importlib.resources.files("lucid_onnx") / "data" / "chelsea.jpg"))


def _judge(result: Array, x: Array, theta: Array, mode: str, padding_mode: str) -> Verdict:
    """Compare with the reference from theta on, so that the error of the grid counts too."""

    def compute(dtype: np.dtype[Any]) -> Array:
        grid = reference.affine_grid(theta.astype(dtype), x.shape)
        return reference.grid_sample(x.astype(dtype), grid, mode, padding_mode)

    grid = reference.affine_grid(theta.astype(np.float64), x.shape)
    limits = None if mode == "bicubic" else image_limits(x)
    doubtful = undecided(grid, x.shape[2:], mode, padding_mode, False, "float32")
    return judge(result, compute, "float32", image_range(x), doubtful[:, None], mode == "nearest", limits)


def _draw(x: Array, rows: list[Row], panels: list[Array], path: Path) -> None:
    """One picture: the photograph on the left, a line of warped ones for each map."""
    figure_class, grid_spec = _matplotlib()
    lines = len(rows) // len(CELLS)
    aspect = min(max(x.shape[1] / x.shape[2], 0.25), 4)
    width, height = 2.0, 2.0 * aspect + 0.5
    figure = figure_class(figsize=(width * (len(CELLS) + 2), height * lines + 0.5), layout="constrained")
    areas = grid_spec(lines, len(CELLS) + 2, figure=figure)
    _show(figure.add_subplot(areas[:, :2]), x, f"original, {x.shape[2]} x {x.shape[1]}", 11)
    for k, (row, panel) in enumerate(zip(rows, panels, strict=True)):
        line, column = divmod(k, len(CELLS))
        title = f"{row.transform}\n{row.mode}, {row.padding_mode}"
        _show(figure.add_subplot(areas[line, column + 2]), panel, title, 9)
    figure.suptitle("affine_grid + grid_sample as an ONNX model in onnxruntime")
    with replacing(path) as beside:
        figure.savefig(beside, dpi=110)


def _show(axes: Any, image: Array, title: str, size: float) -> None:
    axes.imshow(np.clip(np.moveaxis(image, 0, -1), 0, 1), interpolation="nearest")
    axes.set_title(title, fontsize=size)
    axes.set_axis_off()


def _matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
        from matplotlib.gridspec import GridSpec
    except ImportError:
        raise UnsupportedError("the demo draws with matplotlib: pip install 'lucid-onnx[viz]'") from None
    return Figure, GridSpec
