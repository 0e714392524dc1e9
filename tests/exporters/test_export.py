"""`export` of modules that are not ours, and what it refuses."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnxscript import nn

import lucid_onnx as lo
from lucid_onnx.operators import affine_grid, grid_sample


class Shear(nn.Module):
    """A module as a user would write it: two samplings, and an output that is an input."""

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter((1, 2, 3), data=ir.tensor(np.float32([[[1, 0.5, 0], [0, 1, 0]]])))

    def forward(self, op, x):
        grid = affine_grid(op, self.theta, op.Shape(x), False, 4)
        once = grid_sample(op, x, grid, "bilinear", "border", False)
        return once, grid_sample(op, once, grid, "bilinear", "border", False), x


class Unfilled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((3,))

    def forward(self, op, x):
        return op.Mul(x, self.weight)


def test_a_module_of_the_users_own(tmp_path):
    shear = Shear()
    for attempt in range(2):  # a module can be exported again
        path = tmp_path / f"{attempt}.onnx"
        lo.export(shear, path, inputs={"grid": (1, "C", "H", "W")}, outputs=["once", "x_pixel", "same"])
        x = np.random.default_rng(0).standard_normal((1, 2, 4, 5)).astype(np.float32)
        once, twice, same = lo.session(path).run(["once", "x_pixel", "same"], {"grid": x})
        grid = lo.affine_grid(np.float32([[[1, 0.5, 0], [0, 1, 0]]]), x.shape)
        expected = lo.grid_sample(x, grid, padding_mode="border")
        np.testing.assert_allclose(once, expected, atol=1e-5)
        np.testing.assert_allclose(twice, lo.grid_sample(expected, grid, padding_mode="border"), atol=1e-5)
        np.testing.assert_array_equal(same, x)
        assert [value.name for value in onnx.load(path).graph.initializer if value.name == "theta"]


def test_outputs_have_names_of_their_own_accord(tmp_path):
    model = lo.export(Shear(), tmp_path / "shear.onnx", inputs={"x": (1, 1, 4, 4)})
    assert [value.name for value in model.graph.output] == ["Y0", "Y1", "Y2"]


class Returning(nn.Module):
    """A module whose ``forward`` returns what it is told to."""

    def __init__(self, returned):
        super().__init__()
        self.returned = returned

    def forward(self, op, x):
        return self.returned(op, x)


@pytest.mark.parametrize(
    "returned",
    [
        lambda op, x: [op.Relu(x)] * 2,
        lambda op, x: (op.Relu(x), op.Relu(x)),
        lambda op, x: (lambda y: (y, op.Identity(y)))(op.Relu(x)),
        lambda op, x: (op.Relu(x), op.Relu(op.Identity(x))),
        lambda op, x: (x, x),
        lambda op, x: (op.Identity(x), x),
    ],
)
def test_outputs_keep_their_names_even_if_they_are_one_value(tmp_path, returned):
    path = tmp_path / "model.onnx"
    model = lo.export(Returning(returned), path, inputs={"x": ("N",)}, outputs=["a", "b"])
    assert [value.name for value in model.graph.output] == ["a", "b"]
    x = np.float32([1, 2])
    for result in lo.session(path).run(["a", "b"], {"x": x}):
        np.testing.assert_array_equal(result, x)


def test_a_model_of_the_zoo_keeps_its_shapes_under_other_names(tmp_path):
    model = lo.export("stn", tmp_path / "stn.onnx", outputs=["scores", "map"])
    shapes = {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.output}
    assert shapes == {"scores": ["N", 10], "map": ["N", 2, 3]}


WRONG = [
    (lambda path: lo.export(Returning(lambda op, x: None), path, inputs={"x": (3,)}), TypeError, "got NoneType"),
    (lambda path: lo.export(Returning(lambda op, x: ()), path, inputs={"x": (3,)}), TypeError, "got nothing"),
    (lambda path: lo.export(Returning(lambda op, x: {"y": x}), path, inputs={"x": (3,)}), TypeError, "got dict"),
    (
        lambda path: lo.export(Shear(), path, inputs={"x": (1, 1, 4, 4), "y": (1,)}),
        ValueError,
        "does not take op, x, y",
    ),
    (lambda path: lo.export(Shear(), path, inputs={"x": (1.5, 3)}), ValueError, "shape of x must hold integers"),
    (
        lambda path: lo.export(Shear(), path, inputs={"theta": (1, 1, 4, 4)}),
        ValueError,
        "names of their own; got 'theta'",
    ),
    (
        lambda path: lo.export(Shear(), path, inputs={"x": (1, 1, 4, 4)}, outputs=["a", "a", "x"]),
        ValueError,
        "names of their own; got 'a', 'x'",
    ),
    (lambda path: lo.export("stn", path, outputs=[5, 6]), TypeError, "names of inputs and outputs are strings"),
    (lambda path: lo.export(Shear(), path, inputs=[("x", (1,))]), TypeError, "inputs must be a mapping.*got list"),
    (lambda path: lo.export("stn", path, inputs={"X": (1, 3, 28, 28)}), ValueError, "'stn' knows its inputs"),
    (lambda path: lo.export("resnet", path), ValueError, "a model's name must be one of 'affine_warp'.*got 'resnet'"),
    (lambda path: lo.export(3, path), TypeError, "source must be a name of the zoo .* got int"),
    (lambda path: lo.export("stn", path, opset=15), NotImplementedError, "opset must be 16 or newer"),
    (lambda path: lo.export("stn", path, target="abacus"), ValueError, "target must be one of"),
    (lambda path: lo.export(Shear(), path), ValueError, "Shear does not say what its inputs are; name them"),
    (
        lambda path: lo.export(Shear(), path, inputs={"x": (1, 1, 4, 4)}, outputs=["y"]),
        ValueError,
        "returns 3 outputs, but 1 are named",
    ),
    (lambda path: lo.export(Shear(), path, mode="bicubic"), ValueError, "made already has no argument mode"),
    (lambda path: lo.export(Unfilled(), path, inputs={"x": (3,)}), ValueError, "parameters without values: weight"),
    (lambda path: lo.export("stn", path / "no" / "folder.onnx"), ValueError, "cannot write .*No such file"),
    (lambda path: lo.export("stn", path.parent), ValueError, "cannot write .*it is a folder"),
]


@pytest.mark.parametrize(("call", "error", "message"), WRONG, ids=[message for *_, message in WRONG])
def test_what_is_refused_leaves_no_file(tmp_path, call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(tmp_path / "model.onnx")
    assert isinstance(caught.value, lo.LucidError)
    assert not list(tmp_path.iterdir())


def test_a_model_too_large_for_a_protobuf_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx.checker, "MAXIMUM_PROTOBUF", 1000)
    with pytest.raises(lo.ArgumentError, match="larger than the 2 GB that a protobuf holds"):
        lo.export("stn", tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"precious")
    with pytest.raises(ValueError, match="without values"):
        lo.export(Unfilled(), path, inputs={"x": (3,)})
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]
