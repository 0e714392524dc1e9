"""`session`: providers, threads, and inputs that are checked before the run."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import lucid_onnx as lo
from lucid_onnx.cli import main

X = np.ones((2, 3, 4, 5), np.float32)
GRID = np.zeros((2, 6, 7, 2), np.float32)


@pytest.fixture(scope="module")
def sampler():
    return lo.session(lo.operator_model("GridSample", shapes={"X": ("N", 3, "H", "W")}))


def test_takes_a_path_a_proto_or_an_ir_model(tmp_path):
    model = lo.operator_model("GridSample")
    onnx.save(model, tmp_path / "model.onnx")
    for source in (model, ir.from_proto(model), tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        (y,) = lo.session(source).run(None, {"X": X, "grid": GRID})
        assert y.shape == (2, 3, 6, 7)


def test_finds_external_data_beside_a_path(tmp_path):
    lo.export("stn", tmp_path / "whole.onnx")
    onnx.save(
        onnx.load(tmp_path / "whole.onnx"),
        tmp_path / "model.onnx",
        save_as_external_data=True,
        location="weights.bin",
        size_threshold=1024,
    )
    x = np.random.default_rng(0).standard_normal((1, 1, 28, 28)).astype(np.float32)
    whole, parted = (lo.session(tmp_path / f"{name}.onnx").run(None, {"X": x}) for name in ("whole", "model"))
    np.testing.assert_array_equal(whole[0], parted[0])


def test_is_an_onnxruntime_session(sampler):
    assert isinstance(sampler, ort.InferenceSession)
    assert sampler.get_providers() == ["CPUExecutionProvider"]
    outputs = sampler.run(["Y"], {"X": X, "grid": GRID})
    assert [array.shape for array in outputs] == [(2, 3, 6, 7)]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (0, 3, 4, 5)])
def test_knows_bfloat16(shape):
    dtype = np.dtype(ml_dtypes.bfloat16)
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    grid = np.zeros((shape[0], 2, 2, 2), dtype)
    (y,) = lo.session(lo.operator_model("GridSample", dtype="bfloat16")).run(None, {"X": x, "grid": grid})
    np.testing.assert_array_equal(y, lo.grid_sample(x, grid))
    assert y.dtype == dtype


WRONG = [
    ({"X": X}, "input 'grid' is missing"),
    ({"X": X, "grid": GRID, "size": GRID}, r"there is no input 'size' \(there is X, grid\)"),
    ({"X": X[0], "grid": GRID}, r"input 'X' must have rank 4 \(N, 3, H, W\), got shape \(3, 4, 5\)"),
    ({"X": X.astype(np.float64), "grid": GRID}, "input 'X' must be float32, got float64"),
    ({"X": X[:, :2], "grid": GRID}, r"input 'X' must have shape \(N, 3, H, W\), got \(2, 2, 4, 5\)"),
    ({"X": X, "grid": GRID[:1]}, r"N is 1 in input 'grid' of shape \(1, 6, 7, 2\), but 2 in 'X'"),
    ({"X": X[0], "grid": GRID.astype(int)}, "input 'X' must have rank.*; input 'grid' must be float32, got int64"),
]


@pytest.mark.parametrize(("feed", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_inputs_are_one_error_before_the_run(sampler, feed, message):
    with pytest.raises(ValueError, match=message) as caught:
        sampler.run(None, feed)
    assert isinstance(caught.value, lo.ArgumentError)
    assert "\n" not in str(caught.value)


def test_results_do_not_share_memory_with_inputs():
    values = [
        helper.make_tensor_value_info(n, t, [2]) for n, t in (("b", TensorProto.BFLOAT16), ("f", TensorProto.FLOAT))
    ]
    graph = helper.make_graph([], "passes through", values, values)
    session = lo.session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    b, f = np.ones(2, np.dtype(ml_dtypes.bfloat16)), np.ones(2, np.float32)
    results = session.run(None, {"b": b, "f": f})
    b[:], f[:] = 9, 9
    assert all((result == 1).all() for result in results)


def test_unknown_outputs_are_named(sampler):
    with pytest.raises(ValueError, match=r"there is no output 'Z' \(there is Y\)"):
        sampler.run(["Z"], {"X": X, "grid": GRID})


def test_an_absent_provider_lists_those_present():
    with pytest.raises(NotImplementedError, match=r"no execution provider NoSuchProvider; .*CPUExecutionProvider"):
        lo.session(lo.operator_model("GridSample"), providers=["NoSuchProvider"])


def test_wrong_threads_and_sources(tmp_path):
    model = lo.operator_model("GridSample")
    with pytest.raises(ValueError, match="threads must be a whole number from 1 to 256; got 0"):
        lo.session(model, threads=0)
    with pytest.raises(TypeError, match="providers must be a list of names; got 5"):
        lo.session(model, providers=5)
    with pytest.raises(TypeError, match=r"a model must be a path, an onnx.ModelProto or an onnx_ir.Model; got int"):
        lo.session(3)
    with pytest.raises(ValueError, match=r"cannot read .*nowhere.onnx.: No such file"):
        lo.session(tmp_path / "nowhere.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(ValueError, match=r"text.onnx. is not an ONNX model"):
        lo.session(tmp_path / "text.onnx")


def test_a_model_that_onnxruntime_refuses_is_named(tmp_path):
    path = tmp_path / "odd.onnx"
    model = lo.operator_model("GridSample")
    model.graph.node[0].op_type = "NoSuchOperator"
    onnx.save(model, path)
    with pytest.raises(NotImplementedError, match=r"onnxruntime .* refuses .*odd.onnx"):
        lo.session(path)


def test_a_run_that_fails_is_one_error(tmp_path, capfd):
    nodes = [helper.make_node("Reshape", ["X", "shape"], ["Y"])]
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [7, 11])
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["N"])
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "fails", [x], [y], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    with pytest.raises(RuntimeError, match=r"onnxruntime .* failed") as caught:
        lo.session(model).run(None, {"X": np.ones(3, np.float32)})
    assert isinstance(caught.value, lo.LucidError)
    onnx.save(model, tmp_path / "fails.onnx")
    assert main(["run", str(tmp_path / "fails.onnx"), "X=[1,2,3]"]) == 2
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_inputs_with_a_default_and_of_unknown_rank_may_be_given():
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, None)
    bias = helper.make_tensor_value_info("B", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, None)
    default = helper.make_tensor("B", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph([helper.make_node("Add", ["X", "B"], ["Y"])], "bias", [x, bias], [y], [default])
    session = lo.session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    ones = np.ones((2, 3), np.float32)
    assert session.run(None, {"X": ones})[0].max() == 2
    assert session.run(None, {"X": ones, "B": np.float32([5])})[0].max() == 6


def test_sequences_go_in_and_out():
    sequence = helper.make_tensor_sequence_value_info("S", TensorProto.FLOAT, None)
    result = helper.make_tensor_sequence_value_info("T", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Identity", ["S"], ["T"])], "sequence", [sequence], [result])
    session = lo.session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    (returned,) = session.run(None, {"S": [np.ones(2, np.float32), np.ones(3, np.float32)]})
    assert [len(part) for part in returned] == [2, 3]
