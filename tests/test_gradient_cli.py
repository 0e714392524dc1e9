"""`lucid-onnx gradient` as a user meets it."""

import errno
import json
import re
import tempfile

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import lucid_onnx as lo
from lucid_onnx.cli import main
from lucid_onnx.gradient.registry import RULES, Rule

DENSE = """
    <ir_version: 9, opset_import: ["" : 20]>
    dense (float[N, 3] x) => (float[N, 2] y, float[N, 2] h)
    <float[3, 2] w = {0.5, -1, 0.25, 2, -0.75, 1}> { h = MatMul (x, w) y = Relu (h) }"""
MIXED = """
    <ir_version: 9, opset_import: ["" : 20, "own" : 1]>
    mixed (float[N, 3] x, int64[2] k, float[4] z) => (float[N, 3] y, int64[2] shape, float[4] u)
    { y = Mul (x, x) shape = Shape (x) u = own.Unknown (z) }"""
BRANCHES = """
    <ir_version: 9, opset_import: ["" : 20]>
    m (float[3] x, bool yes) => (float[3] y) {
        y = If (yes) <
            then_branch = a () => (float[3] p) { p = Mul (x, x) },
            else_branch = b () => (float[3] q) { q = Neg (x) }>
    }"""
HALF = """
    <ir_version: 9, opset_import: ["" : 20]>
    m (float16[A, B] x, float16[B, C] w) => (float16[A, C] y) { h = MatMul (x, w) y = Relu (h) }"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of good and bad models, which becomes the current one."""
    monkeypatch.chdir(tmp_path)
    texts = {"model": DENSE, "mixed": MIXED, "branches": BRANCHES, "half": HALF}
    models = {name: onnx.parser.parse_model(text) for name, text in texts.items()}
    for name, model in models.items():
        onnx.save(model, f"{name}.onnx")
    tensor = TensorProto(name="v", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="nothing.bin")
    models["mixed"].graph.initializer.append(tensor)
    onnx.save(models["mixed"], "external.onnx")
    (tmp_path / "text.onnx").write_text("this is no model\n" * 100)
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "model.onnx").read_bytes()[:60])
    x = np.arange(12, dtype=np.float32).reshape(4, 3) + 0.5
    arrays = {"good": {"x": x}, "none": {}, "unknown": {"x": x, "t": x}, "short": {"x": x[:, :2]}, "int": {"x": x > 0}}
    for name, values in arrays.items():
        np.savez(f"{name}.npz", **values)
    (tmp_path / "here").mkdir()
    return tmp_path


def call(*words):
    """Exit status of a command, however it ends."""
    try:
        return main(["gradient", *map(str, words)])
    except SystemExit as stop:
        return stop.code


OUT = ["-o", "out.onnx"]
BAD = [
    (["text.onnx", *OUT], "'text.onnx' is not an ONNX model"),
    (["empty.onnx", *OUT], "'empty.onnx' is not an ONNX model"),
    (["cut.onnx", *OUT], "'cut.onnx' is not a(n| complete| valid) ONNX model"),
    (["nowhere.onnx", *OUT], "cannot read 'nowhere.onnx': No such file"),
    (["here", *OUT], "cannot read 'here'"),
    (["external.onnx", *OUT], "the data of tensor 'v' is looked for in .*nothing.bin"),
    (["model.onnx"], "required: -o"),
    (["model.onnx", *OUT, "--wrt", "nothing"], r"wrt: there is no input or initializer 'nothing' \(there is x, w\)"),
    (["model.onnx", *OUT, "--wrt", "h"], "no input or initializer 'h'"),
    (["model.onnx", *OUT, "--of", "nothing"], r"outputs: there is no output 'nothing' \(there is y, h\)"),
    (["mixed.onnx", *OUT, "--wrt", "k"], "wrt: 'k' is of int64; only floats have a gradient"),
    (["mixed.onnx", *OUT, "--of", "shape"], "outputs: 'shape' is of int64"),
    (["mixed.onnx", *OUT], "own::Unknown node 'u': Unknown has no gradient rule; add one with"),
    (["model.onnx", *OUT, "--target", "abacus"], "unknown target 'abacus'; there are onnxruntime-cpu"),
    (["model.onnx", "-o", "no/out.onnx"], "cannot write 'no/out.onnx': No such file"),
    (["model.onnx", "-o", "here"], "cannot write 'here': it is a folder"),
    (["model.onnx", *OUT, "--inputs", "nowhere.npz"], "cannot read 'nowhere.npz'"),
    (["model.onnx", *OUT, "--inputs", "text.onnx"], "text.onnx"),
    (["model.onnx", *OUT, "--inputs", "none.npz"], "input 'x' is missing"),
    (["model.onnx", *OUT, "--inputs", "unknown.npz"], "no input 't'"),
    (["model.onnx", *OUT, "--inputs", "short.npz"], r"input 'x' must have shape \(N, 3\), got \(4, 2\)"),
    (["model.onnx", *OUT, "--inputs", "int.npz"], "input 'x' must be float32, got bool"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_wrong_use_is_one_line_status_2_and_no_file(folder, capsys, words, message):
    before = sorted(folder.rglob("*"))
    assert call(*words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("lucid-onnx gradient: ")
    assert shown.err.count("\n") == 1
    assert re.search(message, shown.err), shown.err
    assert sorted(folder.rglob("*")) == before


def test_a_read_only_destination_is_one_line_and_no_file(folder, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    # An administrator may write anywhere, so that permissions alone are no test.
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    before = sorted(folder.rglob("*"))
    assert call("model.onnx", *OUT) == 2
    assert capsys.readouterr().err == "lucid-onnx gradient: cannot write 'out.onnx': Permission denied\n"
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "words", [["nowhere.onnx"], ["mixed.onnx"], ["model.onnx", "--wrt", "t"], ["model.onnx", "--inputs", "none.npz"]]
)
def test_an_existing_file_survives_a_failure(folder, words):
    (folder / "out.onnx").write_bytes(b"precious")
    assert call(*words, *OUT) == 2
    assert (folder / "out.onnx").read_bytes() == b"precious"


def test_text_says_what_was_added(folder, capsys):
    assert call("model.onnx", *OUT, "--wrt", "x", "--wrt", "w", "--of", "y") == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"2 nodes, and \d+ more for the gradient", lines[0])
    assert [line.split(maxsplit=3) for line in lines[2:6]] == [
        ["added", "name", "dtype", "shape"],
        ["input", "y_grad", "float32", "(N, 2)"],
        ["output", "x_grad", "float32", "(N, 3)"],
        ["output", "w_grad", "float32", "(3, 2)"],
    ]
    assert lines[-1] == "Wrote out.onnx."


def test_what_is_written_gives_the_gradient(folder):
    assert call("model.onnx", *OUT, "--wrt", "x", "--of", "h") == 0
    onnx.checker.check_model("out.onnx", full_check=True)
    gradient = lo.session("out.onnx")
    x, seed = np.ones((1, 3), np.float32), np.float32([[1, 10]])
    (found,) = gradient.run(["x_grad"], {"x": x, "h_grad": seed})
    np.testing.assert_array_equal(found, seed @ np.float32([[0.5, 0.25, -0.75], [-1, 2, 1]]))


def test_json_has_the_report(folder, capsys):
    assert call("model.onnx", *OUT, "--wrt", "x", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["model"], report["files"]) == ("out.onnx", ["out.onnx"])
    assert 2 == report["nodes_before"] < report["nodes_after"]
    assert [value["name"] for value in report["inputs"]] == ["y_grad", "h_grad"]
    assert report["outputs"] == [{"name": "x_grad", "dtype": "float32", "shape": ["N", 3]}]


@pytest.mark.parametrize("name", ["model", "branches", "half"])
def test_verify_passes(folder, capsys, name):
    assert call(f"{name}.onnx", *OUT, "--verify") == 0
    out = capsys.readouterr().out
    assert "\nwith respect to  " in out
    assert "\nSlopes: float64 in onnxruntime. Directions at a kink, left out: 0.\n" in out
    assert out.endswith("\nWrote out.onnx.\n")
    assert "Note" not in out


def test_verify_takes_inputs(folder, capsys):
    assert call("model.onnx", *OUT, "--inputs", "good.npz", "--json") == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert verified["ok"]
    assert {row["where"] for row in verified["rows"]} == {"given"}


@pytest.fixture
def wrong(monkeypatch):
    """A rule that is wrong by 1 % in one of its gradients."""
    right = RULES["", "MatMul"]

    def matmul(call, g):
        dx, dw = right.function(call, g)
        return dx, call.op.Mul(dw, call.number(1.01))

    monkeypatch.setitem(RULES, ("", "MatMul"), Rule(matmul, right.broadcast))


def test_a_wrong_gradient_is_status_1(folder, capsys, wrong):
    assert call("model.onnx", *OUT, "--verify") == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[-1] for line in lines if line[:1] == ["x"]] == ["ok"] * 3
    assert "over" in [line[-1] for line in lines if line[:1] == ["w"]]
    assert call("model.onnx", *OUT, "--verify", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verified"]["ok"] is False


def test_what_cannot_be_verified_is_status_1_and_said(folder, capsys):
    # Nothing here runs the operator, whose gradient is not asked for.
    assert call("mixed.onnx", *OUT, "--wrt", "x", "--of", "y", "--verify") == 1
    assert "\nThe gradient model fails: onnxruntime" in capsys.readouterr().out


def test_a_gradient_may_replace_its_model(folder, capsys):
    assert call("model.onnx", "-o", "model.onnx", "--wrt", "x", "--verify") == 0
    assert [value.name for value in onnx.load("model.onnx").graph.output] == ["y", "h", "x_grad"]


def test_external_data_stays_external(folder):
    model = onnx.load("model.onnx")
    array = numpy_helper.to_array(model.graph.initializer[0])
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
    onnx.save(model, "large.onnx", save_as_external_data=True, location="large.data", size_threshold=0)
    assert call("large.onnx", *OUT, "--verify") == 0
    written = onnx.load("out.onnx", load_external_data=False)
    (weight,) = [tensor for tensor in written.graph.initializer if tensor.name == "w"]
    assert weight.external_data[0].value == "large.data"
    assert call("large.onnx", "-o", "here/out.onnx", "--verify") == 0
    assert (folder / "here" / "out.onnx.data").exists()


def test_help_has_an_example(capsys):
    assert call("--help") == 0
    assert "example: lucid-onnx gradient model.onnx --wrt" in capsys.readouterr().out
