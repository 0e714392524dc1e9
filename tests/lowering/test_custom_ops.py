"""Custom operators that a mapping names: by domain, by ONNX's strings and by PyTorch's codes."""

import numpy as np
import pytest
from lowering.sampling import left, operators, parsed, run
from onnx import TensorProto, helper, numpy_helper

from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference import affine_grid, grid_sample
from lucid_onnx.reference.schema import MODES, PADDING_MODES, ArgumentError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 2, 5, 4)).astype(np.float32)
GRID = RNG.uniform(-1.3, 1.3, (2, 3, 4, 2)).astype(np.float32)
VOLUME = RNG.normal(size=(2, 2, 3, 5, 4)).astype(np.float32)
POINTS = RNG.uniform(-1.3, 1.3, (2, 2, 3, 4, 3)).astype(np.float32)


def custom_model(op_type="GridSample3D", domain="my.domain", x=X, grid=GRID, opset=20, constants=(), **attributes):
    """One custom node of X, grid and perhaps constants, between standard ones."""
    extra = [f"c{k}" for k in range(len(constants))]
    sample = helper.make_node(op_type, ["X", "points", *extra], ["z"], "sample", domain=domain, **attributes)
    before, after = helper.make_node("Identity", ["grid"], ["points"]), helper.make_node("Relu", ["z"], ["Y"])
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape)
        for name, value in (("X", x), ("grid", grid))
    ]
    output = helper.make_tensor_value_info("Y", TensorProto.FLOAT, (*x.shape[:2], *grid.shape[1:-1]))
    tensors = [numpy_helper.from_array(np.array(value), name) for name, value in zip(extra, constants, strict=True)]
    graph = helper.make_graph([before, sample, after], "g", inputs, [output], tensors)
    opsets = [helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def check(lowered, expected, x=X, grid=GRID):
    np.testing.assert_allclose(run(lowered, {"X": x, "grid": grid})[0], np.maximum(expected, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("key", ["GridSample3D", "my.domain::GridSample3D"])
def test_with_and_without_a_domain(key, target):
    model = custom_model(mode="bilinear", padding_mode="border", align_corners=1)
    lowered, report = lower(model, target, map={key: "GridSample"})
    assert report.mapped == ["sample"]
    assert [imported.domain for imported in lowered.opset_import] == [""]
    check(lowered, grid_sample(X, GRID, "bilinear", "border", True))


def test_another_domain_is_another_operator():
    with pytest.raises(ArgumentError, match=r"map: the model has no node of other::GridSample3D"):
        lower(custom_model(mode=0, padding_mode=0, align_corners=0), map={"other::GridSample3D": "GridSample"})


@pytest.mark.parametrize("domain", ["my.domain", ""])
def test_an_operator_of_no_domain_or_one_named_as_the_standard_one(domain):
    op_type = "GridSample" if domain else "GridSample3D"
    model = custom_model(op_type, domain, mode="nearest", padding_mode="zeros", align_corners=0)
    key = f"{domain}::{op_type}" if domain else op_type
    check(lower(model, "portable", map={key: "GridSample"})[0], grid_sample(X, GRID, "nearest"))


@pytest.mark.parametrize("spelled", ["linear", "bilinear", "nearest", "cubic", "bicubic"])
@pytest.mark.parametrize("padding_mode", PADDING_MODES)
def test_names_of_either_opset(spelled, padding_mode):
    model = custom_model(mode=spelled, padding_mode=padding_mode, align_corners=0)
    expected = grid_sample(X, GRID, {"linear": "bilinear", "cubic": "bicubic"}.get(spelled, spelled), padding_mode)
    for target in ("onnxruntime-cpu", "tensorrt", "portable"):
        check(lower(model, target, map={"GridSample3D": "GridSample"})[0], expected)


@pytest.mark.parametrize("name", ["mode", "interpolation_mode"])
@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("mode", [0, 1, 2])
def test_codes_of_pytorch(mode, padding, corners, name):
    model = custom_model(**{name: mode, "padding_mode": padding, "align_corners": corners})
    lowered, _ = lower(model, "portable", map={"GridSample3D": "GridSample"})
    check(lowered, grid_sample(X, GRID, MODES[mode], PADDING_MODES[padding], bool(corners)))


def test_constant_inputs_as_aten_has_them():
    constants = (np.int64(1), np.int64(2), np.bool_(True))
    model = custom_model("grid_sampler", "aten", constants=constants)
    lowered, _ = lower(model, "portable", map={"aten::grid_sampler": "GridSample"})
    check(lowered, grid_sample(X, GRID, "nearest", "reflection", True))


def test_an_input_that_is_no_constant_is_one_clear_error():
    model = custom_model("grid_sampler", "aten", constants=(np.int64(1), np.int64(2), np.bool_(True)))
    model.graph.input.append(helper.make_tensor_value_info("c1", TensorProto.INT64, []))
    with pytest.raises(ArgumentError, match=r"grid_sampler node .*'c1', the padding_mode, must be a constant number"):
        lower(model, map={"grid_sampler": "GridSample"})


@pytest.mark.parametrize("missing", ["mode", "padding_mode", "align_corners"])
def test_a_missing_attribute_is_one_clear_error(missing):
    given = {"mode": "linear", "padding_mode": "zeros", "align_corners": 0}
    del given[missing]
    with pytest.raises(ArgumentError, match=rf"node 'sample': it has no attribute {missing}; .*{missing}=") as caught:
        lower(custom_model(**given), map={"GridSample3D": "GridSample"})
    assert "\n" not in str(caught.value)


def test_the_map_gives_attributes_that_are_missing():
    given = "GridSample, mode=cubic, padding_mode=1,align_corners=1"
    check(
        lower(custom_model(), "tensorrt", map={"GridSample3D": given})[0],
        grid_sample(X, GRID, "bicubic", "border", True),
    )


def test_attributes_of_the_node_go_before_those_of_the_map():
    model = custom_model(mode="nearest")
    lowered, _ = lower(model, map={"GridSample3D": "GridSample,mode=cubic,padding_mode=border,align_corners=0"})
    check(lowered, grid_sample(X, GRID, "nearest", "border"))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"mode": 3}, r"mode is 3; PyTorch's codes are 0 bilinear, 1 nearest, 2 bicubic"),
        ({"mode": -1}, r"mode is -1"),
        ({"mode": "area"}, r"mode is 'area'; it must be one of bilinear, nearest, bicubic"),
        ({"padding_mode": 7}, r"padding_mode is 7; PyTorch's codes are 0 zeros, 1 border, 2 reflection"),
        ({"padding_mode": "wrap"}, r"padding_mode is 'wrap'"),
        ({"align_corners": 2}, r"align_corners is 2; it must be 0 or 1"),
        ({"align_corners": "yes"}, r"align_corners is 'yes'"),
        ({"mode": 0.5}, r"attribute mode is neither a string nor an integer"),
    ],
)
def test_wrong_attributes_are_one_clear_error(attributes, message):
    model = custom_model(**{"mode": 0, "padding_mode": 0, "align_corners": 0, **attributes})
    with pytest.raises(ArgumentError, match=f"GridSample3D node 'sample': .*{message}"):
        lower(model, map={"GridSample3D": "GridSample"})


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"Nothing": "GridSample"}, r"map: the model has no node of Nothing"),
        ({"GridSample3D": "Resize"}, r"'GridSample3D' must stand for GridSample or AffineGrid, got 'Resize'"),
        ({"GridSample3D": ""}, r"must stand for GridSample or AffineGrid"),
        ({"": "GridSample"}, r"names no operator"),
        ({"my.domain::": "GridSample"}, r"names no operator"),
        ({"GridSample3D": "GridSample,modus=linear"}, r"GridSample has no attribute 'modus'; it has mode,"),
        ({"GridSample3D": "GridSample,mode=9"}, r"mode is 9"),
        ({"GridSample3D": "AffineGrid,mode=linear"}, r"AffineGrid has no attribute 'mode'"),
        ({"GridSample3D": "GridSample,mode=--1"}, r"mode is '--1'; it must be one of bilinear, nearest, bicubic"),
        ({"GridSample3D": "GridSample,mode"}, r"has 'mode'; each attribute is written once, as mode=bilinear"),
        ({"GridSample3D": "GridSample,mode="}, r"has 'mode='; each attribute is written once"),
        ({"GridSample3D": "GridSample,mode=1,mode=1"}, r"has 'mode=1'; each attribute is written once"),
    ],
)
def test_a_mapping_that_does_not_fit_is_one_clear_error(mapping, message):
    with pytest.raises(ArgumentError, match=message):
        lower(custom_model(padding_mode=0, align_corners=0), map=mapping)


@pytest.mark.parametrize("opset", [16, 18, 20])
@pytest.mark.parametrize("target", TARGETS)
def test_a_volume_of_an_older_model(target, opset):
    model = custom_model(x=VOLUME, grid=POINTS, opset=opset, mode=0, padding_mode=2, align_corners=0)
    lowered, _ = lower(model, target, map={"GridSample3D": "GridSample"})
    check(lowered, grid_sample(VOLUME, POINTS, "bilinear", "reflection"), VOLUME, POINTS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_custom_affine_grid(target):
    theta = RNG.normal(size=(2, 2, 3)).astype(np.float32)
    node = helper.make_node("Affine", ["theta", "size"], ["grid"], "affine", domain="my", align_corners=1)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("theta", TensorProto.FLOAT, ["N", 2, 3])],
        [helper.make_tensor_value_info("grid", TensorProto.FLOAT, ["N", 3, 4, 2])],
        [numpy_helper.from_array(np.array([2, 1, 3, 4]), "size")],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    lowered, _ = lower(
        helper.make_model(graph, opset_imports=opsets, ir_version=8), target, map={"Affine": "AffineGrid"}
    )
    np.testing.assert_allclose(
        run(lowered, {"theta": theta})[0], affine_grid(theta, (2, 1, 3, 4), True), rtol=1e-5, atol=1e-6
    )


def test_a_custom_operator_that_is_a_function_of_the_model_goes_with_it():
    model = custom_model(mode=0, padding_mode=0, align_corners=0)
    body = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.append(
        helper.make_function("my.domain", "GridSample3D", ["a", "g"], ["b"], body, [helper.make_opsetid("", 20)])
    )
    lowered, _ = lower(model, "portable", map={"GridSample3D": "GridSample"})
    assert [*lowered.functions] == []
    check(lowered, grid_sample(X, GRID))


def test_one_domain_stays_if_something_else_needs_it():
    model = custom_model(mode=0, padding_mode=0, align_corners=0)
    model.graph.node[2].CopyFrom(helper.make_node("Post", ["z"], ["Y"], "post", domain="my.domain"))
    lowered, _ = lower(model, "portable", map={"GridSample3D": "GridSample"})
    assert {imported.domain for imported in lowered.opset_import} == {"", "my.domain"}
    assert operators(lowered)[-1] == "Post"
    assert left(lowered) == []


def test_without_a_mapping_a_custom_operator_stays():
    model = custom_model(mode=0, padding_mode=0, align_corners=0)
    lowered, report = lower(model, "portable")
    assert operators(lowered) == ["Identity", "GridSample3D", "Relu"]
    assert (report.mapped, report.entries) == ([], [])
    assert report.unmapped == ["my.domain::GridSample3D"]
    assert str(report).splitlines()[1] == (
        "  left alone; name them in a map if they are one of the two: my.domain::GridSample3D"
    )


@pytest.mark.parametrize("op_type", ["grid_sampler", "GridSampler3D", "affine_grid_generator", "AffineGridND"])
def test_a_custom_operator_that_sounds_like_one_of_the_two_is_named(op_type):
    _, report = lower(custom_model(op_type))
    assert report.unmapped == [f"my.domain::{op_type}"]


@pytest.mark.parametrize("function", [False, True], ids=["mapped", "function"])
def test_nothing_is_named_that_is_known(function):
    model, mapping = custom_model(mode=0, padding_mode=0, align_corners=0), {"GridSample3D": "GridSample"}
    if function:
        body = [helper.make_node("Identity", ["a"], ["b"])]
        model.functions.append(
            helper.make_function("my.domain", "GridSample3D", ["a", "g"], ["b"], body, [helper.make_opsetid("", 20)])
        )
    _, report = lower(model, map={} if function else mapping)
    assert report.unmapped == []


def test_an_attribute_that_the_caller_of_a_function_chooses_is_one_clear_error():
    text = """
        g (float[N, 2, H, W] x, float[N, 3, 4, 2] grid) => (float[N, 2, 3, 4] y)
        { y = local.Warp <how = "linear"> (x, grid) }
        <domain: "local", opset_import: ["" : 20, "own" : 1]> Warp <how> (image, points) => (y) {
            [s] y = own.Sample <mode: string = @how, padding_mode = "zeros", align_corners = 0> (image, points)
        }"""
    with pytest.raises(
        ArgumentError, match=r"Sample node 's': its attribute mode is that of the function .*inline"
    ) as e:
        lower(parsed(text, more=', "local" : 1'), map={"Sample": "GridSample"})
    assert "\n" not in str(e.value)
