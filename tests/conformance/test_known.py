"""Known divergences: the file, and that the suite finds every one of them and no others."""

import importlib.util
from pathlib import Path

import onnx
import onnxruntime
import pytest
from packaging.specifiers import SpecifierSet

from lucid_onnx.conformance import cases, run
from lucid_onnx.conformance.known import known_to, read_divergences
from lucid_onnx.conformance.report import read_json
from lucid_onnx.conformance.runtimes import RUNTIMES
from lucid_onnx.conformance.select import selector
from lucid_onnx.conformance.suite import by_id
from lucid_onnx.reference.schema import ArgumentError

ENTRIES = read_divergences()

TABLE = {
    # Rows of the table of known divergences in the contract of the operators: the case, the result, and who has it.
    "report-nearest-tie-outside-reflection": ("onnxruntime", "openvino", "tract", "onnx.reference"),
    "report-cubic-border-weights": ("tract", "onnx.reference"),
    "report-far-border": ("onnxruntime",),
    "report-far-finite-reflection": ("onnxruntime",),
    "report-huge-zeros": ("onnxruntime",),
    "report-beyond-int64-bilinear": ("onnxruntime",),
    "report-beyond-int64-bicubic": ("onnxruntime",),
    "report-nonfinite-bilinear-zeros": ("onnxruntime",),
    "report-nonfinite-bilinear-border": ("onnxruntime", "openvino", "tract"),
    "report-nonfinite-nearest-zeros": ("onnxruntime", "tract"),
    "report-nonfinite-nearest-border": ("onnxruntime", "openvino"),
    "report-nonfinite-bicubic-zeros": ("onnxruntime",),
    "report-nonfinite-bicubic-border": ("onnxruntime",),
    "report-nonfinite-bicubic-reflection": ("onnxruntime",),
    "report-nonfinite-5d-bilinear-zeros": ("onnxruntime",),
    "report-nonfinite-5d-bilinear-border": ("onnxruntime",),
    "report-nonfinite-5d-nearest-zeros": ("onnxruntime",),
    "report-nonfinite-5d-nearest-border": ("onnxruntime",),
    "report-infinite-pixel-under-an-outside-tap": ("onnxruntime", "openvino", "tract", "onnx.reference"),
    "report-affine-size-one-1x3-ac1": ("onnxruntime", "onnx.reference", "openvino"),
    "report-affine-size-one-3x1-ac1": ("onnxruntime", "onnx.reference", "openvino"),
    "report-affine-size-one-1x1-ac1": ("onnxruntime", "onnx.reference", "openvino"),
    "report-one-half-precision-map": ("onnxruntime",),
    "GridSample-4d-bilinear-zeros-edges-float64-opset16-symbolic-outside": ("onnxruntime",),
    "GridSample-4d-bilinear-zeros-edges-bfloat16-opset22-symbolic-outside": ("onnxruntime",),
}
NAMED = ("onnxruntime", "openvino", "tract", "onnx.reference")
PACKAGES = {"onnxruntime": "onnxruntime", "onnx.reference": "onnx", "openvino": "openvino", "tract": "tract"}
MEASURED = {"onnxruntime": "1.32.*", "onnx.reference": "1.23.*", "openvino": "2026.4.*", "tract": "0.23.*"}


@pytest.fixture(scope="module", params=NAMED)
def of_the_table(request):
    """The cases of the table on a runtime that is installed in the version in which the table was measured."""
    if importlib.util.find_spec(PACKAGES[request.param]) is None:
        pytest.skip(f"{PACKAGES[request.param]} is not installed")
    select = f"id in {[*TABLE]}"
    report = run(request.param, select=select)
    if report.version not in SpecifierSet(f"=={MEASURED[request.param]}"):
        pytest.skip(f"the table was measured with {request.param} {MEASURED[request.param]}, here is {report.version}")
    return report


def test_every_row_of_the_table_is_found_on_the_runtimes_it_names(of_the_table):
    failed = {outcome.id for outcome in of_the_table.cases if not outcome.passed}
    named = {case for case, runtimes in TABLE.items() if of_the_table.runtime in runtimes}
    assert named <= failed


def test_all_of_them_are_known_and_nothing_else_is(of_the_table):
    assert not of_the_table.failures
    assert not of_the_table.surprises


@pytest.mark.parametrize("runtime", NAMED)
def test_a_sample_of_the_suite_meets_only_what_is_known(runtime):
    if importlib.util.find_spec(PACKAGES[runtime]) is None:
        pytest.skip(f"{PACKAGES[runtime]} is not installed")
    report = run(runtime, max_examples=150)
    if report.version not in SpecifierSet(f"=={MEASURED[runtime]}"):
        pytest.skip(f"what is known was measured with {runtime} {MEASURED[runtime]}, here is {report.version}")
    assert [(outcome.id, outcome.words) for outcome in report.failures] == []
    assert [outcome.id for outcome in report.surprises] == []


def test_ordinary_inputs_diverge_only_where_the_table_says():
    """Refusals and crashes aside, which are of what is not implemented."""
    for entry in ENTRIES:
        if entry.verdict not in ("refused", "crashed"):
            for case in filter(selector(entry.select), cases()):
                if case.ordinary and case.op in ("GridSample", "AffineGrid") and case.dtype == "float32":
                    size_one = case.op == "AffineGrid" and case.align_corners and case.family in ("size-1", "one-pixel")
                    tie = case.mode == "nearest" and case.padding_mode == "reflection" and case.family == "ties"
                    border = case.mode == "bicubic" and case.padding_mode == "border"
                    assert size_one or tie or border, (entry.runtime, entry.reason, case.id)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.runtime}: {entry.reason[:60]}")
def test_an_entry_covers_cases_and_says_why(entry):
    assert entry.runtime in RUNTIMES
    assert any(map(selector(entry.select), cases()))
    assert len(entry.reason) > 15
    assert SpecifierSet(entry.versions)


@pytest.mark.parametrize(
    ("version", "provider", "count"),
    [
        (onnxruntime.__version__, "CPUExecutionProvider", True),
        ("1.24.0", "CPUExecutionProvider", False),
        (onnxruntime.__version__, "CUDAExecutionProvider", False),
        ("my build", "CPUExecutionProvider", False),
        (f"{onnxruntime.__version__}.dev7", "CPUExecutionProvider", True),
    ],
)
def test_an_entry_concerns_its_versions_and_provider_only(version, provider, count):
    case = next(case for case in cases() if "nearest-tie-outside" in case.id)
    assert (known_to("onnxruntime", version, provider).find(case) is not None) == count


GOOD = """
[[divergence]]
runtime = "my-runtime"
versions = ">=1"
select = "nearest and ties"
verdict = "wrong value"
reason = "it rounds half up"
"""


def test_a_file_of_ones_own_comes_first(tmp_path):
    path = tmp_path / "known.toml"
    path.write_text(GOOD.replace("my-runtime", "onnx.reference"))
    case = next(case for case in cases() if case.family == "ties" and case.mode == "nearest")
    assert known_to("onnx.reference", onnx.__version__, "", path).find(case).reason == "it rounds half up"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[[divergence]]", "[divergence]"), "divergences are tables"),
        (('versions = ">=1"', 'versions = "new"'), "versions are written as pip has them"),
        (("nearest and ties", "nearest and"), "it is no expression"),
        (("wrong value", "wrong"), "verdict is one of wrong value"),
        (("wrong value", "pass"), "verdict is one of wrong value"),
        (('reason = "it rounds half up"', ""), "it must have reason, runtime"),
        (('">=1"', "1"), "every value is a text"),
        (('versions = ">=1"', 'versions = ">=1'), "Illegal|newline|line 4"),
        (("[[divergence]]", "[[divergence]]\nwhy = 'x'"), "it must have"),
    ],
)
def test_a_file_that_does_not_fit_is_an_error_that_names_it(tmp_path, change, words):
    path = tmp_path / "known.toml"
    path.write_text(GOOD.replace(*change))
    with pytest.raises(ArgumentError, match=words) as error:
        read_divergences(path)
    assert "known.toml" in str(error.value)


DOCS = Path(__file__).parents[2] / "docs" / "conformance"


@pytest.mark.parametrize("runtime", NAMED)
def test_the_report_in_the_documents_is_of_this_suite_and_explained(runtime):
    (report,) = read_json(DOCS / f"{runtime}.json")
    assert report.version in SpecifierSet(f"=={MEASURED[runtime]}")
    assert [outcome.id for outcome in report.cases] == [case.id for case in cases()]
    known = known_to(report.runtime, report.version, report.provider)
    for outcome in report.cases:
        divergence = known.find(by_id()[outcome.id])
        assert outcome.passed == (outcome.expected == "pass")
        assert outcome.passed or (divergence.verdict, divergence.reason) == (outcome.verdict, outcome.reason), (
            outcome.id
        )
    assert f"| {len(report.cases):,} | {report.counts['pass']:,} |" in (DOCS / "README.md").read_text()
