"""The command line as a user meets it: good input, bad input, what it prints and what it leaves behind."""

import json
import re

import numpy as np
import onnx
import pytest

import lucid_onnx as lo
from lucid_onnx.cli import main

image = pytest.importorskip("PIL.Image", reason="pictures need Pillow")

IDENTITY = "theta=[[[1,0,0],[0,1,0]]]"


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    pixels = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
    image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def warp(tmp_path):
    path = tmp_path / "warp.onnx"
    lo.export("affine_warp", path)
    return path


def call(*words):
    """Exit status of a command, however it ends."""
    try:
        return main([str(word) for word in words])
    except SystemExit as stop:
        return stop.code


def test_demo(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the demo draws")
    assert call("demo", "--out", tmp_path / "out", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert len(report["rows"]) == 27
    assert {(row["mode"], row["padding_mode"]) for row in report["rows"]} == {
        (mode, padding) for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection")
    }
    assert all(row["max_error"] <= row["max_allowed"] for row in report["rows"])
    # Undecided points are few, or the comparison says little.
    assert all(row["set_aside"] < 0.02 * row["compared"] for row in report["rows"])
    with image.open(report["picture"]) as drawn:
        assert drawn.width > 1000
    model = onnx.load(report["model"])
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node if node.domain == "lucid_onnx"].count("AffineGrid") == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"warp.onnx", "warp.png"}


def test_demo_on_a_picture_of_ones_own(tmp_path, picture, capsys):
    pytest.importorskip("matplotlib", reason="the demo draws")
    assert call("demo", "--image", picture, "--out", tmp_path / "out") == 0
    assert "27 of 27 within their bounds" in capsys.readouterr().out


def test_demo_fails_if_an_error_is_over_its_bound(tmp_path, picture, capsys, monkeypatch):
    pytest.importorskip("matplotlib", reason="the demo draws")
    from lucid_onnx import demo

    exact = demo.session

    def off(model):
        session = exact(model)
        run = session.run
        session.run = lambda names, feed: [result + np.float32(1e-3) for result in run(names, feed)]
        return session

    monkeypatch.setattr(demo, "session", off)
    assert call("demo", "--image", picture, "--out", tmp_path / "out") == 1
    assert "OVER" in capsys.readouterr().out


def test_models(capsys):
    assert call("models") == 0
    assert "spatial_transformer" in capsys.readouterr().out
    assert call("models", "--json") == 0
    assert {model["name"] for model in json.loads(capsys.readouterr().out)} >= {"affine_warp", "stn"}


def test_export_passes_its_options_on(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    words = ["--sizes", "16x12", "--channels", "2", "--output-sizes", "8x6", "--mode", "bicubic"]
    assert call("export", "spatial_transformer", "-o", path, "--opset", "17", *words, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["inputs"] == ["X (N, 2, 16, 12)"]
    assert report["outputs"] == ["Y (N, 2, 8, 6)", "theta (N, 2, 3)"]
    assert onnx.load(path).opset_import[0].version == 17


def test_run_takes_a_picture_and_writes_one(tmp_path, picture, warp, capsys):
    out = tmp_path / "out.png"
    for first in (f"X={picture}", picture):
        assert call("run", warp, first, IDENTITY, "-o", out) == 0
        assert "Y" in capsys.readouterr().out
        with image.open(out) as ours, image.open(picture) as theirs:
            np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))
        out.unlink()


def test_run_takes_arrays_and_writes_them(tmp_path, warp, capsys):
    x = np.random.default_rng(0).standard_normal((2, 1, 4, 5)).astype(np.float32)
    theta = np.float32([[[1, 0.2, 0], [0, 1, 0]]] * 2)
    np.savez(tmp_path / "in.npz", X=x, theta=theta)
    np.save(tmp_path / "x.npy", x)
    expected = lo.grid_sample(x, lo.affine_grid(theta, x.shape))
    written = json.dumps(theta.tolist())
    for words in ([tmp_path / "in.npz"], [f"X={tmp_path / 'x.npy'}", f"theta={written}"]):
        assert call("run", warp, *words, "-o", tmp_path / "out.npz", "--json") == 0
        assert json.loads(capsys.readouterr().out)["outputs"]["Y"]["shape"] == [2, 1, 4, 5]
        with np.load(tmp_path / "out.npz") as results:
            np.testing.assert_allclose(results["Y"], expected, atol=1e-5)


def test_run_without_an_output_prints_only(warp, picture, capsys):
    assert call("run", warp, picture, IDENTITY) == 0
    assert "[1, 3, 12, 16]" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--version"], ["--help"], [], ["demo", "--help"], ["run", "--help"]])
def test_help_and_version(words, capsys):
    assert call(*words) == 0
    out = capsys.readouterr().out
    assert "lucid-onnx" in out
    if "--help" in words and len(words) > 1:
        assert f"example: lucid-onnx {words[0]}" in " ".join(out.split())


BAD = [
    (["frobnicate"], "invalid choice: 'frobnicate'"),
    (["demo", "--image", "{tmp}/nowhere.jpg"], "cannot read .*nowhere.jpg.: No such file"),
    (["demo", "--image", "{tmp}/text.png"], "text.png. is not a picture"),
    (["demo", "--image", "{picture}", "--out", "{tmp}/text.png"], "cannot make the folder"),
    (["export", "resnet", "-o", "{tmp}/o.onnx"], "a model's name must be one of"),
    (["export", "stn"], "required: -o"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--mode", "linear"], "invalid choice: 'linear'"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--sizes", "28"], "sizes must be"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--sizes", "axb"], "sizes are written 28x28"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--opset", "15"], "opset must be 16 or newer"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--target", "abacus"], "target must be one of"),
    (["export", "stn", "-o", "{tmp}/o.onnx", "--rank", "5"], "has no argument rank"),
    (["export", "stn", "-o", "{tmp}/no/o.onnx"], "cannot write .*No such file"),
    (["run", "{tmp}/nowhere.onnx"], "cannot read .*nowhere.onnx.: No such file"),
    (["run", "{tmp}/text.png"], "text.png. is not an ONNX model"),
    (["run", "{warp}", "{picture}"], "input 'theta' is missing"),
    (["run", "{warp}", "Z={picture}"], r"there is no input 'Z' \(there is X, theta\)"),
    (["run", "{warp}", "X={tmp}/nowhere.png", "-o", "{tmp}/o.png"], "cannot read .*nowhere.png"),
    (["run", "{warp}", "{picture}", "theta=[[1,0,0],[0,1,0]]", "-o", "{tmp}/o.png"], "input 'theta' must have rank 3"),
    (["run", "{warp}", "{picture}", "theta=[[[1,0],[0,1]]]", "-o", "{tmp}/o.png"], r"must have shape \(N, 2, 3\)"),
    (["run", "{warp}", "{picture}", "theta=one", "-o", "{tmp}/o.png"], "theta=one is neither a file .* nor JSON"),
    (["run", "{warp}", "{picture}", "theta={tmp}/text.png.npy"], "cannot read .*npy"),
    (["run", "{warp}", "{tmp}/text.npz"], "text.npz. is not a NumPy file"),
    (["run", "{warp}", "nonsense"], "'nonsense' is not NAME=FILE"),
    (["run", "{warp}", "{picture}", IDENTITY, "-o", "{tmp}/o.docx"], "cannot tell from its name what to write"),
    (["run", "{warp}", "{picture}", IDENTITY, "-o", "{tmp}/no/o.png"], "cannot write .*No such file"),
    (["run", "{warp}", "{picture}", IDENTITY, "-o", "{tmp}/o.png", "--name", "Z"], r"no output 'Z' \(there is Y\)"),
    (["run", "{warp}", "{picture}", IDENTITY, "--provider", "Abacus"], "no execution provider Abacus; .*CPUExecution"),
    (["run", "{warp}", "{picture}", IDENTITY, "--threads", "0"], "threads must be a whole number from 1 to 256"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_wrong_use_is_one_line_status_2_and_no_file(tmp_path, picture, warp, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.png").write_text("this is no picture")
    (tmp_path / "text.npz").write_text("this is no archive")
    before = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    places = {"tmp": tmp_path, "picture": picture, "warp": warp}
    words = [word if word == IDENTITY or word.startswith("theta=[") else word.format(**places) for word in words]
    assert call(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    assert line.startswith("lucid-onnx")
    assert re.search(message, line), line
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == before


def test_an_existing_file_survives_a_failure(tmp_path, picture, warp):
    out = tmp_path / "out.npz"
    out.write_text("precious")
    assert call("run", warp, picture, "theta=[[[1,0],[0,1]]]", "-o", out) == 2
    assert out.read_text() == "precious"
