"""Models keep all they hold when they are read and written; what would be lost or is not valid is refused."""

import errno
import os

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from rich_models import branch, external, given_as, listing, normal, rich_model, tensor, with_weights

from lucid_onnx import ArgumentError, DtypeError, UnsupportedError
from lucid_onnx.files import write_model
from lucid_onnx.model_files import read_model, write_ir


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return with_weights(tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["path", "proto", "ir"])
@pytest.mark.parametrize("place", [tensor, external])
def test_a_model_that_is_read_and_written_stays_what_it_was(folder, kind, place):
    model = rich_model(place)
    source = read_model(model) if kind == "ir" else given_as(kind, model, folder)
    write_ir(read_model(source), folder / "out.onnx")
    assert normal(onnx.load(folder / "out.onnx", load_external_data=False)) == normal(model)


@pytest.mark.parametrize("kind", ["proto", "ir"])
def test_rewriting_what_was_read_leaves_the_source_alone(folder, kind):
    source = given_as(kind, rich_model(), folder)
    before = normal(source if kind == "proto" else ir.to_proto(source))
    model = read_model(source)
    for graph in model.graphs():
        for value in [*graph.initializers.values(), *graph.inputs, *(o for node in graph for o in node.outputs)]:
            value.name = f"new_{value.name}"
            value.metadata_props["new"] = "new"
            value.type and setattr(value.type, "denotation", "new")
    model.functions[("own", "Scale", "fast")].opset_imports["new"] = 1
    model.opset_imports["new"] = model.ir_version = 12
    model.graph.node("total").attributes.add(ir.AttrInt64("new", 1))
    assert normal(source if kind == "proto" else ir.to_proto(source)) == before


def test_a_lazy_tensor_of_the_source_is_not_evaluated(folder):
    def never():
        raise AssertionError

    lazy = ir.LazyTensor(never, dtype=ir.DataType.FLOAT, shape=ir.Shape([3]), name="b")
    source = read_model(rich_model())
    source.graph.initializers["b"].const_value = lazy
    source.graph.node("constant").attributes.add(ir.AttrTensor("value", lazy))
    assert read_model(source).graph.initializers["b"].const_value is not lazy


def test_a_source_that_is_out_of_order_is_refused():
    source = read_model(rich_model())
    source.graph.insert_before(source.graph.node("constant"), source.graph.node("total"))
    with pytest.raises(ArgumentError, match="read_model: the model has nodes out of order"):
        read_model(source)


def test_a_relative_path_holds_when_the_current_folder_changes(folder, monkeypatch):
    write_model(rich_model(external), "model.onnx")
    model = read_model("model.onnx")
    monkeypatch.chdir(folder.parent)
    assert model.graph.initializers["b"].const_value.numpy().shape == (3,)


def test_the_default_domain_has_one_name():
    model = helper.make_model(branch("g", helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")), ir_version=10)
    model.opset_import[0].domain, version = "ai.onnx", model.opset_import[0].version
    assert read_model(model).opset_imports == {"": version}


def cut(model):
    return model.SerializeToString()[:-30]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (lambda model: b"", "it has no graph"),
        (lambda model: b"This is no model.\n" * 9, "it cannot be parsed"),
        (lambda model: bytes(range(256)), "it cannot be parsed"),
        (cut, "it cannot be parsed"),
        (lambda model: onnx.ModelProto(ir_version=8).SerializeToString(), "it has no graph"),
        (lambda model: onnx.ModelProto(graph=model.graph).SerializeToString(), "it imports no operator set"),
    ],
    ids=["empty", "text", "bytes", "truncated", "no graph", "no opset"],
)
def test_what_is_no_model_is_refused_with_its_path(tmp_path, content, problem):
    path = tmp_path / "model.onnx"
    path.write_bytes(content(rich_model()))
    with pytest.raises(ArgumentError, match=rf"^lower: '.*model.onnx' is not .*{problem}"):
        read_model(path, "lower")


def test_what_is_too_large_for_a_protobuf_is_not_read(tmp_path):
    path = tmp_path / "model.onnx"
    path.touch()
    os.truncate(path, 2**31)
    with pytest.raises(ArgumentError, match=r"model.onnx' is not an ONNX model: it is larger than the 2 GB"):
        read_model(path)


@pytest.mark.parametrize(("name", "problem"), [("none.onnx", "No such file"), ("", "Is a directory")])
def test_what_cannot_be_read_is_refused_with_its_path(tmp_path, name, problem):
    with pytest.raises(ArgumentError, match=f"cannot read .*{name}.: {problem}"):
        read_model(tmp_path / name)


def test_what_is_no_source_is_refused():
    with pytest.raises(DtypeError, match=r"must be a path, .*; got int"):
        read_model(3)


def sparse():
    values, indices = helper.make_tensor("s", 1, [1], [1.0]), helper.make_tensor("i", 7, [1], [0])
    return helper.make_sparse_tensor(values, indices, [3])


def lose(what):
    """A model with something that the representation would drop."""
    model = rich_model()
    map_of_texts = helper.make_tensor_type_proto(TensorProto.STRING, [])
    match what:
        case "sparse initializers":
            model.graph.sparse_initializer.append(sparse())
        case "training information":
            model.training_info.add()
        case "a sparse tensor":
            model.graph.node[0].attribute.append(helper.make_attribute("sparse_value", sparse()))
        case "a map type":
            model.graph.input[0].type.CopyFrom(helper.make_map_type_proto(TensorProto.INT64, map_of_texts))
        case "a segment":
            model.graph.initializer[0].segment.end = 1
        case "IR version":
            model.ir_version = onnx.IR_VERSION + 1
    return model


@pytest.mark.parametrize(
    "what",
    ["sparse initializers", "training information", "a sparse tensor", "a map type", "a segment", "IR version"],
)
def test_what_would_be_lost_is_refused(what):
    with pytest.raises(UnsupportedError, match=f"the model h.* {what}"):
        read_model(lose(what))


def spoil(what):
    """A model that is not valid."""
    model = rich_model()
    match what:
        case "initializers without a name":
            model.graph.initializer[0].name = ""
        case "initializers .*two of one name":
            model.graph.initializer[0].name = "b"
        case "without a type":
            model.graph.node[0].attribute[0].ClearField("type")
        case "unknown dtype 99":
            model.graph.initializer[0].data_type = 99
        case "functions .*two of one name":
            model.functions.append(model.functions[0])
        case "attributes .*two of one name":
            model.graph.node[0].attribute.append(model.graph.node[0].attribute[0])
        case "holds none":
            model.graph.node[0].attribute[0].ClearField("t")
        case "redeclared":
            model.graph.node[0].output[0] = "y"
    return model


@pytest.mark.parametrize(
    "what",
    [
        "initializers without a name",
        "initializers .*two of one name",
        "functions .*two of one name",
        "attributes .*two of one name",
        "holds none",
        "without a type",
        "unknown dtype 99",
        "redeclared",
    ],
)
def test_what_is_not_valid_is_refused(what):
    with pytest.raises(ArgumentError, match=f"the model .*{what}"):
        read_model(spoil(what))


def test_a_model_too_large_for_a_protobuf_is_refused(folder):
    model = read_model(rich_model())
    array = np.broadcast_to(np.float32(0), (2**29,))
    model.graph.initializers["b"].const_value = ir.Tensor(array, name="b")
    with pytest.raises(ArgumentError, match=r"cannot write 'out.onnx': the embedded tensors exceed the 2 GB"):
        write_ir(model, "out.onnx")
    assert listing(folder) == ["weights.bin"]


def test_a_model_that_cannot_take_its_place_leaves_an_older_data_file_alone(folder, monkeypatch):
    def refuse(source, target, replace=os.replace):
        if os.fspath(target).endswith(".onnx"):
            raise PermissionError(errno.EACCES, "Permission denied")
        replace(source, target)

    model = read_model(given_as("path", rich_model(external), folder))
    (folder / "out").mkdir()
    for name in ("out.onnx", "out.onnx.data"):
        (folder / "out" / name).write_text("old")
    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ArgumentError, match=r"cannot write 'out/out.onnx': Permission denied"):
        write_ir(model, "out/out.onnx")
    assert {path.name: path.read_text() for path in (folder / "out").iterdir()} == {
        "out.onnx": "old",
        "out.onnx.data": "old",
    }


def test_behind_a_link_the_data_lies_beside_the_model_itself(folder):
    model = read_model(given_as("path", rich_model(external), folder))
    for name in ("out", "real"):
        (folder / name).mkdir()
    (folder / "out" / "link.onnx").symlink_to("../real/new.onnx")
    write_ir(model, "out/link.onnx")
    assert (folder / "out" / "link.onnx").is_symlink()
    assert listing(folder / "real") == ["new.onnx", "new.onnx.data"]
    assert read_model("real/new.onnx").graph.initializers["b"].const_value.numpy().shape == (3,)
