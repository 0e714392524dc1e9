"""The benchmark of gradients: what it measures and how it says so. No time is ever asserted."""

import json
import sys

import numpy as np
import onnx
import pytest

from lucid_onnx.bench import SHAPES, Cell, GradientResults, GradientRow, gradient_cells, parse_shapes
from lucid_onnx.bench import gradient_run as running
from lucid_onnx.bench.accuracy import CHANNELS, POINTS, judge_gradients
from lucid_onnx.bench.cases import inputs, kernel_model
from lucid_onnx.bench.gradient_rows import NETWORK_ERROR, BuildingRow, NetworkRow
from lucid_onnx.bench.growth import BLOCK, chain, measure_building, timed_gradient
from lucid_onnx.bench.peers import onnx_ad_gradient
from lucid_onnx.bench.plot import plot_gradients
from lucid_onnx.cli import main
from lucid_onnx.conformance.tolerance import Verdict
from lucid_onnx.reference import grid_sample_backward
from lucid_onnx.reference.schema import ONNX_MODES, ArgumentError

TINY = "1x2x4x3:3x2"
TINY_VOLUME = "2x1x2x3x4:2x2x2"
RIGHT, WRONG = Verdict(0.5, 1.0, 0.1, 1.0, 9, 0, 0), Verdict(2.0, 1.0, 0.1, 1.0, 9, 0, 0)


@pytest.fixture(scope="module")
def results():
    return running.run_gradient_bench([TINY, TINY_VOLUME], repeats=1)


def row(shape="B", mode="linear", padding_mode="zeros", align_corners=False, grid="uniform", **measured):
    """A row as if measured: all that is not given takes 10 ms."""
    taken = {"ours": 10.0, "pytorch": 10.0, "onnx_ad": None, "basic": None, "verdicts": {"Y": RIGHT}}
    return GradientRow(shape, grid, mode, padding_mode, align_corners, **{**taken, **measured})


def network(name="STN", **measured):
    taken = {"ours": 10.0, "pytorch": 10.0, "error": 0.0, "pytorch_error": 0.0, "building": 0.0}
    return NetworkRow(name, **{**taken, **measured})


def bar(name, cells=(), networks=(), building=()):
    (found,) = [each for each in GradientResults(cells, networks, building, ()).bars() if each.name == name]
    return found


@pytest.mark.parametrize(("shape", "others"), [("A", 17), ("D", 11)])
def test_linear_with_zeros_is_measured_on_both_grids_and_first(shape, others):
    found = gradient_cells([SHAPES[shape]])
    assert [(cell.is_basic, cell.grid) for cell in found[:2]] == [(True, "uniform"), (True, "smooth")]
    assert {(cell.is_basic, cell.grid) for cell in found[2:]} == {(False, "uniform")}
    assert len(set(found)) == len(found) == 2 + others


def test_every_cell_has_its_row_and_is_within_its_tolerance(results):
    cells = gradient_cells(parse_shapes([TINY, TINY_VOLUME]))
    assert [(row.shape, row.grid, row.mode, row.padding_mode, row.align_corners) for row in results.cells] == [
        (cell.shape.name, cell.grid, cell.mode, cell.padding_mode, cell.align_corners) for cell in cells
    ]
    assert [row.name for row in results.cells if not row.ok] == []
    assert all(set(row.verdicts) == {"Y", "X_grad", "grid_grad"} for row in results.cells)


def test_the_other_ways_are_compared_with_linear_and_zeros(results):
    assert all((row.basic is None) == (row.way == "linear, zeros") for row in results.cells)


def test_shapes_that_are_named_are_all_that_is_measured(results):
    assert (results.networks, results.building) == ([], [])


def test_peers_are_measured_where_they_are_installed(results):
    for package, times in (
        ("torch", [row.pytorch for row in results.cells]),
        ("onnx_ad", [row.onnx_ad for row in results.cells]),
    ):
        try:
            __import__(package)
        except ImportError:
            assert set(times) == {None}
        else:
            assert all(time > 0 for time in times)


def test_without_peers_their_columns_are_empty_and_the_reason_is_a_note(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnx_ad", None)
    found = running.run_gradient_bench([TINY], progress=lambda cells: list(cells)[:1], repeats=1)
    (row,) = found.cells
    assert (row.pytorch, row.onnx_ad, row.of_pytorch, row.gain, row.ok) == (None, None, None, None, True)
    assert found.notes == ["onnx-ad is not installed: pip install onnx-ad==0.3.0"]


def test_what_onnx_ad_refuses_is_a_reason(monkeypatch):
    class RefusalError(Exception):
        pass

    class OnnxAd:
        UnsupportedOperator = RefusalError

        @staticmethod
        def reverse(model, layout):
            raise RefusalError("no such operator")

    monkeypatch.setitem(sys.modules, "onnx_ad", OnnxAd)
    model = kernel_model(Cell(parse_shapes([TINY])[0], "uniform", "linear", "zeros", False))
    assert onnx_ad_gradient(model) == (None, "onnx-ad refuses: no such operator")


@pytest.mark.parametrize(("shapes", "repeats"), [(["G"], 1), ([], 1), ([TINY], 0)])
def test_what_cannot_be_measured_is_refused_before_anything_runs(shapes, repeats):
    with pytest.raises(ArgumentError, match=r"^bench: "):
        running.run_gradient_bench(shapes, progress=pytest.fail, repeats=repeats)


def test_memory_is_measured_once_a_shape():
    pytest.importorskip("torch", reason="it is a multiple of PyTorch's")
    pytest.importorskip("resource", reason="the system does not tell")
    found = running.run_gradient_bench([TINY], lambda cells: list(cells)[:3], repeats=1, memory=True)
    assert [row.memory is not None for row in found.cells] == [True, False, False]
    assert found.cells[0].memory > 0


def test_no_gradient_comes_from_points_that_may_land_on_either_of_two_pixels():
    (shape,) = parse_shapes(["1x2x3x3:1x2"])
    grid = np.float32([[[[0.0, 0.0], [1 / 3, 0.0]]]])
    found = running.upstream(Cell(shape, "uniform", "nearest", "zeros", False), grid)
    assert (found != 0).tolist() == [[[[True, False]]] * 2]
    assert (running.upstream(Cell(shape, "uniform", "linear", "zeros", False), grid) != 0).all()


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_samples_of_large_gradients_are_judged(mode):
    (shape,) = parse_shapes(["2x8x20x20:64x64"])
    x, grid = inputs(shape, "uniform")
    cell = Cell(shape, "uniform", mode, "border", False)
    grad_out = running.upstream(cell, grid)
    gradients = grid_sample_backward(grad_out, x, grid, ONNX_MODES[mode], "border")
    of_x, of_grid = judge_gradients(*gradients, x, grid, grad_out, cell)
    assert of_x.ok
    assert of_grid.ok
    assert of_x.compared == 2 * CHANNELS * 20 * 20
    assert of_grid.compared + of_grid.set_aside == 2 * POINTS * 2
    for gradient in gradients:
        gradient[-1, -1, -1, -1] += 1
    assert not any(verdict.ok for verdict in judge_gradients(*gradients, x, grid, grad_out, cell))


def test_the_chain_is_valid_and_all_of_its_weights_have_gradients():
    model = chain(4 * len(BLOCK))
    onnx.checker.check_model(model, full_check=True)
    assert len(model.graph.node) == 4 * len(BLOCK)
    gradient, seconds = timed_gradient(model)
    weights = {f"{tensor.name}_grad" for tensor in model.graph.initializer}
    assert len(weights) == 8
    assert weights <= {value.name for value in gradient.graph.output}
    assert seconds > 0


def test_building_is_measured_by_the_node():
    rows = measure_building([5, 10])
    assert [(row.nodes, row.growth is None) for row in rows] == [(5, True), (10, False)]
    assert rows[1].growth == pytest.approx(rows[1].seconds / rows[0].seconds / 2)


@pytest.mark.parametrize("name", ["STN", "registration U-Net"])
def test_the_gradients_of_the_networks_are_those_of_their_twins(name):
    pytest.importorskip("torch", reason="the networks are made of PyTorch's")
    from lucid_onnx.bench.networks import NETWORKS, measure_network

    ((full, whole),) = [(each, network) for each, network in NETWORKS.items() if each.startswith(name)]
    row = measure_network(full, whole, 1)
    assert row.ok
    assert row.pytorch_error < 1e-4
    assert row.building > 0


def test_without_pytorch_there_are_no_networks(monkeypatch):
    from lucid_onnx.bench import networks

    monkeypatch.setattr(networks.importlib.util, "find_spec", lambda name: None)
    assert networks.with_pytorch() == {}


BARS = [
    ("linear, zeros: geometric mean", {"ours": 20.0}, {"ours": 20.1}),
    ("C, E: linear, zeros", {"shape": "E", "ours": 10.0}, {"shape": "E", "ours": 10.1}),
    ("B: linear, zeros", {"ours": 20.0}, {"ours": 20.1}),
    ("linear, zeros: every shape", {"shape": "F", "ours": 80.0}, {"shape": "F", "ours": 80.1}),
    ("every other linear and nearest cell", {"basic": 6.67}, {"basic": 6.66}),
    ("every cubic cell", {"mode": "cubic", "basic": 2.5}, {"mode": "cubic", "basic": 2.4}),
    ("beside onnx-ad: geometric mean", {"onnx_ad": 20.0}, {"onnx_ad": 19.9}),
    ("beside onnx-ad: every cell", {"onnx_ad": 10.0}, {"onnx_ad": 9.9}),
    ("memory", {"memory": 3.0}, {"memory": 3.1}),
    ("accuracy by the tolerance rule", {}, {"verdicts": {"Y": RIGHT, "X_grad": WRONG}}),
]
OTHER_BARS = [
    ("STN", {"networks": [network(ours=20.0)]}, {"networks": [network(ours=20.1)]}),
    (
        "registration U-Net",
        {"networks": [network("registration U-Net", ours=20.0)]},
        {"networks": [network("registration U-Net", ours=20.1)]},
    ),
    ("building: 1,000 nodes", {"building": [BuildingRow(1000, 5.0)]}, {"building": [BuildingRow(1000, 5.1)]}),
    (
        "building: time a node grows",
        {"building": [BuildingRow(2000, 9.0, 1.25)]},
        {"building": [BuildingRow(2000, 9.0, 1.3)]},
    ),
    ("memory", {"networks": [network(memory=3.0)]}, {"networks": [network(memory=3.1)]}),
    (
        "accuracy of networks",
        {"networks": [network(error=NETWORK_ERROR)]},
        {"networks": [network(error=1.1 * NETWORK_ERROR)]},
    ),
]


@pytest.mark.parametrize(("name", "good", "bad"), BARS, ids=[name for name, *_ in BARS])
def test_a_bar_is_met_up_to_its_bound(name, good, bad):
    assert [bar(name, [row(**measured)]).ok for measured in (good, bad)] == [True, False]


@pytest.mark.parametrize(("name", "good", "bad"), OTHER_BARS, ids=[name for name, *_ in OTHER_BARS])
def test_a_bar_of_networks_and_of_building_is_met_up_to_its_bound(name, good, bad):
    assert [bar(name, **measured).ok for measured in (good, bad)] == [True, False]


def test_every_bar_is_tested_and_open_where_nothing_was_measured():
    found = GradientResults((), (), (), ()).bars()
    assert {each.name for each in found} == {name for name, *_ in (*BARS, *OTHER_BARS)}
    assert {each.verdict for each in found} == {"not measured"}


@pytest.mark.parametrize(
    ("name", "about_another"),
    [
        ("linear, zeros: geometric mean", {"shape": TINY}),
        ("linear, zeros: every shape", {"basic": 10.0, "mode": "nearest"}),
        ("linear, zeros: every shape", {"pytorch": None}),
        ("C, E: linear, zeros", {"shape": "A"}),
        ("every other linear and nearest cell", {"mode": "cubic", "basic": 1.0}),
        ("every cubic cell", {"basic": 1.0}),
    ],
)
def test_a_bar_is_about_no_other_cells(name, about_another):
    assert bar(name, [row(**about_another)]).value is None


def test_an_aim_is_part_of_its_bar():
    assert bar("linear, zeros: geometric mean").bar == "ours / pytorch <= 2 (aim 1.5)"


def test_there_is_a_table_of_each_that_was_measured():
    assert [len(lines) for _, lines in GradientResults([row(), row()], [], [], ()).tables()] == [2]
    tables = GradientResults([row(verdicts={"Y": WRONG})], [network()], [BuildingRow(10, 1.0)], ()).tables()
    assert [len(lines) for _, lines in tables] == [1, 1, 1]
    assert all(len(line) == len(header) for header, lines in tables for line in lines)
    assert [lines[0][-1] for _, lines in tables[:2]] == ["OVER", "ok"]


def test_json_holds_rows_ratios_and_bars():
    wrong = Verdict(0.0, 1.0, 0.0, 1.0, 9, 0, 1)
    found = GradientResults([row(onnx_ad=30.0, verdicts={"Y": wrong})], [network()], [BuildingRow(10, 1.0)], ("why",))
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert set(content) == {"cells", "networks", "building", "notes", "bars"}
    (cell,) = content["cells"]
    assert (cell["ours/pytorch"], cell["onnx_ad/ours"], cell["ours/basic"], cell["ok"]) == (1.0, 3.0, None, False)
    assert content["networks"][0]["ours/pytorch"] == 1.0


@pytest.mark.parametrize("measured", [{}, {"pytorch": None}, {"onnx_ad": 40.0, "basic": 5.0}])
def test_the_plot_takes_whatever_was_measured(tmp_path, measured):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    plot_gradients([row(shape, **measured) for shape in (*SHAPES, TINY)], tmp_path / "gradient.png")
    assert (tmp_path / "gradient.png").stat().st_size > 1000


def test_the_command_prints_table_machine_and_bars(capsys):
    assert main(["bench", "--gradient", "--shapes", TINY, "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert out.count(f"\n{TINY}") == 19
    assert "processor" in out.splitlines()[0]
    assert "beside onnx-ad: geometric mean" in out


def test_the_command_prints_json_and_writes_a_picture(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    picture = str(tmp_path / "gradient.png")
    words = ["--gradient", "--shapes", TINY_VOLUME, "--repeats", "1", "--plot", picture, "--json"]
    assert main(["bench", *words]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["plot"], len(report["cells"])) == (True, picture, 13)
    assert [path.name for path in tmp_path.iterdir()] == ["gradient.png"]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_result_over_its_bound_is_status_1(monkeypatch, capsys, words):
    found = GradientResults([row(verdicts={"Y": WRONG})], [], [], ("a reason",))
    monkeypatch.setattr("lucid_onnx.bench.run_gradient_bench", lambda *arguments: found)
    assert main(["bench", "--gradient", *words]) == 1
    out = capsys.readouterr().out
    assert "a reason" in out
    assert ("OVER" in out) is not bool(words)
