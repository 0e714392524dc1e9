"""What `operator_model` returns beside its numbers: names, shapes, functions, errors."""

import re

import cells
import numpy as np
import onnx
import onnx_ir as ir
import onnxscript
import pytest
from onnxscript import GraphBuilder, build_function

import lucid_onnx as lo
from lucid_onnx.operators import (
    OPERATORS,
    TARGETS,
    affine_grid,
    affine_grid_backward,
    grid_sample,
    grid_sample_backward,
    operator_function,
)
from lucid_onnx.reference.schema import MODES, PADDING_MODES

SAMPLERS = ("GridSample", "AffineGrid")


def shape_of(value):
    """Sizes, names, and None for a dimension without either."""
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims)


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("operator", OPERATORS)
def test_holds_standard_operators_but_neither_of_the_two(operator, rank):
    model = lo.operator_model(operator, rank)
    assert {node.domain for node in model.graph.node} == {""}
    assert not {node.op_type for node in model.graph.node} & {*SAMPLERS, "If", "Loop", "Scan"}


@pytest.mark.parametrize("operator", OPERATORS)
def test_is_the_same_for_every_target(operator):
    models = {lo.operator_model(operator, target=target).SerializeToString() for target in TARGETS}
    assert len(models) == 1


def test_signature():
    model = lo.operator_model("GridSampleGrad", rank=5, mode="cubic", dtype="float16", grid_dtype="float32")
    inputs = {value.name: (shape_of(value), value.type.tensor_type.elem_type) for value in model.graph.input}
    half, single = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    assert inputs == {
        "dY": (("N", "C", "Do", "Ho", "Wo"), half),
        "X": (("N", "C", "D", "H", "W"), half),
        "grid": (("N", "Do", "Ho", "Wo", 3), single),
    }
    outputs = {value.name: (shape_of(value), value.type.tensor_type.elem_type) for value in model.graph.output}
    assert outputs == {"dX": inputs["X"], "dgrid": inputs["grid"]}


@pytest.mark.parametrize("operator", OPERATORS)
def test_known_dimensions_are_used_and_leave_no_shape_arithmetic(operator):
    shapes = {"X": (2, 3, 4, 5), "grid": (2, 6, 7, 2), "dY": (2, 3, 6, 7), "theta": (2, 2, 3), "dgrid": (2, 4, 5, 2)}
    names = [value.name for value in lo.operator_model(operator).graph.input]
    model = lo.operator_model(operator, shapes={name: shapes[name] for name in names if name in shapes})
    assert all(None not in shape_of(value) for value in model.graph.output)
    if operator.startswith("GridSample"):
        assert not {node.op_type for node in model.graph.node} & {"Shape", "Range", "Constant"}
    assert len(model.graph.node) < len(lo.operator_model(operator).graph.node)


@pytest.mark.parametrize("cell", cells.CELLS, ids=cells.cell_id)
def test_static_shapes_give_what_symbolic_ones_give(cell):
    rank, mode, padding_mode, align_corners = cell
    arguments = {"rank": rank, "mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    symbolic_model = lo.session(lo.operator_model("GridSampleGrad", **arguments))
    for shape in cells.IMAGES[rank][:2]:
        x = cells.image(shape, np.float32)
        grid = cells.grid("outside", shape, align_corners, np.float32)
        feed = {"dY": cells.grad_out(shape, np.float32), "X": x, "grid": grid}
        shapes = {name: array.shape for name, array in feed.items()}
        symbolic = symbolic_model.run(None, feed)
        static = lo.session(lo.operator_model("GridSampleGrad", **arguments, shapes=shapes)).run(None, feed)
        for ours, theirs in zip(static, symbolic, strict=True):
            # With few channels known, numbers are added one by one, and rows otherwise: in another order.
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * (1 + np.abs(theirs).max(initial=0)))


def test_numpy_integers_will_do():
    for operator in OPERATORS:
        model = lo.operator_model(operator, rank=np.int64(5), opset=np.int32(18), shapes={})
        assert model.opset_import[0].version == 18


def test_a_symbol_is_one_dimension_wherever_it_stands():
    model = lo.operator_model("GridSample", shapes={"X": (1, None, "height", 8)})
    assert [shape_of(value) for value in model.graph.input] == [(1, None, "height", 8), (1, "Ho", "Wo", 2)]
    assert shape_of(model.graph.output[0])[0] == 1


@pytest.mark.parametrize("operator", OPERATORS)
def test_as_a_function_one_node_stands_for_the_operator(operator):
    plain = lo.operator_model(operator, mode="bicubic", padding_mode="reflection")
    model = lo.operator_model(operator, mode="bicubic", padding_mode="reflection", as_function=True)
    assert [(node.domain, node.op_type) for node in model.graph.node] == [("lucid_onnx", operator)]
    assert [(f.domain, f.name) for f in model.functions] == [("lucid_onnx", operator)]
    rng = np.random.default_rng(0)
    arrays = {"X": (2, 3, 4, 5), "grid": (2, 3, 3, 2), "dY": (2, 3, 3, 3), "theta": (2, 2, 3), "dgrid": (2, 4, 5, 2)}
    names = [value.name for value in plain.graph.input]
    feed = {name: rng.standard_normal(arrays[name]).astype(np.float32) for name in names if name in arrays}
    if "size" in names:
        feed["size"] = np.array([2, 3, 4, 5])
    for ours, theirs in zip(lo.session(model).run(None, feed), lo.session(plain).run(None, feed), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_function_may_have_a_name_of_its_own():
    assert operator_function("AffineGrid", name="affine_16").name == "affine_16"


def test_values_are_named_for_what_they_hold():
    model = lo.operator_model("GridSampleGrad", padding_mode="border")
    names = {name for node in model.graph.node for name in node.output}
    assert {"x_pixel", "y_pixel", "x_slope", "y_slope"} <= names
    assert {"corner_3_pixels", "corner_3_weight", "grad_pixels", "dX", "dgrid"} <= names
    assert all(re.match(r"(x|y|corner_\d)/", node.name) for node in model.graph.node if node.name.count("/"))


def test_names_are_unique_and_inputs_are_used():
    for operator in OPERATORS:
        model = lo.operator_model(operator, rank=5)
        outputs = [name for node in model.graph.node for name in node.output]
        assert len(outputs) == len(set(outputs))
        used = {name for node in model.graph.node for name in node.input}
        assert {value.name for value in model.graph.input} <= used


def build(function, shapes, *arguments, dtype=ir.DataType.FLOAT):
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 20})
    builder = GraphBuilder(graph)
    inputs = [builder.input(f"input_{k}", dtype, shape) for k, shape in enumerate(shapes)]
    return function(builder.op, *inputs, *arguments)


X, GRID = ("N", "C", 4, "W"), ("N", "Ho", "Wo", 2)
WRONG_GRAPHS = [
    (grid_sample, [X, GRID], ("linear", "zeros", False), "grid_sample: mode must be one of.*got 'linear'"),
    (grid_sample, [X, GRID], ("bilinear", "Border", False), "padding_mode must be one of.*got 'Border'"),
    (grid_sample, [X, (*GRID[:3], 3)], ("bilinear", "zeros", False), r"grid must be \(N,Ho,Wo,2\)"),
    (grid_sample, [X, GRID[1:]], ("bilinear", "zeros", False), r"grid must be \(N,Ho,Wo,2\)"),
    (
        grid_sample,
        [(2, 3, 4, 5), (1, 6, 7, 2)],
        ("bilinear", "zeros", False),
        "same batch size; got 2 in x and 1 in grid",
    ),
    (grid_sample, [X[1:], GRID], ("bilinear", "zeros", False), r"x must be .* got shape \(\?, 4, \?\)"),
    (grid_sample, [(2, 3, 0, 5), (2, 6, 7, 2)], ("bilinear", "zeros", False), "at least one pixel along H"),
    (affine_grid, [("N", 3, 3), (4,)], (False, 4), r"theta must be \(\?, 2, 3\) for size"),
    (affine_grid, [(6,), (4,)], (False, 4), r"theta must be .*got shape \(6\)"),
    (affine_grid, [("N", 2, 3), (4,)], (False, 3), "rank must be 4 or 5; got 3"),
    (grid_sample, [None, GRID], ("bilinear", "zeros", False), "the rank of x must be known"),
]


@pytest.mark.parametrize(
    ("function", "shapes", "arguments", "message"), WRONG_GRAPHS, ids=[w[-1] for w in WRONG_GRAPHS]
)
def test_the_functions_of_the_graphs_check_what_is_known(function, shapes, arguments, message):
    with pytest.raises(ValueError, match=message):
        build(function, shapes, *arguments)


@pytest.mark.parametrize(
    ("function", "shapes", "arguments", "dtype", "message"),
    [
        (grid_sample, [X, GRID], (), ir.DataType.UINT8, "grid_sample: x must be one of float16.*got uint8"),
        (grid_sample, [X, GRID], ("nearest", "zeros", "False"), ir.DataType.FLOAT, "align_corners must be True, False"),
        (affine_grid, [("N", 2, 3), (4,)], (), ir.DataType.INT64, "affine_grid: theta must be one of.*got int64"),
    ],
)
def test_the_functions_of_the_graphs_check_dtypes(function, shapes, arguments, dtype, message):
    with pytest.raises(TypeError, match=message):
        build(function, shapes, *arguments, dtype=dtype)


def test_the_gradients_check_the_upstream_gradient():
    with pytest.raises(ValueError, match=r"sample_backward: grad_out must have .*\(1, 1, 3, 3\); got \(7, 5, 3, 3\)"):
        build(grid_sample_backward, [(7, 5, 3, 3), (1, 1, 4, 4), (1, 3, 3, 2)])
    with pytest.raises(ValueError, match=r"affine_grid_backward: grad_grid must have .*2\); got \(\?, 4, 4, 5\)"):
        build(affine_grid_backward, [("N", 4, 4, 5), (4,)])


def test_calls_on_one_plain_builder_have_names_of_their_own():
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 20}, name="twice")
    builder = GraphBuilder(graph)
    x = builder.input("points", ir.DataType.FLOAT, ["N", 1, "H", "W"])
    builder.input("points_1", ir.DataType.FLOAT, [1])
    theta = builder.input("theta", ir.DataType.FLOAT, ["N", 2, 3])
    op = builder.op
    for _ in range(2):
        grid = affine_grid(op, theta, op.Shape(x))
        y = grid_sample(op, x, grid, "bicubic")
        gradients = grid_sample_backward(op, y, x, grid, "nearest")
    for k, value in enumerate((y, *gradients)):
        builder.add_output(value, f"output_{k}")
    onnx.checker.check_model(ir.to_proto(ir.Model(graph, ir_version=9)), full_check=True)


def test_build_function_takes_them_too():
    values = [
        ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["N", 1, "H", "W"])),
        ir.Value(name="grid", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["N", "Ho", "Wo", 2])),
    ]
    function = build_function(grid_sample, values, domain="mine", name="sample", opset_imports={"": 20})
    assert len(function.outputs) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("mode", "padding_mode"), [("bilinear", "border"), ("nearest", "zeros"), ("bicubic", "reflection")]
)
def test_torch_onnx_takes_them_as_translations(tmp_path, mode, padding_mode, dtype):
    torch = pytest.importorskip("torch", reason="PyTorch is what exports")
    op = onnxscript.opset20

    class Sample(torch.nn.Module):
        def forward(self, x, grid):
            return torch.nn.functional.grid_sample(x, grid, mode, padding_mode, align_corners=True)

    def translation(x, grid, interpolation: int, padding: int, align_corners: bool):
        return grid_sample(op, x, grid, MODES[interpolation], PADDING_MODES[padding], align_corners)

    inputs = tuple(
        tensor.to(getattr(torch, dtype)) for tensor in (torch.randn(1, 2, 4, 5), torch.rand(1, 3, 3, 2) * 3 - 1.5)
    )
    table = {torch.ops.aten.grid_sampler.default: translation, torch.ops.aten.grid_sampler_2d.default: translation}
    program = torch.onnx.export(Sample(), inputs, dynamo=True, custom_translation_table=table, verbose=False)
    program.save(tmp_path / "model.onnx")
    assert "GridSample" not in {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    session = lo.session(tmp_path / "model.onnx")
    names = [node.name for node in session.get_inputs()]
    (y,) = session.run(None, dict(zip(names, (tensor.numpy() for tensor in inputs), strict=True)))
    np.testing.assert_allclose(y, Sample()(*inputs).numpy(), atol=1e-5)


def test_large_static_shapes_are_not_computed_beforehand():
    model = lo.operator_model("GridSample", shapes={"X": (1, 3, 9000, 9000), "grid": (1, 9000, 9000, 2)})
    assert model.ByteSize() < 100_000


WRONG = [
    ({"operator": "Resize"}, ValueError, "operator must be one of 'GridSample'.*got 'Resize'"),
    ({"rank": 3}, ValueError, "rank must be 4 or 5; got 3"),
    ({"mode": "trilinear"}, ValueError, "mode must be one of.*got 'trilinear'"),
    ({"padding_mode": "wrap"}, ValueError, "padding_mode must be one of.*got 'wrap'"),
    ({"dtype": "int8"}, TypeError, "dtype must be one of float16.*got int8"),
    ({"grid_dtype": "float8"}, TypeError, "grid_dtype must be one of float16.*got float8"),
    ({"opset": 15}, NotImplementedError, "opset must be 16 or newer; got 15"),
    ({"opset": 999}, NotImplementedError, "opset 999 is newer than the installed onnx .* knows"),
    ({"target": "abacus"}, ValueError, "target must be one of 'onnxruntime-cpu'.*got 'abacus'"),
    ({"shapes": {"x": (1, 1, 2, 2)}}, ValueError, "shapes names 'x'; the inputs are X, grid"),
    ({"shapes": {"X": (1, 1, 2)}}, ValueError, r"X must be .*got \(1, 1, 2\)"),
    ({"shapes": {"X": (1, 1, -2, 2)}}, ValueError, "shape of X must hold integers from 0 up.*-2"),
    ({"shapes": {"X": (1, 1, 2.5, 2)}}, ValueError, "shape of X must hold integers from 0 up.*2.5"),
    ({"shapes": {"X": 5}}, ValueError, "shape of X must hold integers from 0 up.*got 5"),
    ({"dtype": None}, TypeError, "dtype must be one of float16.*got None"),
    ({"mode": ["bilinear"]}, ValueError, "mode must be one of"),
    ({"rank": [4]}, ValueError, "rank must be 4 or 5"),
    ({"opset": "20"}, TypeError, "opset must be an integer; got '20'"),
    ({"align_corners": "False"}, TypeError, "align_corners must be True, False or None; got 'False'"),
    ({"shapes": {"grid": (1, 2, 2, 3)}}, ValueError, r"grid must be .*got \(1, 2, 2, 3\)"),
    ({"shapes": {"X": (1, 1, 2, 2), "grid": (2, 3, 3, 2)}}, ValueError, "N is 2 in grid .* but 1 in another input"),
    ({"shapes": {"X": (1, 1, 0, 2)}}, ValueError, "at least one pixel along H"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG, ids=[str(arguments) for arguments, *_ in WRONG])
def test_wrong_arguments_say_what_was_expected(arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        lo.operator_model(**{"operator": "GridSample", **arguments})
    assert isinstance(caught.value, lo.LucidError)
