"""The tables of the targets, and tables of one's own."""

import json

import pytest
from lowering.sampling import grid_sample_model, left, parsed

from lucid_onnx.lowering import COLUMNS, FAULTS, TARGETS, Kernel, Target, find_target, lower
from lucid_onnx.lowering.rows import FORMS, GRIDS
from lucid_onnx.operators.model import TARGETS as NAMES
from lucid_onnx.reference.schema import FLOAT_DTYPES, MODES, PADDING_MODES, ArgumentError

ROWS = [
    pytest.param(kernel, id=f"{target.name}-{number}")
    for target in TARGETS.values()
    for number, kernel in enumerate(target.kernels, start=1)
]

MINIMAL = '[[kernel]]\nop = "GridSample"\nopsets = [16]\nsource = "measured"\n'
MINE = """
    name = "mine"
    extends = "onnxruntime-cuda"
    about = "our build"
    newest_opset = 22

    [[kernel]]
    op = "GridSample"
    opsets = [20, 22]
    ranks = [5]
    modes = ["bilinear"]
    dtypes = ["float16", "float32"]
    source = "our release notes, 3.2"
"""


def written(folder, text):
    path = folder / "own.toml"
    path.write_text(text)
    return path


def test_every_target_of_the_api_has_a_table():
    assert tuple(TARGETS) == NAMES
    assert all(name == target.name for name, target in TARGETS.items())


@pytest.mark.parametrize("kernel", ROWS)
def test_every_row_has_a_source(kernel):
    assert len(kernel.source) > 10


@pytest.mark.parametrize("kernel", ROWS)
def test_every_row_speaks_of_what_there_is(kernel):
    assert kernel.op in ("GridSample", "AffineGrid")
    assert {*kernel.modes} <= {*MODES}
    assert {*kernel.padding_modes} <= {*PADDING_MODES}
    assert {*kernel.dtypes} <= {*FLOAT_DTYPES}
    assert {*kernel.wrong} <= {*FAULTS}
    assert {*kernel.ranks} <= {4, 5}
    assert kernel.form in FORMS
    assert kernel.grid in GRIDS


@pytest.mark.parametrize("kernel", ROWS)
def test_no_row_claims_a_kernel_from_before_there_was_the_operator(kernel):
    oldest, newest = kernel.opsets
    assert oldest >= (20 if kernel.op == "AffineGrid" else 16)
    assert newest is None or newest >= oldest


@pytest.mark.parametrize("kernel", ROWS)
def test_every_row_fills_every_column(kernel):
    assert len(kernel.as_row()) == len(COLUMNS)


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_tables_are_json(target):
    assert json.loads(json.dumps(target.as_dict()))["name"] == target.name


@pytest.mark.parametrize(
    ("opsets", "spelling"),
    [((16, 19), "bilinear"), ((20, None), "linear"), ((20, 22), "linear"), ((16, None), "bilinear, from 20 on linear")],
)
def test_the_spelling_follows_from_the_opsets(opsets, spelling):
    assert Kernel("GridSample", opsets, "").spelling == spelling


def test_a_target_is_found_by_name_by_file_and_as_itself(tmp_path):
    assert find_target("tensorrt") is TARGETS["tensorrt"]
    assert find_target(written(tmp_path, MINIMAL)).name == "own"
    assert find_target(str(written(tmp_path, MINE))).name == "mine"
    assert find_target(TARGETS["openvino"]) is TARGETS["openvino"]


def test_a_table_of_ones_own_goes_before_what_it_extends(tmp_path):
    mine, base = find_target(written(tmp_path, MINE)), TARGETS["onnxruntime-cuda"]
    assert (mine.name, mine.about, mine.newest_opset) == ("mine", "our build", 22)
    assert mine.kernels[1:] == base.kernels
    assert mine.kernels[0] == Kernel(
        "GridSample",
        (20, 22),
        "our release notes, 3.2",
        ranks=(5,),
        modes=("bilinear",),
        dtypes=("float16", "float32"),
    )


def test_what_a_table_does_not_say_it_takes_from_what_it_extends(tmp_path):
    own = find_target(written(tmp_path, 'extends = "tensorrt"\n'))
    assert (own.name, own.newest_opset, own.kernels) == ("own", 24, TARGETS["tensorrt"].kernels)


def test_a_table_that_extends_nothing_has_its_rows_only(tmp_path):
    assert len(find_target(written(tmp_path, MINIMAL)).kernels) == 1


def test_a_table_of_ones_own_changes_the_decision(tmp_path):
    model = grid_sample_model((5, "bilinear", "border", True), "float32", 20)
    assert left(lower(model, "tensorrt")[0]) == []
    lowered, report = lower(model, written(tmp_path, MINE))
    assert left(lowered) == ["GridSample"]
    assert (report.target, report.entries[0].action, report.entries[0].source) == (
        "mine",
        "kept",
        "our release notes, 3.2",
    )


def test_a_table_of_ones_own_forces_the_expansion(tmp_path):
    text = 'extends = "onnxruntime-cpu"\n' + MINIMAL + 'form = "expand"\nslow = "we measured"\n'
    lowered, report = lower(grid_sample_model((4, "bilinear", "zeros", False), "float32", 20), written(tmp_path, text))
    assert left(lowered) == []
    assert (report.entries[0].action, report.entries[0].why) == ("expanded", "slow: we measured")


def test_a_target_may_be_made_in_python():
    own = Target("own", "", (Kernel("GridSample", (16, None), "measured", wrong=("non-finite",)),))
    _, report = lower(grid_sample_model((4, "bilinear", "zeros", False), "float32", 20), own)
    assert report.entries[0].action == "guarded"


def test_an_opset_beyond_what_a_table_reads_is_one_clear_error(tmp_path):
    model = parsed("g (float[2] x) => (float[2] y) { y = Relu (x) }")
    with pytest.raises(NotImplementedError, match="lower: mine reads opsets up to 22; 23 was asked for"):
        lower(model, written(tmp_path, MINE), opset=23)


def row(**changes):
    """A table of one row, with other entries, written as TOML."""
    entries = {"op": '"GridSample"', "opsets": "[16]", "source": '"measured"', **changes}
    return "[[kernel]]\n" + "\n".join(f"{name} = {value}" for name, value in entries.items() if value is not None)


BAD = [
    ("name = ", "own.toml' is not valid TOML: Invalid value"),
    ("\ufeff\x00", "own.toml' is not valid TOML"),
    ('nmae = "x"', "unknown entry 'nmae'; there are name, extends, about, newest_opset, kernel"),
    ("name = 3", "name must be a string, got 3"),
    ('newest_opset = "22"', "newest_opset must be an integer, got '22'"),
    ("newest_opset = true", "newest_opset must be an integer, got True"),
    ('extends = "abacus"', "it extends 'abacus'; there are onnxruntime-cpu, .*portable"),
    ("kernel = 3", "kernel must be an array, got 3"),
    ("kernel = [3]", r"kernel 1: a row is written \[\[kernel\]\]"),
    (row(op=None), "kernel 1: op is missing"),
    (row(opsets=None), "kernel 1: opsets is missing"),
    (row(source=None), "kernel 1: source is missing"),
    (MINIMAL + row(source=None), "kernel 2: source is missing"),
    (row(op='"Resize"'), "kernel 1: op has 'Resize'; it may be GridSample, AffineGrid"),
    (row(modes='["linear"]'), "modes has 'linear'; it may be bilinear, nearest, bicubic"),
    (row(modes='"bilinear"'), "modes must be an array, got 'bilinear'"),
    (row(padding_modes='["wrap"]'), "padding_modes has 'wrap'; it may be zeros, border, reflection"),
    (row(ranks="[3]"), "ranks has 3; it may be 4, 5"),
    (row(dtypes='["int8"]'), "dtypes has 'int8'"),
    (row(grid='"none"'), "grid has 'none'; it may be same, any"),
    (row(form='"drop"'), "form has 'drop'; it may be keep, canonical, expand"),
    (row(wrong='["slow"]'), "wrong has 'slow'; it may be non-finite"),
    (row(align_corners="[2]"), "align_corners has 2; it may be false, true"),
    (row(opsets="[]"), "opsets is empty"),
    (row(opsets="[16, 17, 18]"), r"opsets is one integer or two"),
    (row(opsets='["16"]'), r"opsets is one integer or two"),
    (row(opsets="[20, 19]"), r"opsets ends before it begins: \[20, 19\]"),
    (row(channels="[-1]"), r"channels is one integer or two"),
    (row(opsets="[15]"), "kernel 1: GridSample came with opset 16, got opsets from 15"),
    (row(op='"AffineGrid"', opsets="[16, 19]"), "kernel 1: AffineGrid came with opset 20, got opsets from 16"),
    (row(op='"AffineGrid"', opsets="[20]", form='"canonical"'), "kernel 1: AffineGrid has no canonical form"),
    (row(ranks="[]"), "kernel 1: ranks is empty"),
    (row(modes="[]"), "kernel 1: modes is empty"),
    (row(dtypes="[]"), "kernel 1: dtypes is empty"),
    (row(align_corners="[0]"), "align_corners has 0; it may be false, true"),
    ("newest_opset = 10", "newest_opset must be 16 or newer, got 10"),
    ("deep = " + "[" * 3000, "own.toml' is not valid TOML"),
    (row(speed="3"), "kernel 1: unknown entry 'speed'; there are op, opsets, source"),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_a_table_that_is_none_is_one_clear_error(tmp_path, text, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        find_target(written(tmp_path, text))
    assert "own.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("abacus", "unknown target 'abacus'; there are onnxruntime-cpu, .*FILE.toml"),
        ("nowhere.toml", "cannot read 'nowhere.toml': No such file"),
        ("", "unknown target ''"),
    ],
)
def test_an_unknown_target_is_one_clear_error(name, message):
    with pytest.raises(ArgumentError, match=message):
        find_target(name)


def test_a_file_that_is_no_text_is_one_clear_error(tmp_path):
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArgumentError, match=r"own.toml' is not valid TOML"):
        find_target(path)
