"""Data outside of a model is found and checked when the model is read, and kept outside when it is written."""

import errno
import os

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, numpy_helper
from rich_models import external, given_as, listing, rich_model, tensor, with_weights

from lucid_onnx import ArgumentError
from lucid_onnx.files import write_model
from lucid_onnx.model_files import read_model, write_ir


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return with_weights(tmp_path, monkeypatch)


HOLDERS = ["b", "inner", "attribute", "function"]


def with_data(holder, **place):
    """A model one tensor of which has its data elsewhere."""

    def choose(name, count):
        chosen = {"k": "function", "": "attribute"}.get(name, name) == holder
        return tensor(name, count, **place) if chosen else tensor(name, count)

    return rich_model(choose)


@pytest.mark.parametrize("kind", ["path", "proto", "ir"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_missing_data_is_refused_wherever_its_tensor_is(folder, kind, holder):
    source = given_as(kind, with_data(holder, location="none.bin"), folder)
    with pytest.raises(ArgumentError, match=r"the data of .*tensor.* is looked for in '.*none.bin': No such file"):
        read_model(source)


def lay(folder):
    (folder / "sub").mkdir()
    (folder / "link.bin").symlink_to("weights.bin")
    (folder / "linked").symlink_to("sub")
    for name in ("sub/weights.bin", "hard.bin"):
        (folder / name).write_bytes(bytes(64))
    os.link(folder / "hard.bin", folder / "hard2.bin")


@pytest.mark.parametrize("kind", ["path", "proto", "ir"])
@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ({"location": "/weights.bin"}, "must be a path inside the folder of the model"),
        ({"location": "../weights.bin"}, "must be a path inside the folder of the model"),
        ({"location": "sub/../../weights.bin"}, "must be a path inside the folder of the model"),
        ({"location": ""}, "must be a path inside the folder of the model"),
        ({"location": "link.bin"}, "it is a link"),
        ({"location": "linked/weights.bin"}, "it is a link"),
        ({"location": "hard.bin"}, "it is a link"),
        ({"location": "sub"}, "it is not an ordinary file"),
        ({"location": "weights.bin", "offset": 16384}, "the file has 16384 bytes, and the tensor ends at 16396"),
        ({"location": "weights.bin", "length": 8}, "its length is 8 bytes, and its shape needs 12"),
        ({"location": "weights.bin", "dtype": TensorProto.STRING}, "a tensor of STRING cannot be external"),
    ],
)
def test_data_that_onnx_would_not_read_is_refused(folder, kind, place, problem):
    lay(folder)
    source = given_as(kind, with_data("b", **place), folder)
    with pytest.raises(ArgumentError, match=f"the data of tensor 'b' is looked for in '.*': .*{problem}"):
        read_model(source)


def tensors_of(path):
    """All numbers of a model as onnx itself loads them."""
    model = onnx.load(path)
    bodies = [model.graph, model.graph.node[2].attribute[0].g]
    nodes = [*model.graph.node, *model.functions[0].node]
    constants = {node.output[0]: node.attribute[0].t for node in nodes if node.op_type == "Constant"}
    found = {t.name: t for body in bodies for t in body.initializer if t.data_type == TensorProto.FLOAT} | constants
    return {name: numpy_helper.to_array(t).tolist() for name, t in found.items()}


def test_a_model_is_replaced_where_its_data_lies(folder):
    write_model(rich_model(external), "model.onnx")
    before = (folder / "weights.bin").stat()
    numbers = tensors_of("model.onnx")
    write_ir(read_model("model.onnx"), "model.onnx")
    assert listing(folder) == ["model.onnx", "weights.bin"]
    assert (folder / "weights.bin").stat() == before
    assert tensors_of("model.onnx") == numbers


def test_data_named_after_the_output_stays_where_the_output_replaces_the_input(folder):
    os.rename("weights.bin", "model.onnx.data")
    write_model(with_data("b", location="model.onnx.data", offset=8), "model.onnx")
    write_ir(read_model("model.onnx"), "model.onnx")
    assert listing(folder) == ["model.onnx", "model.onnx.data"]
    assert tensors_of("model.onnx")["b"] == [2, 3, 4]


@pytest.mark.parametrize("already", [False, True], ids=["new", "replaced"])
def test_elsewhere_all_data_goes_into_one_file(folder, already):
    write_model(rich_model(external), "model.onnx")
    (folder / "out").mkdir()
    if already:
        (folder / "out" / "new.onnx.data").write_bytes(b"old")
    numbers = tensors_of("model.onnx")
    model = read_model("model.onnx")
    before = ir.to_proto(model)
    write_ir(model, folder / "out" / "new.onnx")
    assert listing(folder / "out") == ["new.onnx", "new.onnx.data"]
    assert tensors_of("out/new.onnx") == numbers
    assert tensors_of("model.onnx") == numbers
    assert ir.to_proto(model) == before


def test_only_external_tensors_are_copied_and_shared_ones_once(folder):
    places = {"a": 4, "b": 4, "w": 8}
    model = rich_model(lambda name, count: tensor(name, count, "weights.bin" if name in places else None))
    for proto in model.graph.initializer:
        for entry in proto.external_data:
            entry.value = str(places[proto.name]) if entry.key == "offset" else entry.value
    write_model(model, "model.onnx")
    (folder / "out").mkdir()
    write_ir(read_model("model.onnx"), "out/new.onnx")
    written = read_model("out/new.onnx")
    external = {
        t.name: t.offset for t in written.graph.initializers.values() for t in [t.const_value] if t.name in places
    }
    assert external == {"w": 0, "b": 64, "a": 64}
    assert (folder / "out" / "new.onnx.data").read_bytes() == np.float32([2, 3, 4]).tobytes() + bytes(52) + np.float32(
        [1, 2, 3]
    ).tobytes()
    assert not isinstance(written.graph.node("constant").attributes["value"].value, ir.ExternalTensor)


def test_large_tensors_start_on_a_page(folder):
    count = 2**18
    (folder / "weights.bin").write_bytes(np.arange(count + 1, dtype=np.float32).tobytes())
    model = rich_model(
        lambda name, _: tensor(name, count if name == "b" else 3, "weights.bin", offset=4 * (name == "b"))
    )
    write_model(model, "model.onnx")
    (folder / "out").mkdir()
    write_ir(read_model("model.onnx"), "out/new.onnx")
    (large,) = (v.const_value for v in read_model("out/new.onnx").graph.initializers.values() if v.name == "b")
    assert large.offset == 4096
    assert large.numpy()[[0, -1]].tolist() == [1, count]


def test_more_than_two_gigabytes_are_neither_loaded_nor_copied(folder):
    size = 3 * 2**30
    os.truncate("weights.bin", size)
    with open("weights.bin", "r+b") as file:
        file.seek(size - 12)
        file.write(np.float32([7, 8, 9]).tobytes())
    write_model(with_data("b", location="weights.bin", offset=size - 12), "model.onnx")
    model = read_model("model.onnx")
    model.graph.initializers["huge"] = ir.Value(
        name="huge",
        const_value=ir.ExternalTensor(
            "weights.bin", 0, size, ir.DataType.FLOAT, shape=ir.Shape([size // 4]), name="huge", base_dir=folder
        ),
    )
    before = (folder / "weights.bin").stat()
    write_ir(model, "out.onnx")
    assert all(model.graph.initializers[name].const_value.raw is None for name in ("huge", "b"))
    assert (folder / "weights.bin").stat() == before
    assert (folder / "out.onnx").stat().st_size < 10_000
    written = read_model("out.onnx").graph.initializers
    assert written["huge"].const_value.nbytes == size
    assert written["b"].const_value.numpy().tolist() == [7, 8, 9]


@pytest.mark.parametrize("target", ["weights.bin", "sub/out.onnx"])
def test_what_would_destroy_data_of_the_model_is_refused(folder, target):
    (folder / "sub").mkdir()
    (folder / "sub" / "out.onnx.data").write_bytes(bytes(range(64)))
    location = "weights.bin" if target == "weights.bin" else "sub/out.onnx.data"
    write_model(with_data("b", location=location), "model.onnx")
    before = listing(folder), (folder / location).read_bytes()
    with pytest.raises(ArgumentError, match="it holds data of the model itself"):
        write_ir(read_model("model.onnx"), target)
    assert (listing(folder), (folder / location).read_bytes()) == before


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("none/out.onnx", tensor),
        ("none/out.onnx", external),
        ("taken", tensor),
        ("taken", external),
        ("taken.onnx", external),
    ],
)
def test_a_destination_that_cannot_be_written_leaves_nothing_behind(folder, place, target):
    (folder / "out" / "taken").mkdir(parents=True)
    (folder / "out" / "taken.onnx.data").mkdir()
    model = read_model(given_as("path", rich_model(place), folder))
    before = listing(folder)
    with pytest.raises(ArgumentError, match="cannot write 'out/"):
        write_ir(model, f"out/{target}")
    assert listing(folder) == before


@pytest.mark.parametrize(("owner", "step"), [(ir.ExternalTensor, "tofile"), (os, "replace")])
def test_a_disk_that_fills_up_leaves_what_was_there(folder, monkeypatch, owner, step):
    def fill(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    model = read_model(given_as("path", rich_model(external), folder))
    (folder / "out").mkdir()
    for name in ("out.onnx", "out.onnx.data"):
        (folder / "out" / name).write_text("old")
    monkeypatch.setattr(owner, step, fill)
    with pytest.raises(ArgumentError, match=r"cannot write 'out/out.onnx.*No space left"):
        write_ir(model, "out/out.onnx")
    assert listing(folder / "out") == ["out.onnx", "out.onnx.data"]
    assert {path.read_text() for path in (folder / "out").iterdir()} == {"old"}
