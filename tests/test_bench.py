"""The benchmark of lowering: what it measures and how it says so. No time is ever asserted."""

import json
import re
import sys

import numpy as np
import onnx
import pytest

from lucid_onnx.bench import (
    SHAPES,
    Cell,
    cells,
    check_plot,
    machine,
    parse_shapes,
    plot,
    run_bench,
    summary,
    table,
)
from lucid_onnx.bench import run as running
from lucid_onnx.bench.accuracy import CHANNELS, POINTS, judge_sampled
from lucid_onnx.bench.cases import GRIDS, inputs, kernel_model
from lucid_onnx.bench.peers import pytorch_on
from lucid_onnx.bench.rows import Row
from lucid_onnx.cli import main
from lucid_onnx.conformance.tolerance import Verdict
from lucid_onnx.lowering import lower
from lucid_onnx.reference import grid_sample
from lucid_onnx.reference.schema import ONNX_MODES, ArgumentError, DtypeError, LucidError, UnsupportedError

TINY = "1x2x4x3:3x2"
TINY_VOLUME = "2x1x2x3x4:2x2x2"
RIGHT, WRONG = Verdict(0.5, 1.0, 0.1, 1.0, 9, 0, 0), Verdict(2.0, 1.0, 0.1, 1.0, 9, 0, 0)


@pytest.fixture(scope="module")
def rows():
    return run_bench([TINY, TINY_VOLUME], repeats=1)


def row(shape="B", mode="linear", padding_mode="border", align_corners=False, grid="uniform", **measured):
    """A row as if measured: the kernel takes 10 ms, all else what is given, or as long."""
    times = {"kernel": 10.0, "lowered": 10.0, "guarded": 10.0, "pytorch": None, "memory": None}
    verdicts = {"lowered_verdict": RIGHT, "guarded_verdict": RIGHT}
    forms = {"form": "kept", "guarded_form": "guarded"}
    return Row(shape, grid, mode, padding_mode, align_corners, **{**forms, **times, **verdicts, **measured})


def bar(name, *rows):
    (found,) = [each for each in summary(rows).bars if each.name == name]
    return found


def test_the_shapes_are_those_of_the_issue():
    assert {name: (shape.image, shape.points) for name, shape in SHAPES.items()} == {
        "A": ((1, 3, 256, 256), (256, 256)),
        "B": ((8, 64, 64, 64), (64, 64)),
        "C": ((1, 256, 64, 64), (128, 128)),
        "D": ((1, 1, 64, 64, 64), (64, 64, 64)),
        "E": ((1, 32, 16, 64, 64), (16, 64, 64)),
        "F": ((64, 1, 28, 28), (28, 28)),
    }


@pytest.mark.parametrize(
    ("written", "image", "points"),
    [
        ("a", (1, 3, 256, 256), (256, 256)),
        (" E ", (1, 32, 16, 64, 64), (16, 64, 64)),
        ("2x16x128x96", (2, 16, 128, 96), (128, 96)),
        ("2x16x128x96:64x32", (2, 16, 128, 96), (64, 32)),
        ("1x1x2x3x4:5x6x7", (1, 1, 2, 3, 4), (5, 6, 7)),
    ],
)
def test_shapes_are_letters_or_written_out(written, image, points):
    (shape,) = parse_shapes([written])
    assert (shape.image, shape.points) == (image, points)


def test_a_shape_named_twice_is_measured_once():
    assert [shape.name for shape in parse_shapes(["B", "b", "A"])] == ["B", "A"]


BAD_SHAPES = [
    ([], "at least one shape; there are A, B, C, D, E, F"),
    (["G"], "'G' is no shape"),
    ([""], "'' is no shape"),
    (["1x2x4x-4"], "is no shape"),
    (["1x2x4x4:"], "is no shape"),
    (["1x2x4"], "must be NxCxHxW:HoxWo or"),
    (["1x2x4x4:4"], "must be NxCxHxW:HoxWo or"),
    (["1x2x4x4:4x4x4"], "must be NxCxHxW:HoxWo or"),
    (["1x2x0x4"], "has nothing to sample"),
    (["1x2x4x4:0x4"], "has nothing to sample"),
    (["1x99999x99999x4:4x4"], "too large"),
    (["1x1x4x4:99999x99999"], "too large"),
]


@pytest.mark.parametrize(("shapes", "message"), BAD_SHAPES, ids=[str(shapes) for shapes, _ in BAD_SHAPES])
def test_what_is_no_shape_is_refused_before_anything_runs(shapes, message):
    with pytest.raises(ArgumentError, match=f"^bench: .*{message}"):
        run_bench(shapes, progress=pytest.fail)


@pytest.mark.parametrize(("repeats", "error"), [(0, ArgumentError), (-1, ArgumentError), (1.5, DtypeError)])
def test_repeats_is_an_integer_from_1_up(repeats, error):
    with pytest.raises(error, match=r"^bench: repeats must be"):
        run_bench([TINY], repeats=repeats)


@pytest.mark.parametrize(("shape", "modes"), [("A", set(ONNX_MODES)), ("D", {"linear", "nearest"})])
def test_the_cells_are_every_way_that_the_kernel_samples(shape, modes):
    found = cells([SHAPES[shape]])
    assert len(set(found)) == len(found) == 2 * len(modes) * 3 * 2
    assert {cell.mode for cell in found} == modes


def test_every_cell_has_its_row(rows):
    named = {(row.shape, row.grid, row.mode, row.padding_mode, row.align_corners) for row in rows}
    assert named == {
        (cell.shape.name, cell.grid, cell.mode, cell.padding_mode, cell.align_corners)
        for cell in cells(parse_shapes([TINY, TINY_VOLUME]))
    }


def test_every_row_is_within_its_tolerance(rows):
    assert [row.name for row in rows if not row.ok] == []


def test_what_is_kept_has_the_time_of_the_kernel(rows):
    kept = [row for row in rows if row.form == "kept"]
    assert kept
    assert all(row.lowered == row.kernel and row.speedup == 1 for row in kept)


def test_pytorch_is_measured_where_it_is_installed(rows):
    pytest.importorskip("torch", reason="the column needs PyTorch")
    assert all(row.pytorch > 0 for row in rows)


def test_without_pytorch_its_column_is_empty(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    row = running.measure(Cell(parse_shapes([TINY])[0], "smooth", "linear", "zeros", True), 1)
    assert row.pytorch is None
    assert row.of_pytorch is None
    assert table([row])[1][0][8] == ""


def test_pytorch_has_as_many_threads_as_before():
    torch = pytest.importorskip("torch", reason="it is about PyTorch")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with pytorch_on(2):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def test_progress_sees_the_cells():
    seen = []

    def progress(steps):
        seen.extend(steps)
        return seen[:1]

    assert len(run_bench([TINY], progress, repeats=1)) == 1
    assert len(seen) == 36


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("shape", [TINY, TINY_VOLUME])
def test_inputs_are_float32_and_the_same_at_every_call(shape, grid):
    (shape,) = parse_shapes([shape])
    first, second = inputs(shape, grid), inputs(shape, grid)
    assert [array.shape for array in first] == [shape.image, shape.grid]
    for ours, theirs in zip(first, second, strict=True):
        assert ours.dtype == np.float32
        np.testing.assert_array_equal(ours, theirs)


def test_the_uniform_grid_lies_within_a_tenth_beyond_the_image():
    _, grid = inputs(SHAPES["A"], "uniform")
    assert 1.09 < np.abs(grid).max() <= np.float32(1.1)


def test_the_smooth_grid_moves_by_less_than_two_pixels_a_point():
    _, grid = inputs(SHAPES["A"], "smooth")
    assert np.abs(np.diff(grid, axis=2)).max() * 256 / 2 < 2


def test_the_model_of_the_kernel_is_one_node_of_known_shapes():
    model = kernel_model(Cell(parse_shapes([TINY])[0], "uniform", "cubic", "reflection", True))
    onnx.checker.check_model(model, full_check=True)
    (node,) = model.graph.node
    assert (node.op_type, model.opset_import[0].version) == ("GridSample", 20)
    values = [*model.graph.input, *model.graph.output]
    assert [[d.dim_value for d in value.type.tensor_type.shape.dim] for value in values] == [
        [1, 2, 4, 3],
        [1, 3, 2, 2],
        [1, 2, 3, 2],
    ]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_sample_of_a_large_result_is_judged(mode):
    (shape,) = parse_shapes(["2x8x20x20:64x64"])
    x, grid = inputs(shape, "uniform")
    cell = Cell(shape, "uniform", mode, "border", False)
    y = grid_sample(x, grid, ONNX_MODES[mode], "border")
    off = y.copy()
    off[-1, -1, -1, -1] += 1
    right, wrong = judge_sampled([y, off], x, grid, cell)
    assert right.ok
    assert right.compared + right.set_aside == 2 * CHANNELS * POINTS
    assert not wrong.ok


def test_models_that_are_alike_are_timed_once():
    (shape,) = parse_shapes([TINY])
    one, same, other = (
        kernel_model(Cell(shape, "smooth", mode, "zeros", False)) for mode in ("linear", "linear", "cubic")
    )
    assert running._first_alike({"a": one, "b": same, "c": other}) == {"a": "a", "b": "a", "c": "c"}


BARS = [
    ("no cell slower than the kernel", {"lowered": 10.4}, {"lowered": 10.6}),
    ("B, C: linear with border, reflection or align_corners", {"lowered": 2.4}, {"lowered": 2.6}),
    ("B, C: nearest", {"mode": "nearest", "lowered": 4.9}, {"mode": "nearest", "lowered": 5.1}),
    ("B, C: cubic", {"mode": "cubic", "lowered": 6.6}, {"mode": "cubic", "lowered": 6.7}),
    (
        "B, C: cubic with reflection",
        {"mode": "cubic", "padding_mode": "reflection", "lowered": 3.3},
        {"mode": "cubic", "padding_mode": "reflection", "lowered": 3.4},
    ),
    ("A, B, C: geometric mean", {"lowered": 3.9}, {"lowered": 4.1}),
    ("B, C: linear and nearest beside PyTorch", {"pytorch": 10.0}, {"pytorch": 9.9}),
    ("guards", {"guarded": 13.0}, {"guarded": 13.1}),
    ("A, D: guards", {"shape": "D", "guarded": 16.0}, {"shape": "D", "guarded": 16.1}),
    ("memory of linear and nearest", {"memory": 2.0}, {"memory": 2.1}),
    ("accuracy by the tolerance rule", {}, {"guarded_verdict": WRONG}),
]


@pytest.mark.parametrize(("name", "good", "bad"), BARS, ids=[name for name, *_ in BARS])
def test_a_bar_is_met_up_to_its_bound(name, good, bad):
    assert [bar(name, row(**measured)).ok for measured in (good, bad)] == [True, False]


@pytest.mark.parametrize(("name", "good", "bad"), BARS, ids=[name for name, *_ in BARS])
def test_the_worst_cell_decides_but_for_the_mean(name, good, bad):
    assert bar(name, row(**good), row(**bad)).ok is (name == "A, B, C: geometric mean")


def test_every_bar_is_tested():
    assert [each.name for each in summary([row()]).bars] == [name for name, *_ in BARS]


@pytest.mark.parametrize(
    ("name", "about_another"),
    [
        ("B, C: linear with border, reflection or align_corners", {"padding_mode": "zeros"}),
        ("B, C: linear with border, reflection or align_corners", {"shape": "A"}),
        ("B, C: nearest", {}),
        ("B, C: cubic with reflection", {"mode": "cubic"}),
        ("A, B, C: geometric mean", {"shape": "D"}),
        ("B, C: linear and nearest beside PyTorch", {"mode": "cubic", "pytorch": 1.0}),
        ("B, C: linear and nearest beside PyTorch", {"pytorch": None}),
        ("guards", {"shape": "A"}),
        ("A, D: guards", {"shape": "B"}),
        ("memory of linear and nearest", {"mode": "cubic", "memory": 9.0}),
    ],
)
def test_a_bar_is_open_where_nothing_that_it_is_about_was_measured(name, about_another):
    found = bar(name, row(**about_another))
    assert (found.value, found.ok, found.where) == (None, None, "")


def test_the_summary_names_mean_and_slowest_cell():
    summed = summary([row("A", lowered=5.0), row("C", mode="nearest", lowered=1.25), row("D", lowered=20.0)])
    assert summed.geometric_mean == pytest.approx(4)
    assert summed.slowest.shape == "D"
    assert summed.bars[0].where == "D uniform linear border"


def test_a_wrong_value_of_nearest_is_no_infinity_in_json():
    mismatched = Verdict(0.0, 1.0, 0.0, 1.0, 9, 0, 1)
    content = summary([row(lowered_verdict=mismatched)]).as_dict()
    accuracy = content["bars"][-1]
    assert (accuracy["value"], accuracy["ok"]) == (None, False)
    json.dumps(content, allow_nan=False)


def test_the_table_has_a_line_a_row_and_says_what_is_over():
    header, lines = table([row(), row(lowered_verdict=WRONG)])
    assert {len(line) for line in lines} == {len(header)}
    assert ["OVER" in line for line in lines] == [False, True]


def test_memory_is_a_column_only_where_it_was_measured():
    assert "memory" not in table([row()])[0]
    header, lines = table([row(memory=1.5), row()])
    assert [line[header.index("memory")] for line in lines] == ["1.50", ""]


def test_memory_is_measured_once_a_mode_and_padding():
    pytest.importorskip("resource", reason="the system does not tell")
    cell = Cell(parse_shapes([TINY])[0], "uniform", "nearest", "reflection", False)
    assert running.measure(cell, 1, memory=True).memory > 0
    standing = [cell for cell in cells(parse_shapes([TINY])) if running._stands_for_others(cell)]
    ways = {(cell.mode, cell.padding_mode) for cell in standing}
    assert len(ways) == len(standing) == 9


def test_memory_of_a_run_is_that_of_its_result_whatever_the_parent_holds():
    pytest.importorskip("resource", reason="the system does not tell")
    from lucid_onnx.bench.memory import grown

    (shape,) = parse_shapes(["1x4x4x4:512x512"])
    x, grid = inputs(shape, "uniform")
    model = kernel_model(Cell(shape, "uniform", "nearest", "zeros", False))
    expanded, _ = lower(model, "portable")
    held = np.ones(2**24)
    kernel, more = (grown(each, {"X": x, "grid": grid}, 1) for each in (model, expanded))
    assert 2**22 <= kernel < 2**23 < more < held.nbytes


def test_memory_needs_a_system_that_tells(monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    with pytest.raises(UnsupportedError, match="does not tell the memory"):
        run_bench([TINY], memory=True)


def test_the_machine_is_named():
    named = machine()
    assert named["processor"]
    assert {"cores", "system", "onnxruntime"} <= set(named)


@pytest.mark.parametrize("name", ["bench.png", "bench.svg", "BENCH.PNG"])
def test_plot_writes_a_picture(tmp_path, rows, name):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    plot(rows, tmp_path / name)
    assert (tmp_path / name).stat().st_size > 1000
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_plot_takes_more_shapes_than_fit_side_by_side(tmp_path):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    plot([row(shape, pytorch=2.0) for shape in (*SHAPES, TINY)], tmp_path / "bench.png")


BAD_PLOTS = [
    ("bench.txt", "the name of a picture ends in .png"),
    ("bench", "the name of a picture ends in .png"),
    ("nowhere/bench.png", "cannot write .*nowhere/bench.png.: No such file"),
    ("folder.png", "cannot write .*folder.png.: it is a folder"),
]


@pytest.mark.parametrize(("name", "message"), BAD_PLOTS, ids=[name for name, _ in BAD_PLOTS])
def test_a_picture_that_cannot_be_written_is_refused(tmp_path, name, message):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ArgumentError, match=message):
        check_plot(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'lucid-onnx\[viz\]'"):
        check_plot("bench.png")


def test_the_command_prints_table_machine_and_bars(capsys):
    assert main(["bench", "--shapes", TINY, "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count(f"\n{TINY}") == 36
    assert "processor" in out.splitlines()[0]
    assert "accuracy by the tolerance rule" in out


def test_the_command_prints_json_and_writes_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    picture = str(tmp_path / "bench.png")
    words = ["--shapes", f"{TINY_VOLUME},{TINY}", "--repeats", "1", "--plot", picture, "--json"]
    assert main(["bench", *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report) == {"machine", "rows", "summary", "plot", "ok"}
    assert (report["ok"], report["plot"], len(report["rows"])) == (True, picture, 24 + 36)
    assert set(report["rows"][0]) == {
        *("shape", "grid", "mode", "padding_mode", "align_corners", "form", "guarded_form"),
        *("kernel", "lowered", "guarded", "pytorch", "kernel/lowered", "guarded/lowered", "lowered/pytorch"),
        *("lowered_verdict", "guarded_verdict", "memory", "ok"),
    }
    assert set(report["summary"]) == {"geometric_mean", "slowest", "bars"}
    assert set(report["summary"]["bars"][0]) == {"name", "bar", "value", "ok", "where"}
    assert [path.name for path in tmp_path.iterdir()] == ["bench.png"]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_result_over_its_bound_is_status_1(monkeypatch, capsys, words):
    monkeypatch.setattr("lucid_onnx.bench.run_bench", lambda *arguments: [row(lowered_verdict=WRONG)])
    assert main(["bench", *words]) == 1
    assert ("OVER" in capsys.readouterr().out) is not bool(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shapes", "A,G"], "'G' is no shape"),
        (["--shapes", ""], "'' is no shape"),
        (["--repeats", "0"], "repeats must be at least 1; got 0"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(capsys, words, message):
    assert main(["bench", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("lucid-onnx bench: ")
    assert message in line


def test_a_picture_that_cannot_be_written_costs_no_measurement(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("lucid_onnx.bench.run_bench", lambda *arguments: pytest.fail("it was measured"))
    with pytest.raises(LucidError):
        check_plot(tmp_path / "nowhere" / "bench.png")
    assert main(["bench", "--plot", str(tmp_path / "nowhere" / "bench.png")]) == 2
    assert re.search("cannot write|matplotlib", capsys.readouterr().err)
