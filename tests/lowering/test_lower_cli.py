"""`lucid-onnx lower` and `targets` as a user meets them."""

import errno
import json
import re
import tempfile

import numpy as np
import onnx
import pytest
from lowering.sampling import grid_sample_model, left, opset_of
from onnx import TensorProto, helper

import lucid_onnx.verification
from lucid_onnx.cli import main
from lucid_onnx.lowering import TARGETS
from lucid_onnx.verification.report import OutputRow, Verification

CELL = (4, "bilinear", "border", False)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of good and bad models, which becomes the current one."""
    monkeypatch.chdir(tmp_path)
    onnx.save(grid_sample_model(CELL, "float32", 20), "model.onnx")
    custom = grid_sample_model(CELL, "float32", 20)
    custom.graph.node[0].CopyFrom(helper.make_node("Sample", ["X", "grid"], ["Y"], "s", domain="own", mode="linear"))
    custom.opset_import.append(helper.make_opsetid("own", 1))
    onnx.save(custom, "custom.onnx")
    external = grid_sample_model(CELL, "float32", 20)
    tensor = TensorProto(name="w", data_type=1, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    external.graph.initializer.append(tensor)
    onnx.save(external, "external.onnx")
    (tmp_path / "text.onnx").write_text("this is no model\n" * 100)
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "cut.onnx").write_bytes((tmp_path / "model.onnx").read_bytes()[:60])
    (tmp_path / "broken.toml").write_text("name = ")
    (tmp_path / "wrong.toml").write_text("[[kernel]]\nop = 'Resize'\nopsets = [16]\nsource = 'x'")
    np.savez("short.npz", X=np.zeros((1, 2, 4, 5), np.float32))
    np.savez("good.npz", X=np.ones((1, 2, 4, 5), np.float32), grid=np.zeros((1, 3, 4, 2), np.float32))
    (tmp_path / "here").mkdir()
    return tmp_path


def call(*words):
    """Exit status of a command, however it ends."""
    try:
        return main([*map(str, words)])
    except SystemExit as stop:
        return stop.code


OUT = ["-o", "out.onnx"]
BAD = [
    (["text.onnx", *OUT], "'text.onnx' is not an ONNX model"),
    (["empty.onnx", *OUT], "'empty.onnx' is not an ONNX model"),
    (["cut.onnx", *OUT], "'cut.onnx' is not a(n| complete| valid) ONNX model"),
    (["nowhere.onnx", *OUT], "cannot read 'nowhere.onnx': No such file"),
    (["here", *OUT], "cannot read 'here'"),
    (["external.onnx", *OUT], "the data of tensor 'w' is looked for in .*weights.bin"),
    (["model.onnx", *OUT, "--target", "abacus"], "unknown target 'abacus'; there are onnxruntime-cpu"),
    (["model.onnx", *OUT, "--target", "broken.toml"], "'broken.toml' is not valid TOML"),
    (["model.onnx", *OUT, "--target", "wrong.toml"], "wrong.toml: kernel 1: op has 'Resize'"),
    (["model.onnx", *OUT, "--target", "nowhere.toml"], "cannot read 'nowhere.toml'"),
    (["custom.onnx", *OUT, "--map", "Sample=GridSample"], "Sample node 's': it has no attribute padding_mode; give it"),
    (["model.onnx", *OUT, "--map", "Sample=GridSample"], "map: the model has no node of Sample"),
    (["custom.onnx", *OUT, "--map", "Sample"], "--map takes TYPE=OP, .*got 'Sample'"),
    (["custom.onnx", *OUT, "--map", "=GridSample"], "--map takes TYPE=OP"),
    (["custom.onnx", *OUT, "--map", "Sample="], "--map takes TYPE=OP"),
    (["custom.onnx", *OUT, "--map", "Sample=Resize"], "'Sample' must stand for GridSample or AffineGrid"),
    (["custom.onnx", *OUT, "--map", "Sample=GridSample,speed=3"], "GridSample has no attribute 'speed'"),
    (["model.onnx", "-o", "no/out.onnx"], "cannot write 'no/out.onnx': No such file"),
    (["model.onnx", "-o", "here"], "cannot write 'here': it is a folder"),
    (["model.onnx"], "required: -o"),
    (["model.onnx", *OUT, "--opset", "15"], "opset must be 16 or newer"),
    (["model.onnx", *OUT, "--opset", "99"], "opset 99 is newer than the installed onnx"),
    (["model.onnx", *OUT, "--opset", "x"], "invalid int value: 'x'"),
    (["model.onnx", *OUT, "--target", "tensorrt", "--opset", "25"], "tensorrt reads opsets up to 24; 25 was asked for"),
    (["model.onnx", *OUT, "--inputs", "nowhere.npz"], "cannot read 'nowhere.npz'"),
    (["model.onnx", *OUT, "--inputs", "text.onnx"], "text.onnx"),
    (["model.onnx", *OUT, "--inputs", "short.npz"], "input 'grid' is missing"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_wrong_use_is_one_line_status_2_and_no_file(folder, capsys, words, message):
    before = sorted(folder.rglob("*"))
    assert call("lower", *words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("lucid-onnx lower: ")
    assert shown.err.count("\n") == 1
    assert re.search(message, shown.err), shown.err
    assert sorted(folder.rglob("*")) == before


def test_a_read_only_destination_is_one_line_and_no_file(folder, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    # An administrator may write anywhere, so that permissions alone are no test.
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    before = sorted(folder.rglob("*"))
    assert call("lower", "model.onnx", *OUT) == 2
    assert capsys.readouterr().err == "lucid-onnx lower: cannot write 'out.onnx': Permission denied\n"
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "words", [["nowhere.onnx"], ["model.onnx", "--target", "abacus"], ["model.onnx", "--opset", "15"]]
)
def test_an_existing_file_survives_a_failure(folder, words):
    (folder / "out.onnx").write_bytes(b"precious")
    assert call("lower", *words, *OUT) == 2
    assert (folder / "out.onnx").read_bytes() == b"precious"


@pytest.mark.parametrize("target", TARGETS)
def test_text_says_what_was_done_and_why(folder, capsys, target):
    assert call("lower", "model.onnx", *OUT, "--target", target) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{target}: 1 ")
    assert "GridSample sample (4-D bilinear border align_corners=0 float32): " in out
    assert out.endswith("\nWrote out.onnx.\n")
    onnx.checker.check_model("out.onnx")


def test_json_has_the_report(folder, capsys):
    assert call("lower", "model.onnx", *OUT, "--target", "portable", "--opset", "18", "--assume-finite", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["model"], report["target"], report["assume_finite"]) == ("out.onnx", "portable", True)
    assert (report["opset_before"], report["opset_after"]) == (20, 18)
    (entry,) = report["entries"]
    assert {*entry} == {"node", "op", "where", "what", "action", "why", "source"}
    assert (entry["node"], entry["op"], entry["action"]) == ("sample", "GridSample", "expanded")
    lowered = onnx.load("out.onnx")
    assert (left(lowered), opset_of(lowered)) == ([], 18)


@pytest.mark.parametrize("finite", [[], ["--assume-finite"]])
@pytest.mark.parametrize("target", TARGETS)
def test_verify_passes(folder, capsys, target, finite):
    assert call("lower", "model.onnx", *OUT, "--target", target, "--verify", *finite) == 0
    lines = capsys.readouterr().out.splitlines()
    (header,) = [line for line in lines if line.startswith("node or output")]
    assert header.split()[-1] == "verdict"
    assert [line.split()[-1] for line in lines if line.startswith(("sample ", "Y "))] == ["ok"] * 3


def test_verify_takes_inputs(folder, capsys):
    assert call("lower", "model.onnx", *OUT, "--inputs", "good.npz", "--json") == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert verified["ok"]
    assert [row["inputs"] for row in verified["rows"]] == ["given"]


def test_a_failed_verification_is_status_1(folder, capsys, monkeypatch):
    failed = Verification(outputs=[OutputRow("Y", 1.0, 1e-4, 0, 0, False)])
    monkeypatch.setattr(lucid_onnx.verification, "verify", lambda *_, **__: failed)
    assert call("lower", "model.onnx", *OUT, "--verify") == 1
    assert capsys.readouterr().out.splitlines()[-3].split() == ["Y", "output", "1", "0.0001", "0", "over"]
    assert call("lower", "model.onnx", *OUT, "--verify", "--json") == 1
    assert json.loads(capsys.readouterr().out)["verified"]["ok"] is False


def test_the_map_is_taken(folder, capsys):
    mapping = "Sample=GridSample,padding_mode=border,align_corners=0"
    assert call("lower", "custom.onnx", *OUT, "--map", mapping, "--target", "portable", "--verify") == 0
    out = capsys.readouterr().out
    assert "taken for GridSample or AffineGrid: s" in out
    assert "The original cannot serve as a reference" in out


def test_a_model_may_be_lowered_onto_itself(folder):
    assert call("lower", "model.onnx", "-o", "model.onnx", "--target", "portable") == 0
    assert left(onnx.load("model.onnx")) == []


def test_what_replaces_its_own_file_is_compared_with_what_was_there(folder, capsys):
    assert call("lower", "model.onnx", "-o", "model.onnx", "--target", "portable", "--verify", "--json") == 0
    verified = json.loads(capsys.readouterr().out)["verified"]
    assert [row["node"] for row in verified["rows"]] == ["sample", "sample"]
    assert [row["name"] for row in verified["outputs"]] == ["Y"]
    assert left(onnx.load("model.onnx")) == []


def test_targets_shows_every_row_and_source(capsys):
    assert call("targets") == 0
    out = " ".join(capsys.readouterr().out.split())
    for target in TARGETS.values():
        assert target.about in out
        assert all(kernel.source in out for kernel in target.kernels)


def test_targets_of_a_name_and_of_a_file_as_json(folder, capsys):
    (folder / "own.toml").write_text('name = "mine"\nextends = "openvino"\n')
    assert call("targets", "tensorrt", "own.toml", "--json") == 0
    assert [table["name"] for table in json.loads(capsys.readouterr().out)] == ["tensorrt", "mine"]


def test_targets_of_an_unknown_name_is_one_line_and_status_2(capsys):
    assert call("targets", "abacus") == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"lucid-onnx targets: unknown target 'abacus'; .*\n", shown.err)
