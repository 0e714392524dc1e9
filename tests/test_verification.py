"""A lowered model that is right passes, one that is wrong does not, and what cannot be judged is said."""

import json

import numpy as np
import onnx
import pytest
from lowering.networks import NETWORKS, exported

from lucid_onnx.lowering import lower
from lucid_onnx.reference.schema import ArgumentError, UnsupportedError
from lucid_onnx.verification import verify

SHAPES = {
    4: ("N, 2, H, W", "N, 5, 6, 2", "N, 2, 5, 6"),
    5: ("N, 2, D, H, W", "N, 3, 4, 5, 3", "N, 2, 3, 4, 5"),
}


def parsed(text, opset=20, more=""):
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}{more}]>\n{text}')


def sampling(mode="linear", padding="zeros", corners=0, rank=4, dtype="float", grid_dtype=None):
    x, grid, y = SHAPES[rank]
    return parsed(f"""
        warp ({dtype}[{x}] x, {grid_dtype or dtype}[{grid}] grid) => ({dtype}[{y}] y)
        {{ [s] y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}> (x, grid) }}
    """)


def transformer(dtype="float", n="N", size=(6, 7), corners=0, mode="linear", theta=""):
    """An image moved by a theta that is an input, or the constant `theta`."""
    h, w = size
    given = f", {dtype}[{n}, 2, 3] theta" if not theta else ""
    constant = f", {dtype}[{n}, 2, 3] theta = {{{theta}}}" if theta else ""
    return parsed(f"""
        stn ({dtype}[{n}, 3, 8, 9] x{given}) => ({dtype}[{n}, 3, {h}, {w}] y)
        <int64[4] size = {{{1 if theta else 2}, 3, {h}, {w}}}{constant}> {{
            [a] grid = AffineGrid <align_corners = {corners}> (theta, size)
            [s] y = GridSample <mode = "{mode}", align_corners = {corners}> (x, grid)
        }}""")


CELLS = [
    ("linear", "zeros", 0, 4, "float", None),
    ("linear", "reflection", 1, 4, "float", None),
    ("nearest", "reflection", 0, 4, "float", None),
    ("cubic", "border", 0, 4, "float", None),
    ("linear", "border", 0, 5, "float", None),
    ("cubic", "zeros", 1, 5, "float", None),
    ("linear", "border", 0, 4, "double", None),
    ("linear", "border", 0, 4, "float16", None),
    ("cubic", "zeros", 0, 4, "float16", "float"),
    ("nearest", "zeros", 1, 4, "bfloat16", None),
    ("nearest", "border", 0, 4, "uint8", "float"),
]


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable", "tensorrt"])
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_what_lower_makes_passes(cell, target):
    model = sampling(*cell)
    result = verify(model, lower(model, target)[0])
    assert result.ok
    assert [(row.node, row.inputs) for row in result.rows] == [("s", "ordinary"), ("s", "non-finite")]
    assert result.outputs or result.original_error


@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable"])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_pass(name, target):
    model, _, _ = exported(name)
    result = verify(model, lower(model, target)[0])
    assert result.ok
    assert (result.original_error, result.notes) == ("", [])
    assert len(result.outputs) == len(model.graph.output)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ({"padding": "zeros"}, {"padding": "border"}),
        ({"padding": "border"}, {"padding": "reflection"}),
        ({"mode": "linear"}, {"mode": "nearest"}),
        ({"mode": "nearest"}, {"mode": "nearest", "corners": 1}),
        ({"mode": "cubic", "corners": 1}, {"mode": "cubic"}),
        ({"rank": 5}, {"rank": 5, "padding": "reflection"}),
        ({"dtype": "float16"}, {"dtype": "float16", "corners": 1}),
    ],
    ids=str,
)
def test_another_sampling_is_found_by_the_reference_and_by_the_outputs(right, wrong):
    result = verify(sampling(**right), lower(sampling(**wrong), "portable")[0])
    assert not result.ok
    assert not result.rows[0].ok
    assert not result.outputs[0].ok


def test_another_sampling_is_found_where_the_original_does_not_run():
    result = verify(sampling("cubic", rank=5), lower(sampling("cubic", "border", rank=5))[0])
    assert not result.ok
    assert "GridSample" in result.original_error
    assert result.outputs == []


def test_missing_guards_are_found_unless_coordinates_are_finite():
    model = sampling("linear", "border")
    lowered, _ = lower(model, assume_finite=True)
    result = verify(model, lowered)
    assert [row.ok for row in result.rows] == [True, False]
    assert result.outputs[0].ok
    finite = verify(model, lowered, assume_finite=True)
    assert finite.ok
    assert [row.inputs for row in finite.rows] == ["ordinary", "edges"]


def test_a_wrong_layer_behind_the_sampling_is_found_by_the_outputs():
    def model(factor):
        return parsed(f"""
            warp (float[2, 2, 7, 8] x, float[2, 5, 6, 2] grid) => (float[2, 2, 5, 6] y, float[2, 2, 5, 6] z)
            <float scale = {{{factor}}}> {{ y = GridSample (x, grid) z = Mul (y, scale) }}""")

    result = verify(model(1), lower(model(1.01))[0])
    assert [row.ok for row in result.outputs] == [True, False]
    assert all(row.ok for row in result.rows)
    assert not result.ok


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("warp (float[2] x) => (float[2] y) { y = Abs (x) }", "other inputs: x (float) instead of x (float), grid"),
        (
            "warp (float[N,2,H,W] x, float16[N,5,6,2] grid) => (float[N,2,H,W] y) { y = Abs (x) }",
            "grid (float16) instead of",
        ),
        (
            "warp (float[N,2,H,W] x, float[N,5,6,2] grid) => (float[N,2,H,W] z) { z = Abs (x) }",
            "other outputs: z instead of y",
        ),
        (
            "warp (float[N,2,H,W] x, float[N,5,6,2] grid) => (float[N,2,H,W] y) { y = Unheard (x) }",
            "refuses the model",
        ),
        (
            """warp (float[N,2,H,W] x, float[N,5,6,2] grid) => (float[N,2,H,W] y)
            <int64[1] shape = {11}> { y = Reshape (x, shape) }""",
            "failed",
        ),
    ],
)
def test_a_model_that_cannot_take_its_place_is_not_ok(text, error):
    result = verify(sampling(), parsed(text))
    assert not result.ok
    assert error in result.lowered_error


X, GRID = np.ones((1, 2, 3, 3), np.float32), np.zeros((1, 5, 6, 2), np.float32)


def test_given_inputs_are_run_once():
    model = sampling()
    result = verify(model, lower(model)[0], {"x": X, "grid": GRID})
    assert result.ok
    assert [row.inputs for row in result.rows] == ["given"]


@pytest.mark.parametrize(
    ("feeds", "error"),
    [
        ({"x": X}, "input 'grid' is missing"),
        ({"x": X, "grid": GRID, "theta": X}, "no input 'theta'"),
        ({"x": X, "grid": GRID[:, :4]}, r"'grid' must have shape \(N, 5, 6, 2\), got \(1, 4, 6, 2\)"),
        ({"x": X, "grid": GRID.astype(np.float64)}, "'grid' must be float32, got float64"),
    ],
)
def test_given_inputs_that_do_not_fit_are_named(feeds, error):
    model = sampling()
    with pytest.raises(ArgumentError, match=error):
        verify(model, lower(model)[0], feeds)


@pytest.mark.parametrize("declared", ["seq(float[2, 3]) x", "string[2] x", "float x"])
def test_an_input_for_which_nothing_can_be_made_must_be_given(declared):
    model = parsed(f"any ({declared}) => (float y) <float one = {{1}}> {{ y = Identity (one) }}")
    if declared == "float x":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedError, match=r"input 'x'.*give feeds"):
        verify(model, model)


@pytest.mark.parametrize("dtype", ["float", "float16", "bfloat16", "double"])
@pytest.mark.parametrize("target", ["onnxruntime-cpu", "portable"])
def test_transformers_are_judged_whether_or_not_the_grid_keeps_its_name(dtype, target):
    model = transformer(dtype, n="2")
    result = verify(model, lower(model, target)[0])
    assert result.ok
    assert "s" in [row.node for row in result.rows]


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_folded_grid_is_no_obstacle(mode):
    model = transformer(n="1", theta="0.9, 0.2, 0.1, -0.2, 1.1, 0", mode=mode)
    result = verify(model, lower(model, "portable")[0])
    assert result.ok
    assert result.outputs
    assert result.rows or mode == "nearest"


def test_outputs_are_no_witness_where_the_kernel_is_wrong():
    # onnxruntime's AffineGrid places the one pixel of an axis at 1 instead of 0.
    model = transformer(size=(1, 7), corners=1, n="2")
    result = verify(model, lower(model, "portable")[0])
    assert result.ok
    assert "wrong on these inputs, by the reference: a" in result.original_error
    assert result.outputs == []


MAPPED = {"Sample3D": "GridSample,mode=bilinear,padding_mode=border,align_corners=0"}


@pytest.mark.parametrize(("wanted", "ok"), [("border", True), ("zeros", False)])
def test_custom_operators_are_judged_by_the_reference(wanted, ok):
    model = parsed(
        "m (float[N, 2, 7, 8] x, float[N, 5, 6, 2] grid) => (float[N, 2, 5, 6] y) { y = own.Sample3D (x, grid) }",
        more=', "own" : 1',
    )
    lowered, _ = lower(model, map={"Sample3D": MAPPED["Sample3D"].replace("border", wanted)})
    result = verify(model, lowered, map=MAPPED)
    assert result.original_error
    assert result.ok is ok
    assert model.graph.node[0].op_type == "Sample3D"


INSIDE = """
    m (float[1, 2, 7, 8] x, float[1, 5, 6, 2] grid, bool[1] yes) => (float[1, 2, 5, 6] y) {
        y = If (yes) <
            then_branch = a () => (float[1, 2, 5, 6] p) { p = GridSample <padding_mode = "border"> (x, grid) },
            else_branch = b () => (float[1, 2, 5, 6] q) { q = GridSample <padding_mode = "PADDING"> (x, grid) }>
    }"""


@pytest.mark.parametrize(("padding", "ok"), [("border", True), ("zeros", False)])
def test_samplings_in_subgraphs_are_judged_by_the_outputs(padding, ok):
    feeds = {"x": np.arange(112, dtype="f").reshape(1, 2, 7, 8), "grid": GRID + 1.1, "yes": np.array([False])}
    model, lowered = parsed(INSIDE.replace("PADDING", "border")), lower(parsed(INSIDE.replace("PADDING", padding)))[0]
    result = verify(model, lowered, feeds)
    assert result.ok is ok
    assert result.notes == ["samplings in subgraphs or functions are judged by the outputs only: 2"]
    assert result.rows == []


def test_defaults_and_optional_inputs_need_not_be_given():
    model = parsed("""
        m (float[N, 2, 7, 8] x, float[N, 5, 6, 2] grid, float[1] scale, optional(float[2]) more)
            => (float[N, 2, 5, 6] y) <float[1] scale = {2}> { s = GridSample (x, grid) y = Mul (s, scale) }""")
    result = verify(model, lower(model, "portable")[0])
    assert result.ok
    assert len(result.outputs) == 1


def test_coordinates_are_found_behind_arithmetic_and_rearrangement():
    model = parsed("""
        m (float[N, 2, H, W] x, float[N, 2, 5, 6] flow) => (float[N, 2, 5, 6] y) <float half = {0.5}> {
            t = Transpose <perm = [0, 2, 3, 1]> (flow) g = Mul (t, half) y = GridSample (x, g) }""")
    result = verify(model, lower(model, "portable")[0])
    assert result.ok
    assert [row.inputs for row in result.rows] == ["ordinary", "non-finite"]


@pytest.mark.parametrize("kernel", [5, 20, 50])
def test_open_dimensions_are_made_large_enough_for_the_network(kernel):
    model = parsed(f"""
        m (float[N, 1, H, W] x, float[N, 5, 6, 2] grid) => (float[N, 1, 5, 6] y)
        <float[1, 1, {kernel}, {kernel}] w = {{{", ".join(["0.1"] * kernel**2)}}}>
        {{ f = Conv (x, w) y = GridSample (f, grid) }}""")
    assert verify(model, lower(model)[0]).ok


def test_the_size_of_an_affine_grid_may_be_an_input():
    model = parsed("""
        m (float[N, 2, 3] theta, int64[4] size) => (float[A, B, C, 2] grid) { grid = AffineGrid (theta, size) }""")
    result = verify(model, lower(model, "portable")[0])
    assert result.ok
    assert result.rows


@pytest.mark.parametrize("as_path", [True, False])
def test_external_data_is_found_and_files_stay_as_they_are(tmp_path, as_path):
    model = parsed(
        """
        m (float[N, 2, 7, 8] x, float[N, 5, 6, 2] grid) => (float[N, 2, 5, 6] y)
        { s = GridSample (x, grid) y = Mul (s, w) }
        """
    )
    path = tmp_path / "model.onnx"
    weights = onnx.numpy_helper.from_array(np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6), "w")
    model.graph.initializer.append(weights)
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    lowered, _ = lower(path, "portable")
    if as_path:
        onnx.save(lowered, tmp_path / "lowered.onnx")
        lowered = tmp_path / "lowered.onnx"
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    result = verify(path, lowered)
    assert result.ok
    assert len(result.outputs) == 1
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_neither_model_and_no_feed_is_changed():
    model = sampling("linear", "border", dtype="float16")
    lowered, _ = lower(model)
    feeds = {"x": X.astype(np.float16), "grid": GRID.astype(np.float16)}
    before = [model.SerializeToString(), lowered.SerializeToString(), *(array.tobytes() for array in feeds.values())]
    verify(model, lowered, feeds)
    after = [model.SerializeToString(), lowered.SerializeToString(), *(array.tobytes() for array in feeds.values())]
    assert after == before


def test_the_result_is_a_table_and_json():
    model = sampling()
    result = verify(model, lower(model)[0])
    header, rows = result.table()
    assert {len(row) for row in rows} == {len(header)}
    assert [row[0] for row in rows] == ["s", "s", "y"]
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False))["ok"] is True


def test_a_verification_of_nothing_is_not_ok():
    model = parsed("m (float[2] x) => (float[2] y) { y = own.Unknown (x) }", more=', "own" : 1')
    assert not verify(model, model).ok
