"""What is lowered for `portable` runs elsewhere: in ONNX's own evaluator, and in OpenVINO where it is installed."""

import cells
import numpy as np
import pytest
from judging import Case
from lowering.sampling import grid_sample_model, parsed
from onnx.reference import ReferenceEvaluator

from lucid_onnx.lowering import lower
from lucid_onnx.reference import affine_grid

SAMPLE = [
    (4, "bilinear", "zeros", False),
    (4, "bilinear", "border", True),
    (4, "bilinear", "reflection", False),
    (4, "nearest", "zeros", True),
    (4, "nearest", "border", False),
    (4, "nearest", "reflection", True),
    (4, "bicubic", "zeros", False),
    (4, "bicubic", "border", False),
    (4, "bicubic", "reflection", True),
    (5, "bilinear", "reflection", True),
    (5, "nearest", "border", False),
    (5, "bicubic", "zeros", False),
]
"""Cells of every mode, padding mode and rank."""


def small(rank):
    return (1, 2, 3, 4) if rank == 4 else (1, 1, 2, 3, 2)


def in_onnx(model):
    """A function of a feed that ONNX's own evaluator computes."""
    return lambda feed: ReferenceEvaluator(model).run(None, feed)


def in_openvino(model):
    """The same in OpenVINO, in float32 all the way."""
    openvino = pytest.importorskip("openvino", reason="OpenVINO runs what is lowered for it only where it is installed")
    compiled = openvino.Core().compile_model(
        openvino.convert_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    )
    return lambda feed: [*compiled(feed).values()]


RUNTIMES = [pytest.param(in_onnx, id="onnx.reference"), pytest.param(in_openvino, id="OpenVINO")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("family", ["outside", "ties", "nonfinite"])
@pytest.mark.parametrize("cell", SAMPLE, ids=cells.cell_id)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_sampling_agrees_with_the_reference(runtime, cell, family):
    shape = small(cell[0])
    case = Case.drawn(family, shape, *cell[1:], "float32")
    lowered, _ = lower(grid_sample_model(cell, "float32", 20), "portable", opset=16)
    (y,) = runtime(lowered)({"X": case.x, "grid": case.grid})
    verdict = case.judge_y(y)
    assert verdict.ok, verdict


@pytest.mark.parametrize("opset", [18, 22])
@pytest.mark.parametrize("cell", SAMPLE[::4], ids=cells.cell_id)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_so_does_one_of_another_opset(runtime, cell, opset):
    case = Case.drawn("outside", small(cell[0]), *cell[1:], "float32")
    lowered, _ = lower(grid_sample_model(cell, "float32", 20), "portable", opset=opset)
    assert case.judge_y(runtime(lowered)({"X": case.x, "grid": case.grid})[0]).ok


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_an_affine_grid_agrees_with_the_reference(runtime, align_corners):
    model = parsed(f"""
        g (float[2, 2, 3] theta, int64[4] size) => (float[2, H, W, 2] grid)
        {{ grid = AffineGrid <align_corners = {align_corners}> (theta, size) }}""")
    run = runtime(lower(model, "portable")[0])
    theta = cells.generator("theta").normal(size=(2, 2, 3)).astype(np.float32)
    for size in ((2, 1, 3, 4), (2, 1, 1, 5)):
        (grid,) = run({"theta": theta, "size": np.array(size)})
        np.testing.assert_allclose(grid, affine_grid(theta, size, bool(align_corners)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", [cell for cell in SAMPLE if cell[0] == 4], ids=cells.cell_id)
def test_what_is_lowered_for_openvino_agrees_there(cell):
    case = Case.drawn("outside", small(4), *cell[1:], "float32")
    lowered, _ = lower(grid_sample_model(cell, "float32", 20), "openvino")
    assert case.judge_y(in_openvino(lowered)({"X": case.x, "grid": case.grid})[0]).ok
