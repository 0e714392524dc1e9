"""Words of the command line to inputs, outputs to files: every kind of model, damaged files, odd names."""

import json

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import lucid_onnx as lo
from lucid_onnx.feeding import read_inputs, write_outputs

image = pytest.importorskip("PIL.Image", reason="pictures need Pillow")

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def identity(dtype, name="X", shape=("N", "C", "H", "W")):
    """A model that returns its input."""
    value, result = (helper.make_tensor_value_info(n, dtype, shape) for n in (name, "Y"))
    graph = helper.make_graph([helper.make_node("Identity", [name], ["Y"])], "identity", [value], [result])
    return lo.session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "picture.png"
    image.fromarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3) * 4).save(path)
    return path


def test_a_picture_for_uint8_runs_to_255_and_comes_out_the_same(tmp_path, picture):
    session = identity(TensorProto.UINT8)
    feed = read_inputs(session, [str(picture)])
    assert (feed["X"].dtype, feed["X"].max()) == (np.uint8, 236)
    write_outputs(str(tmp_path / "out.png"), dict(zip(["Y"], session.run(None, feed), strict=True)))
    with image.open(picture) as before, image.open(tmp_path / "out.png") as after:
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))


def test_a_picture_for_other_integers_is_refused(picture):
    with pytest.raises(lo.ArgumentError, match="'X' is of int64; a picture is of uint8 or of floats"):
        read_inputs(identity(TensorProto.INT64), [str(picture)])


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_a_picture_for_any_float(picture, dtype):
    session = identity(dtype)
    feed = read_inputs(session, [f"X={picture}"])
    np.testing.assert_array_equal(session.run(None, feed)[0], feed["X"])
    assert feed["X"].max() <= 1


def test_bfloat16_survives_numpys_files(tmp_path):
    session = identity(TensorProto.BFLOAT16)
    array = np.arange(4).reshape(1, 1, 2, 2).astype(BFLOAT16)
    np.savez(tmp_path / "in.npz", X=array)
    np.save(tmp_path / "x.npy", array)
    for word in (str(tmp_path / "in.npz"), f"X={tmp_path / 'x.npy'}"):
        (result,) = session.run(None, read_inputs(session, [word]))
        np.testing.assert_array_equal(result, array)
    write_outputs(str(tmp_path / "out.NPZ"), {"Y": result})
    with np.load(tmp_path / "out.NPZ") as stored:
        assert stored["Y"].dtype == np.float32
        np.testing.assert_array_equal(stored["Y"], array.astype(np.float32))


@pytest.mark.parametrize("word", ["X=[[[[300]]]]", "X=[[[[-1]]]]", "X=[[1], [1, 2]]", "X=" + "[" * 5000, "X=one"])
def test_json_that_does_not_fit_is_refused(word):
    with pytest.raises(lo.ArgumentError, match="nor JSON"):
        read_inputs(identity(TensorProto.UINT8), [word])


def test_json_that_overflows_half_precision_is_refused():
    with pytest.raises(lo.ArgumentError, match="nor JSON"):
        read_inputs(identity(TensorProto.FLOAT16), ["X=[[[[1e6]]]]"])


def test_damaged_archives_are_refused(tmp_path):
    path = tmp_path / "in.npz"
    np.savez_compressed(path, X=np.arange(1000.0))
    whole = path.read_bytes()
    session = identity(TensorProto.FLOAT)
    for damaged in (whole[: len(whole) // 2], whole[:60] + b"\xff" * 8 + whole[68:], b"PK\x03\x04", b""):
        path.write_bytes(damaged)
        with pytest.raises(lo.ArgumentError, match=r"in.npz. is "):
            read_inputs(session, [str(path)])


def test_names_may_hold_an_equals_sign_and_come_once():
    session = identity(TensorProto.FLOAT, "a=b", ("N",))
    assert read_inputs(session, ["a=b=[1,2]"])["a=b"].tolist() == [1, 2]
    with pytest.raises(lo.ArgumentError, match="'a=b' is given twice"):
        read_inputs(session, ["a=b=[1]", "a=b=[2]"])


def test_an_initializer_may_be_given():
    x, w = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xw")
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    default = helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 1.0, 1.0])
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "weighted", [x, w], [y], [default])
    session = lo.session(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9))
    (result,) = session.run(None, read_inputs(session, ["x=[1,2,3]", "w=[2,2,2]"]))
    assert result.tolist() == [2, 4, 6]


def test_outputs_may_have_any_name(tmp_path):
    arrays = {name: np.ones(2) for name in ("file", "allow_pickle", "args", "Y")}
    write_outputs(str(tmp_path / "out.npz"), arrays)
    with np.load(tmp_path / "out.npz") as stored:
        assert set(stored.files) == set(arrays)
    write_outputs(str(tmp_path / "one.npz"), arrays, "Y")
    with np.load(tmp_path / "one.npz") as stored:
        assert stored.files == ["Y"]


@pytest.mark.parametrize("result", [["a", "list"], np.array(["text"], dtype=object)])
def test_what_is_no_tensor_of_numbers_is_not_written(tmp_path, result):
    with pytest.raises(lo.ArgumentError, match="'Y' is no tensor of numbers"):
        write_outputs(str(tmp_path / "out.npz"), {"Y": result})
    assert not list(tmp_path.iterdir())


def test_the_summary_of_a_run_is_json(tmp_path, capsys):
    from lucid_onnx.cli import main

    lo.export("affine_warp", tmp_path / "warp.onnx")
    np.savez(tmp_path / "in.npz", X=np.ones((1, 1, 2, 2), "f"), theta=np.float32([[[1, 0, 0], [0, 1, 0]]]))
    assert main(["run", str(tmp_path / "warp.onnx"), str(tmp_path / "in.npz"), "--json"]) == 0
    outputs = json.loads(capsys.readouterr().out)["outputs"]
    assert outputs == {"Y": {"shape": [1, 1, 2, 2], "dtype": "float32", "min": 1.0, "max": 1.0}}
    assert main(["run", str(tmp_path / "warp.onnx"), "X=[[[[1]]]]", "theta=[[[1,0,0],[0,1,NaN]]]", "--json"]) == 0
    strict = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert strict["outputs"]["Y"]["max"] == "nan"
