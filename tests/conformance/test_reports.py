"""Reports for people: the matrix, the page, the programs that reproduce, and JUnit XML."""

import html
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import ml_dtypes
import numpy as np
import onnx
import pytest

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.html import write_html
from lucid_onnx.conformance.judging import expect
from lucid_onnx.conformance.junit import write_junit
from lucid_onnx.conformance.matrix import Row, changes, matrix, reasons, row_of, terminal_table, titles
from lucid_onnx.conformance.outcome import VERDICTS, Outcome, Worst
from lucid_onnx.conformance.picture import picture
from lucid_onnx.conformance.report import Report
from lucid_onnx.conformance.reproducer import fits, reproducer
from lucid_onnx.conformance.running import run
from lucid_onnx.conformance.snippets import assignment, between_casts, model_expression
from lucid_onnx.conformance.suite import by_id
from lucid_onnx.reference.schema import ArgumentError

TIES = Case("GridSample", 4, "nearest", "reflection", False, "float32", 20, "symbolic", "ties")
VOLUME = Case("GridSample", 5, "bilinear", "zeros", True, "float32", 20, "static", "inside")
MAP = Case("AffineGrid", 4, "", "", False, "float32", 20, "static", "outside")
GRADIENT = Case("GridSampleGrad", 4, "bilinear", "border", False, "float32", 20, "symbolic", "outside")
CASES = {case.id: case for case in (TIES, VOLUME, MAP, GRADIENT)}

PASSED = Outcome(TIES.id, "pass")
REFUSED = Outcome(TIES.id, "refused", words="NOT_IMPLEMENTED: no kernel <T> & no \x1bother")
KNOWN = replace(REFUSED, expected="refused", reason="there is no kernel")
SURPRISE = replace(PASSED, expected="refused", reason="there is no kernel")


def wrong(case, index=None, got=0.5):
    """A wrong value of the first output, at a point of the case's own grid."""
    first = expect(case, case.inputs())[0]
    index = (0,) * first.truth.ndim if index is None else index
    coordinate = None
    if case.op == "GridSample":
        coordinate = tuple(map(float, case.inputs()["grid"][(index[0], *index[2:])]))
    errors = ("X...", "..!.")
    return Outcome(
        case.id, "wrong value", worst=Worst(first.name, index, coordinate, got, float(first.truth[index]), 0.0, errors)
    )


def report(*outcomes, runtime="onnxruntime", version="1.32.0", provider="CPUExecutionProvider", transform=""):
    return Report(runtime, version, provider, transform, 1.5, outcomes)


# The matrix.


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ((), "-"),
        ((PASSED, PASSED), "ok 2"),
        ((PASSED, KNOWN), "1/2, 1 known"),
        ((PASSED, KNOWN, REFUSED, REFUSED), "1/4, 1 known, 2 FAIL"),
        ((PASSED, SURPRISE), "ok 2, 1 surprise"),
        ((replace(REFUSED, expected="wrong value", reason="it is wrong"),), "0/1, 1 FAIL"),
    ],
)
def test_a_cell_says_how_many_pass_and_what_the_others_are(outcomes, words):
    (other, cells) = next(iter(matrix([report(PASSED), report(*outcomes)], CASES).items()))
    assert other == Row("GridSample", 4, "nearest", "reflection")
    assert str(cells[1]) == words


def test_rows_come_by_operator_rank_mode_and_padding():
    outcomes = [Outcome(case.id, "pass") for case in (MAP, GRADIENT, VOLUME, TIES)]
    found = list(matrix([report(Outcome("Conv-1", "pass"), *outcomes)], CASES))
    assert [row.op for row in found] == ["GridSample", "GridSample", "GridSampleGrad", "AffineGrid", "other"]
    assert [row.rank for row in found] == [4, 5, 4, 4, 0]


@pytest.mark.parametrize(
    ("identity", "row"),
    [
        ("GridSample-4d-nearest-zeros-edges-float8-opset99-symbolic-new", Row("GridSample", 4, "nearest", "zeros")),
        ("AffineGridGrad-5d-edges-float32-opset20-symbolic-new", Row("AffineGridGrad", 5)),
        ("GridSample", Row("GridSample")),
        ("GridSample-9d-spline", Row("GridSample")),
        ("Conv-4d-nearest-zeros", Row("other")),
        ("", Row("other")),
    ],
)
def test_a_case_that_is_not_known_is_placed_by_its_id(identity, row):
    assert row_of(identity, {}) == row


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([report(), report(runtime="tract", version="0.23", provider="")], ["onnxruntime 1.32.0", "tract 0.23"]),
        (
            [report(), report(provider="CUDAExecutionProvider")],
            ["onnxruntime 1.32.0 (CPUExecutionProvider)", "onnxruntime 1.32.0 (CUDAExecutionProvider)"],
        ),
        ([report(), report()], ["onnxruntime 1.32.0 #1", "onnxruntime 1.32.0 #2"]),
        ([report(runtime="mine", version="", provider="")], ["mine"]),
    ],
)
def test_titles_are_as_short_as_tells_reports_apart(reports, expected):
    assert titles(reports) == expected


def test_the_table_ends_with_all_cases_of_each_report():
    header, rows = terminal_table([report(PASSED, KNOWN), report(REFUSED, runtime="tract")], CASES)
    assert header[4:] == ["onnxruntime 1.32.0", "tract 1.32.0"]
    assert rows == [
        ["GridSample", "4-D", "nearest", "reflection", "1/2, 1 known", "0/1, 1 FAIL"],
        ["all", "", "", "", "1/2, 1 known", "0/1, 1 FAIL"],
    ]


def test_reasons_count_cases_that_fail_as_they_say_and_no_surprises():
    other = replace(KNOWN, reason="it overflows")
    reports = [report(KNOWN, KNOWN, SURPRISE, other), report(other)]
    assert list(reasons(reports).items()) == [("there is no kernel", (2, 0)), ("it overflows", (1, 1))]


def test_changes_are_of_cases_that_both_reports_have():
    before = report(PASSED, Outcome("b", "refused"), Outcome("c", "pass"))
    after = report(REFUSED, Outcome("b", "pass"), Outcome("d", "refused"))
    assert changes(before, after) == (["b"], [TIES.id])


# Programs that reproduce.


def printed(program, folder):
    """What a program prints, in a process of its own."""
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(line.split(maxsplit=1) for line in ended.stdout.splitlines())


FAILING = {
    "onnxruntime": (
        "GridSample-4d-nearest-reflection-edges-float32-opset20-symbolic-ties",
        "GridSample-5d-bilinear-border-edges-float32-opset20-static-non-finite",
        "GridSample-4d-bilinear-zeros-corners-float64-opset20-symbolic-non-finite",
        "GridSample-4d-bicubic-border-edges-float16-opset22-symbolic-non-finite",
        "AffineGrid-5d-corners-float32-opset20-symbolic-size-1",
    ),
    "onnx.reference": (
        "GridSample-4d-bicubic-border-corners-float32-opset20-symbolic-outside",
        "GridSample-4d-bicubic-reflection-edges-bfloat16-opset22-symbolic-far",
        "AffineGrid-4d-corners-float32-opset20-static-size-1",
    ),
}
"""Cases that a runtime gets wrong."""


@pytest.mark.parametrize("runtime", FAILING)
def test_a_program_prints_the_wrong_value_of_the_report(runtime, tmp_path):
    failed = run(runtime, select=f"id in {FAILING[runtime]}", jobs=1)
    assert [outcome.verdict for outcome in failed.cases] == ["wrong value"] * len(FAILING[runtime])
    for outcome in failed.cases:
        shown = printed(reproducer(by_id()[outcome.id], outcome, failed), tmp_path)
        assert float(shown["got"]) == pytest.approx(outcome.worst.got, rel=1e-8, nan_ok=True), outcome.id
        assert float(shown["want"].split()[0]) == pytest.approx(outcome.worst.want, rel=1e-8, nan_ok=True), outcome.id


def test_a_program_is_refused_as_the_case_was(tmp_path):
    identity = "GridSample-4d-nearest-zeros-edges-float64-opset16-symbolic-outside"
    refused = run(select=f"id == {identity!r}", jobs=1)
    program = reproducer(by_id()[identity], refused.cases[0], refused)
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    said = "Could not find an implementation for GridSample(16)"
    assert said in refused.cases[0].words
    assert said in ended.stderr


def test_a_program_prints_the_wrong_form_of_the_report(tmp_path):
    identity = "AffineGrid-4d-edges-float64-opset20-symbolic-outside"
    wrong_form = run("onnx.reference", select=f"id == {identity!r}", jobs=1)
    shown = printed(reproducer(by_id()[identity], wrong_form.cases[0], wrong_form), tmp_path)
    assert shown == {"got": "[('float32', (2, 4, 8, 2))]", "want": "float64 (2, 4, 8, 2)"}


RIGHT = [
    *(("onnxruntime", "CPUExecutionProvider", case) for case in (VOLUME, MAP, GRADIENT)),
    ("onnxruntime", "CPUExecutionProvider", replace(GRADIENT, dtype="bfloat16", opset=22)),
    ("onnx.reference", "", VOLUME),
    ("openvino", "CPU", replace(VOLUME, rank=4)),
    ("tract", "", replace(VOLUME, rank=4)),
    *(("torch", "cpu", case) for case in (VOLUME, MAP, GRADIENT, replace(MAP, op="AffineGridGrad"))),
    ("torch", "cpu", replace(VOLUME, dtype="bfloat16")),
]


@pytest.mark.parametrize(("runtime", "provider", "case"), RIGHT, ids=lambda value: getattr(value, "id", value))
def test_a_program_calls_its_runtime(runtime, provider, case, tmp_path):
    pytest.importorskip(runtime, reason="the program is of this runtime")
    expected = expect(case, case.inputs())
    index = tuple(size - 1 for size in expected[0].truth.shape)
    outcome = wrong(case, index)
    shown = printed(reproducer(case, outcome, report(runtime=runtime, provider=provider)), tmp_path)
    assert abs(float(shown["got"]) - outcome.worst.want) <= max(expected[0].bound, 1e-6)


def test_a_program_of_the_user_gets_files(tmp_path):
    (tmp_path / "mine").write_text(
        f"#!{sys.executable}\n"
        "import sys, numpy, onnx\n"
        "model, inputs, outputs = sys.argv[1:]\n"
        "x = numpy.load(inputs)['X']\n"
        "assert onnx.load(model).graph.node[0].op_type == 'GridSample'\n"
        "numpy.savez(outputs, Y=x[..., :1, :1] * 0 + 7)\n"
    )
    (tmp_path / "mine").chmod(0o755)
    shown = printed(reproducer(TIES, wrong(TIES), report(runtime="./mine", version="", provider="")), tmp_path)
    assert shown["got"] == "7"


def test_a_program_of_a_lowered_model_lowers_it(tmp_path):
    outcome = wrong(TIES)
    lowered = report(transform="lower(target='onnxruntime-cpu')")
    shown = printed(reproducer(TIES, outcome, lowered), tmp_path)
    assert float(shown["got"]) == outcome.worst.want


def test_a_program_says_what_else_the_model_went_through():
    assert "# Here the suite rewrote the model with fuse." in reproducer(TIES, wrong(TIES), report(transform="fuse"))


def test_a_program_counts_different_results(tmp_path):
    outcome = Outcome(TIES.id, "nondeterministic", words="run 2 differs")
    assert printed(reproducer(TIES, outcome, report()), tmp_path)["got"] == "1 different results in 20 runs"


def test_a_program_says_where_nodes_ran(tmp_path):
    program = reproducer(TIES, Outcome(TIES.id, "wrong placement", words="GridSample ran on the CPU"), report())
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "CPUExecutionProvider" in ended.stdout


def test_a_program_is_short():
    assert len(reproducer(TIES, wrong(TIES), report())) < 1000


@pytest.mark.parametrize("index", [(0, 0, 0, 99), (0, 0, 0), (0, 0, 0, 1)])
def test_an_outcome_of_another_version_of_a_case_does_not_fit(index):
    outcome = wrong(TIES)
    assert fits(TIES, outcome)
    assert not fits(TIES, replace(outcome, worst=replace(outcome.worst, index=index)))


@pytest.mark.parametrize(
    "array",
    [
        np.float32([0.1, np.nan, np.inf, -np.inf, -0.0, 3e38, 1e-45]),
        np.float64([[1 / 3, 2 / 3], [1e-300, -7.5]]),
        np.float16([[[0.25, 1.5]], [[-255 / 256, 0.1]]]),
        np.array([0.1, 0.5, 3e38, np.nan], ml_dtypes.bfloat16),
        np.array([[255, -3]], ml_dtypes.bfloat16) / ml_dtypes.bfloat16(256),
        np.array([1, 2, 3 << 40]),
        np.zeros((2, 0, 3), np.float16),
        np.zeros((2, 3), np.float32),
        -np.zeros((2, 3), np.float32),
        np.ones((1, 2)),
        np.float32([[[[0.5]]]]),
    ],
    ids=lambda array: f"{array.dtype}-{'x'.join(map(str, array.shape))}",
)
def test_an_array_that_is_written_down_is_the_same_to_the_bit(array):
    names = {"np": np, "ml_dtypes": ml_dtypes, "nan": np.nan, "inf": np.inf}
    exec(assignment("x", array), names)
    assert (names["x"].dtype, names["x"].shape) == (array.dtype, array.shape)
    assert names["x"].tobytes() == array.tobytes()


def test_a_packed_model_computes_the_same():
    import base64
    import lzma

    import lucid_onnx as lo

    model = GRADIENT.model()
    packed = eval(model_expression(model), {"onnx": onnx, "lzma": lzma, "base64": base64})
    assert len(packed.graph.node) == len(model.graph.node)
    results = [lo.session(m).run(None, GRADIENT.inputs()) for m in (model, packed)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_between_casts_takes_and_gives_float32():
    model = between_casts(replace(TIES, dtype="bfloat16", opset=22).model())
    onnx.checker.check_model(model, full_check=True)
    values = [*model.graph.input, *model.graph.output]
    assert {value.type.tensor_type.elem_type for value in values} == {onnx.TensorProto.FLOAT}


# Pictures.


@pytest.mark.parametrize(
    ("output", "index", "place"),
    [
        ("Y", (0, 1, 2, 3), "M3 2h"),
        ("dgrid", (0, 2, 3, 1), "M3 2h"),
        ("dtheta", (1, 0, 2), "M2 0h"),
        ("dX", (0, 1, 5, 2, 3), "M3 2h"),
    ],
)
def test_a_picture_frames_the_worst_value(output, index, place):
    drawn = picture(Worst(output, index, None, 1.0, 2.0, 0.0, ("....",) * 3))
    assert f'<path class=worst d="{place}' in drawn


def test_a_picture_has_a_mark_for_each_value_and_a_path_for_each_letter():
    drawn = picture(Worst("Y", (0, 0, 0, 0), None, 1.0, 2.0, 0.0, ("XX!.", "o?xX")))
    marks = {kind: path.count("M") for kind, path in re.findall(r'<path class=(\w+) d="([^"]*)"', drawn)}
    assert marks == {"far": 3, "wild": 1, "near": 1, "open": 1, "off": 1, "worst": 1}
    assert "<title>2 x 4 values: 1 within the bound; 1 beyond the bound; 3 beyond 100 times" in drawn


# The page.

VOID = ("meta", "br", "rect", "path")
OPTIONAL = ("html", "body", "p", "li")


class Reader(HTMLParser):
    """Reads a page: its tags, what they hold, and whether they are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.words, self.programs = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID + OPTIONAL:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in VOID + OPTIONAL:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] == "pre":
            self.programs.append(data)

    def all(self, tag, kind):
        return [
            attributes for name, attributes in self.tags if name == tag and kind in attributes.get("class", "").split()
        ]


def page(tmp_path, *reports, cases=CASES):
    write_html(reports, tmp_path / "report.html", cases)
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_page_is_well_formed_and_fetches_and_runs_nothing(tmp_path):
    content = page(tmp_path, report(PASSED, KNOWN, SURPRISE, wrong(VOLUME)), report(REFUSED, runtime="tract"))
    read = Reader(content)
    assert read.open == []
    assert content.startswith("<!DOCTYPE html>")
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in read.tags}
    linked = [value for _, attributes in read.tags for name, value in attributes.items() if name in ("href", "src")]
    assert all(value.startswith("#") for value in linked)
    assert not re.search(r"https?:|@import|url\((?!#)", content)
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [
        a for t, a in read.tags if t == "meta"
    ]


@pytest.mark.parametrize(
    ("outcomes", "kind", "words"),
    [
        ([PASSED], "pass", "1 pass"),
        ([PASSED, KNOWN], "known", "1/2 1 known"),
        ([PASSED, KNOWN, REFUSED], "fail", "1/3 1 fail, 1 known"),
        ([SURPRISE], "pass", "1 pass, 1 surprising"),
        ([], "empty", "- nothing run"),
    ],
)
def test_a_cell_has_a_colour_and_says_it_in_words(tmp_path, outcomes, kind, words):
    content = page(tmp_path, report(*outcomes), report(PASSED, runtime="tract"))
    cell = re.search(rf"class='cell {kind}'[^>]*>.*?(?:</summary>|</div>)", content)[0]
    assert re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", cell)).strip().endswith(words)


def test_each_report_has_a_cell_in_each_row(tmp_path):
    read = Reader(page(tmp_path, report(PASSED), report(Outcome(MAP.id, "pass"), runtime="tract"), report(runtime="x")))
    assert len(read.all("details", "cell")) == 2
    assert len(read.all("div", "cell")) == 4


def test_what_a_runtime_said_is_text(tmp_path):
    content = page(tmp_path, report(REFUSED, runtime="<b>", provider="</style>"))
    assert "no kernel &lt;T&gt; &amp; no \ufffdother" in content
    assert "<T>" not in content
    assert "\x1b" not in content
    assert "<b> 1" not in content


def test_a_wrong_value_has_its_id_words_place_picture_and_program(tmp_path):
    outcome = wrong(TIES)
    content = page(tmp_path, report(outcome))
    read = Reader(content)
    words = "".join(read.words)
    for part in (TIES.id, TIES.probes, str(outcome.worst), "1 unexpected failure"):
        assert part in words
    assert len([tag for tag, attributes in read.tags if tag == "svg" and attributes.get("role")]) == 1
    assert read.programs == [reproducer(TIES, outcome, report(outcome))]


def test_a_known_divergence_has_its_reason_in_its_cell_and_in_the_list(tmp_path):
    words = "".join(Reader(page(tmp_path, report(KNOWN, SURPRISE))).words)
    assert words.count("there is no kernel") == 3
    assert "1 passed, though known to fail: there is no kernel" in words


def test_a_failure_of_another_kind_than_is_known_says_what_was_known(tmp_path):
    other = replace(REFUSED, expected="wrong value", reason="it overflows")
    assert "instead of wrong value (it overflows)" in "".join(Reader(page(tmp_path, report(other))).words)


def test_refusals_in_the_same_words_are_told_once(tmp_path):
    cases = {case.id: case for family in ("inside", "far", "borders") for case in [replace(TIES, family=family)]}
    refusals = [
        Outcome(identity, "refused", words=f"node #{k} at 0x{k}f is not there") for k, identity in enumerate(cases)
    ]
    content = page(tmp_path, report(*refusals), cases=cases)
    words = "".join(Reader(content).words)
    assert words.count("is not there") == 1
    assert all(identity in words for identity in cases)
    assert content.count("<pre>") == 1


def test_equal_wrong_values_are_told_once(tmp_path):
    cases = {case.id: case for opset in (16, 20, 22) for case in [replace(TIES, opset=opset)]}
    outcomes = [wrong(case) for case in cases.values()]
    content = page(tmp_path, report(*outcomes), cases=cases)
    assert content.count("<pre>") == 1
    assert all(identity in "".join(Reader(content).words) for identity in cases)


def test_of_gradients_only_the_first_case_of_a_verdict_has_a_program(tmp_path):
    cases = {case.id: case for family in ("inside", "far") for case in [replace(GRADIENT, family=family)]}
    outcomes = [wrong(case, got=float(k)) for k, case in enumerate(cases.values())]
    assert page(tmp_path, report(*outcomes), cases=cases).count("<pre>") == 1


def test_cases_that_are_not_known_are_shown_without_a_program(tmp_path):
    content = page(tmp_path, report(wrong(TIES), Outcome("Conv-1", "refused"), Outcome("Conv-2", "pass")), cases={})
    words = "".join(Reader(content).words)
    assert all(identity in words for identity in (TIES.id, "Conv-1", "Conv-2"))
    assert "<pre>" not in content


def test_passing_ids_do_not_repeat_what_they_share(tmp_path):
    cases = {case.id: case for family in ("inside", "far", "borders") for case in [replace(TIES, family=family)]}
    words = "".join(
        Reader(page(tmp_path, report(*(Outcome(identity, "pass") for identity in cases)), cases=cases)).words
    )
    assert "Ids begin with GridSample-4d-nearest-reflection-" in words
    assert "edges-float32-opset20-symbolic- inside, far, borders" in words


def test_versions_of_a_runtime_show_what_changed(tmp_path):
    words = "".join(Reader(page(tmp_path, report(REFUSED, version="1.31.0"), report(PASSED))).words)
    assert "onnxruntime 1.31.0 to onnxruntime 1.32.0" in words
    assert "1 case pass now" in words
    assert "Changes" not in "".join(Reader(page(tmp_path, report(REFUSED), report(PASSED, runtime="tract"))).words)


def test_a_report_with_a_thousand_failures_is_less_than_a_megabyte(tmp_path):
    cases = by_id()
    chosen = [case for case in cases.values() if case.op == "GridSample" and case.family in ("inside", "far", "ties")]
    failed = [wrong(case, got=float(k)) for k, case in enumerate(chosen[:1000])]
    others = [Outcome(identity, "pass") for identity in list(cases)[-4000:]]
    content = page(tmp_path, report(*failed, *others), cases=cases)
    assert len(failed) == 1000
    assert content.count("<pre>") == 1000
    assert len(content) < 2_000_000


@pytest.mark.parametrize(
    "write", [lambda path: write_html([report()], path, {}), lambda path: write_junit([report()], path)]
)
def test_a_report_that_cannot_be_written_is_an_error_of_one_line(write, tmp_path):
    with pytest.raises(ArgumentError, match="No such file or directory"):
        write(tmp_path / "no" / "report")


# JUnit.


def suites(tmp_path, *reports):
    write_junit(reports, tmp_path / "report.xml")
    return list(ElementTree.parse(tmp_path / "report.xml").getroot())


@pytest.mark.parametrize(
    ("outcome", "tag", "message"),
    [
        *((Outcome("a", verdict, words="why"), "failure", f"{verdict}: why") for verdict in VERDICTS[1:4]),
        *((Outcome("a", verdict, words="why"), "error", f"{verdict}: why") for verdict in ("crashed", "timed out")),
        *((Outcome("a", verdict), "failure", verdict) for verdict in VERDICTS[6:]),
        (KNOWN, "skipped", "known: there is no kernel"),
        (REFUSED, "failure", "refused: NOT_IMPLEMENTED: no kernel <T> & no \ufffdother"),
        (replace(REFUSED, words="", expected="crashed", reason="x"), "failure", "refused"),
    ],
)
def test_a_case_that_did_not_pass_says_why(tmp_path, outcome, tag, message):
    ((case,),) = suites(tmp_path, report(outcome))
    ((found, told),) = [(child.tag, child.get("message")) for child in case]
    assert (found, told) == (tag, message)


def test_a_wrong_value_has_its_place(tmp_path):
    outcome = wrong(TIES)
    ((case,),) = suites(tmp_path, report(outcome))
    assert case[0].text == str(outcome.worst)


def test_a_case_that_passed_is_empty_and_a_surprise_says_so(tmp_path):
    ((passed, surprise),) = suites(tmp_path, report(PASSED, SURPRISE))
    assert list(passed) == []
    assert [child.tag for child in surprise] == ["system-out"]
    assert surprise[0].text == "passed, though known to be refused: there is no kernel"


def test_a_suite_counts_its_cases(tmp_path):
    crash = Outcome("c", "crashed")
    first, second = suites(tmp_path, report(PASSED, SURPRISE, KNOWN, REFUSED, crash, crash), report(runtime="tract"))
    counts = {name: first.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "2", "skipped": "1"}
    assert (second.get("name"), len(second)) == ("tract 1.32.0 (CPUExecutionProvider)", 0)
    assert {case.get("classname") for case in first} == {"onnxruntime"}


def test_programs_on_a_page_are_as_written(tmp_path):
    outcome = wrong(TIES)
    found = re.search(r"<pre>(.*?)</pre>", page(tmp_path, report(outcome)), re.DOTALL)[1]
    assert html.unescape(found) == reproducer(TIES, outcome, report(outcome))
