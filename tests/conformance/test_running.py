"""Runs of the suite: what comes of cases that pass, fail, crash, hang or differ from run to run."""

import functools
import json
import sys
import textwrap
import time

import numpy as np
import onnx
import pytest

import lucid_onnx as lo
from lucid_onnx.conformance import cases, run
from lucid_onnx.conformance.outcome import (
    CRASHED,
    NONDETERMINISTIC,
    PASS,
    REFUSED,
    TIMED_OUT,
    WRONG_FORM,
    WRONG_VALUE,
)
from lucid_onnx.conformance.report import read_json, to_json, write_json
from lucid_onnx.conformance.running import name_of

FEW = (
    'op == "GridSample" and opset == 16 and family == "inside" and mode == "nearest" and not align_corners and float32'
)

PROGRAM = """
    import os, signal, sys, time
    import numpy as np, onnx
    from onnx.reference import ReferenceEvaluator

    model, inputs, outputs = sys.argv[1:4]
    mode = sys.argv[4]
    proto = onnx.load(model)
    (node,) = proto.graph.node
    padding = next(a.s.decode() for a in node.attribute if a.name == "padding_mode")
    (y,) = ReferenceEvaluator(proto).run(None, dict(np.load(inputs)))
    if padding == "border":
        if mode == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if mode == "hang":
            time.sleep(60)
        if mode == "refuse":
            sys.exit("no border here")
        if mode == "random":
            y = y + np.float32(np.frombuffer(os.urandom(1), np.uint8)[0])
        if mode == "double":
            y = y.astype(np.float64)
        if mode == "wrong":
            y = y + 1
    np.savez(outputs, Y=y)
"""


@pytest.fixture
def program(tmp_path):
    """The command line of a runtime of one's own, which goes wrong with border padding in a way that is named."""
    path = tmp_path / "runtime.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return lambda way: f"{sys.executable} {path} {{model}} {{inputs}} {{outputs}} {way}"


@pytest.mark.parametrize(
    ("way", "verdict"),
    [
        ("refuse", REFUSED),
        ("crash", CRASHED),
        ("hang", TIMED_OUT),
        ("random", NONDETERMINISTIC),
        ("double", WRONG_FORM),
        ("wrong", WRONG_VALUE),
    ],
)
def test_what_goes_wrong_costs_its_case_only(program, way, verdict):
    limit = 6 if way == "hang" else 60
    repeat = 3 if way == "random" else 1
    report = run("command", command=program(way), select=FEW, time_limit=limit, repeat=repeat, jobs=1)
    by_padding = {outcome.id.split("-")[3]: outcome.verdict for outcome in report.cases}
    assert by_padding == {"zeros": PASS, "border": verdict, "reflection": PASS}
    assert not report.ok
    assert {outcome.verdict for outcome in report.failures} == {verdict}
    if way == "refuse":
        assert all("no border here" in outcome.words for outcome in report.failures)


def test_a_case_that_hangs_leaves_no_process_behind(program, tmp_path):
    marker = f"{FEW} and padding_mode == 'border'"
    started = time.perf_counter()
    report = run(
        "command", command=program("hang") + " " + str(tmp_path / "marker"), select=marker, time_limit=3, jobs=1
    )
    assert {outcome.verdict for outcome in report.cases} == {TIMED_OUT}
    assert time.perf_counter() - started < 30
    if sys.platform == "linux":
        import pathlib

        lines = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
        assert not any(str(tmp_path / "marker").encode() in line for line in lines)


def _readable(path):
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


def crash(model):
    """A transform that ends its process."""
    import os

    os._exit(7)


def refuse(model):
    raise ValueError("not this one")


def negate(model):
    """A model whose result has another sign."""
    (node,) = model.graph.node
    node.output[0] = "inner"
    model.graph.node.append(onnx.helper.make_node("Neg", ["inner"], ["Y"]))
    return model


@pytest.mark.parametrize(
    ("transform", "verdict"),
    [(crash, CRASHED), (refuse, REFUSED), (negate, WRONG_VALUE)],
    ids=["crash", "refuse", "negate"],
)
def test_a_transform_is_run_in_the_child_and_judged(transform, verdict):
    report = run(select=FEW, transform=transform, jobs=1)
    assert {outcome.verdict for outcome in report.cases} == {verdict}
    assert report.transform == transform.__name__


def test_a_transform_that_no_other_process_can_import_is_an_error():
    for transform in (lambda model: model, functools.partial(lambda model: model)):
        with pytest.raises(lo.DtypeError, match="must be a function of a module"):
            run(select=FEW, transform=transform)


def test_there_is_nothing_to_rewrite_for_a_runtime_without_models():
    pytest.importorskip("torch", reason="PyTorch is the runtime without models")
    with pytest.raises(lo.UnsupportedError, match="torch has the operators and runs no model"):
        run("torch", select=FEW, transform=negate)


def test_the_name_of_a_transform():
    assert name_of(functools.partial(lo.lower, "x", target="tensorrt")) == "lower('x', target='tensorrt')"
    assert name_of(np.negative) == "negative"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"runtime": "onnxrt"}, lo.ArgumentError, "there is no runtime"),
        ({"providers": ["NoProvider"]}, lo.UnsupportedError, "NoProvider"),
        ({"select": "rank ="}, lo.ArgumentError, "cannot select by"),
        ({"select": "rank == 7"}, lo.ArgumentError, "no case satisfies"),
        ({"jobs": 0}, lo.ArgumentError, "jobs must be 1 or more"),
        ({"repeat": 0}, lo.ArgumentError, "repeat must be 1 or more"),
        ({"max_examples": 0}, lo.ArgumentError, "max_examples must be 1 or more"),
        ({"time_limit": 0}, lo.ArgumentError, "time_limit must be"),
        ({"time_limit": float("nan")}, lo.ArgumentError, "time_limit must be"),
        ({"known": "/no/such.toml"}, lo.ArgumentError, "cannot read"),
        ({"options": {"no_such_option": "1"}}, lo.UnsupportedError, "no_such_option"),
        ({"runtime": "command", "command": "no-such-program {model} {outputs}"}, lo.LucidError, "no-such-program"),
    ],
)
def test_wrong_use_is_an_error(arguments, error, words):
    with pytest.raises(error, match=words):
        run(**arguments)


def test_results_do_not_depend_on_the_number_of_jobs():
    reports = [run(select=FEW.replace("nearest", "cubic"), jobs=jobs) for jobs in (1, 3)]
    first, second = ([(outcome.id, outcome.verdict) for outcome in report.cases] for report in reports)
    assert first == second


def test_a_report_comes_back_from_its_file(tmp_path):
    report = run(select='"nearest-reflection-edges" in id and ties and opset == 16 or "nonfinite-bicubic" in id')
    assert report.counts[WRONG_VALUE] >= 2
    assert report.ok
    path = tmp_path / "report.json"
    write_json([report], path)
    (read,) = read_json(path)
    assert to_json([read]) == to_json([report])
    assert read.title == report.title
    content = json.loads(path.read_text())
    assert {"runtime", "version", "provider", "counts", "cases"} <= set(content)
    assert {"id", "verdict", "expected", "seconds"} <= set(content["cases"][0])
    worst = next(entry["worst"] for entry in content["cases"] if "worst" in entry)
    assert {"index", "coordinate", "got", "want", "bound"} <= set(worst)
    write_json([report, report], path)
    assert len(read_json(path)) == 2


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"runtime": 1}', '{"cases": [{}]}'])
def test_a_file_that_is_no_report_is_an_error(tmp_path, content):
    path = tmp_path / "no.json"
    path.write_text(content)
    with pytest.raises(lo.ArgumentError, match="holds no report"):
        read_json(path)


def test_repeated_runs_of_onnxruntime_are_the_same_bytes():
    report = run(select="GridSampleGrad and many and opset == 20 and symbolic", repeat=3, max_examples=20)
    assert report.counts == {PASS: 20}


def test_all_cases_are_run_by_task():
    from lucid_onnx.conformance.running import _tasks

    tasks = _tasks(cases())
    assert sum(map(len, tasks)) == len(cases())
    assert all(len({case.task_key for case in task}) == 1 for task in tasks)
