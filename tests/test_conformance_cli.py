"""`lucid-onnx conformance`, good use and bad, and the suite as a plugin of pytest."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree

import onnxruntime
import pytest

from lucid_onnx.cli import main
from lucid_onnx.conformance import cases

FEW = 'opset == 16 and float32 and symbolic and "nearest-reflection-edges" in id and op == "GridSample"'
"""A dozen cases, of which onnxruntime fails ties, as is known."""


def test_a_run_writes_every_report_and_says_what_is_known(tmp_path, capsys):
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("json", "html", "xml")}
    arguments = [
        "--select",
        FEW,
        "--jobs",
        "1",
        "--json",
        paths["json"],
        "--html",
        paths["html"],
        "--junit",
        paths["xml"],
    ]
    assert main(["conformance", *map(str, arguments)]) == 0
    printed = capsys.readouterr().out
    assert f"onnxruntime {onnxruntime.__version__} (CPUExecutionProvider)" in printed
    assert "known: nearest rounds before it reflects" in printed
    content = json.loads(paths["json"].read_text())
    assert content["counts"]["wrong value"] >= 1
    assert {entry["id"] for entry in content["cases"]} == {case.id for case in cases(FEW)}
    suite = xml.etree.ElementTree.parse(paths["xml"]).getroot()
    assert len(list(suite.iter("testcase"))) == len(content["cases"])
    assert "<html" in paths["html"].read_text()


def test_an_unexpected_failure_is_status_1_and_is_named(tmp_path, capsys):
    program = tmp_path / "zeros.py"
    program.write_text(
        "import sys, numpy as np\n"
        "x, grid = (np.load(sys.argv[1])[name] for name in ('X', 'grid'))\n"
        "np.savez(sys.argv[2], Y=np.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype))\n"
    )
    line = f"{sys.executable} {program} {{inputs}} {{outputs}} {{model}}"
    select = FEW + " and family == 'inside'"
    assert main(["conformance", "--command", line, "--select", select, "--jobs", "1"]) == 1
    printed = capsys.readouterr().out
    assert "1 not known to fail:" in printed
    assert re.search(r"wrong value: GridSample-4d-nearest-.*: Y\[.*\] at \(.*\): got 0, want 0\.\d+ within 0", printed)


def test_json_is_printed_and_can_be_shown_beside_another_run(tmp_path, capsys):
    path = tmp_path / "before.json"
    assert main(["conformance", "--select", FEW, "--jobs", "1", "--json", str(path)]) == 0
    capsys.readouterr()
    assert main(["conformance", "--beside", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(path.read_text())
    page = tmp_path / "both.html"
    arguments = [
        "--runtime",
        "onnx.reference",
        "--select",
        FEW,
        "--jobs",
        "1",
        "--beside",
        str(path),
        "--html",
        str(page),
    ]
    assert main(["conformance", *arguments, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert [report["runtime"] for report in both] == ["onnx.reference", "onnxruntime"]
    assert "onnx.reference" in page.read_text()


def test_the_list_has_an_id_a_seed_and_what_is_probed(capsys):
    assert main(["conformance", "--list", "--select", FEW]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in lines] == [case.id for case in cases(FEW)]
    assert all(re.search(r"  [0-9a-f]{16}  \w", line) for line in lines)
    assert main(["conformance", "--list", "--select", FEW, "--json"]) == 0
    assert {"id", "seed", "probes"} == set(json.loads(capsys.readouterr().out)[0])


def test_export_writes_backend_tests(tmp_path, capsys):
    assert main(["conformance", "--export", str(tmp_path / "cases"), "--select", FEW]) == 0
    assert re.search(r"Wrote \d+ cases to", capsys.readouterr().out)
    assert list((tmp_path / "cases").rglob("model.onnx"))


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable"])
def test_lowered_models_pass_where_the_kernel_does_not(target, capsys):
    select = '"4d-nearest-reflection-edges" in id and opset == 16 and op == "GridSample" or "nonfinite-bilinear" in id'
    assert main(["conformance", "--lowered", target, "--select", select, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content["counts"]) == {"pass"}
    assert content["transform"] == f"lower(target='{target}')"


BAD = {
    ("--runtime", "no-such-runtime"): "there is no runtime 'no-such-runtime'",
    ("--provider", "NoProvider"): "NoProvider",
    ("--select", "rank ="): "cannot select by 'rank ='",
    ("--select", "rank == 9"): "no case satisfies",
    ("--max-examples", "0"): "max_examples must be 1 or more",
    ("--max-examples", "many"): "invalid int value",
    ("--html", "/no/such/folder/report.html"): "cannot write '/no/such/folder/report.html'",
    ("--json", "/no/such/folder/report.json"): "cannot write",
    ("--junit", "/no/such/folder/report.xml"): "cannot write",
    ("--export", "/dev/null/cases"): "/dev/null/cases",
    ("--beside", "/no/such/report.json"): "cannot read",
    ("--known", "/no/such/known.toml"): "cannot read",
    ("--option", "threads"): "an option is written NAME=VALUE",
    ("--option", "no_such_option=1"): "no_such_option",
    ("--lowered", "no-such-target"): "no-such-target",
    ("--command", "no-such-program-of-mine {model} {outputs}"): "no-such-program-of-mine",
    ("--jobs", "0"): "jobs must be 1 or more",
    ("--repeat", "0"): "repeat must be 1 or more",
    ("--time-limit", "-1"): "time_limit must be",
    ("--runtime", "onnxruntime", "--runtime", "onnx.reference", "--provider", "CPU"): "name one --runtime",
    ("--runtime", "onnx.reference", "--provider", "CPUExecutionProvider"): "onnx.reference",
}


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_bad_use_is_one_line_and_status_2(arguments, capsys):
    try:
        status = main(["conformance", *arguments])
    except SystemExit as error:
        status = error.code
    printed = capsys.readouterr()
    assert status == 2
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("lucid-onnx conformance: ")
    assert BAD[arguments] in line


HAS_CUDA = "CUDAExecutionProvider" in onnxruntime.get_available_providers()


@pytest.mark.skipif(not HAS_CUDA, reason="this onnxruntime has no CUDA provider")
def test_a_gpu_runs_the_same_cases(capsys):
    select = 'op == "GridSample" and opset == 16 and float32 and mode == "linear" and family in ("inside", "outside")'
    main(["conformance", "--provider", "CUDAExecutionProvider", "--select", select, "--json"])
    content = json.loads(capsys.readouterr().out)
    assert content["provider"] == "CUDAExecutionProvider"
    assert content["counts"] == {"pass": len(cases(select))}


@pytest.mark.skipif(HAS_CUDA, reason="this onnxruntime has a CUDA provider")
def test_a_gpu_that_is_not_there_is_status_2(capsys):
    assert main(["conformance", "--provider", "CUDAExecutionProvider"]) == 2
    assert "CUDAExecutionProvider" in capsys.readouterr().err


def pytest_of(*arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rxX", *arguments]
    command += ["--pyargs", "lucid_onnx.conformance.test_conformance"]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_plugin_runs_each_case_as_a_test():
    run = pytest_of("--lucid-runtime", "onnxruntime", "--lucid-select", FEW)
    assert run.returncode == 0, run.stdout
    assert "XFAIL" in run.stdout
    assert "nearest rounds before it reflects" in run.stdout
    count = len(cases(FEW))
    assert f"{count - 1} passed, 1 xfailed" in run.stdout


def test_the_plugin_fails_what_is_not_known(tmp_path):
    known = tmp_path / "known.toml"
    known.write_text("")
    program = f"{sys.executable} -c 'import sys; sys.exit(\"not today\")' {{model}} {{outputs}}"
    run = pytest_of("--lucid-command", program, "--lucid-select", FEW + " and ties", "--lucid-known", str(known))
    assert run.returncode == 1
    assert "refused: status 1: not today (points half-way between two pixels" in run.stdout


def test_the_plugin_says_in_a_line_what_is_wrong_with_its_use():
    run = pytest_of("--lucid-runtime", "no-such-runtime")
    assert run.returncode == 4
    assert "ERROR: there is no runtime 'no-such-runtime'" in run.stderr


def test_without_a_runtime_the_plugin_has_nothing_to_do():
    run = pytest_of()
    assert run.returncode == 0
    assert "1 skipped" in run.stdout
