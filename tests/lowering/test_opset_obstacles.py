"""What cannot follow to another opset is found before anything is changed, and named with the reason."""

import onnx_ir as ir
import pytest
from lowering.converting import parsed

from lucid_onnx.lowering.opsets import convert_opset, first_obstacle
from lucid_onnx.lowering.opsets.obstacles import OLDEST_TARGET
from lucid_onnx.operators.finishing import newest_opset
from lucid_onnx.reference.schema import UnsupportedError

NEWEST = newest_opset()

REFUSED = {
    # name: source, target, graph, and what the reason must say
    "axes that are computed": (
        18,
        16,
        "g (float[2,3] x, int64[1] a) => (float[A,B] y) { [here] y = ReduceMean(x, a) }",
        "it has no input axes there, and onnx's converter says: No initializer or constant input",
    ),
    "axes that a caller may override": (
        18,
        16,
        "g (float[2,3] x, int64[1] a) => (float[A,B] y) <int64[1] a = {1}> { [here] y = ReduceMean(x, a) }",
        "it has no input axes there",
    ),
    "no axes as a noop": (
        18,
        16,
        "g (float[2,3] x) => (float[2,3] y) { [here] y = ReduceMean<noop_with_empty_axes=1>(x) }",
        "noop_with_empty_axes",
    ),
    "Pad with axes": (
        18,
        16,
        "g (float[2,3] x) => (float[3,3] y) <int64[2] p = {1,0}, int64[1] a = {0}> { [here] y = Pad(x, p, , a) }",
        "it has no input axes there",
    ),
    "Pad that wraps": (
        19,
        16,
        'g (float[2,3] x, int64[4] p) => (float[A,B] y) { [here] y = Pad<mode="wrap">(x, p) }',
        "at opset 19 it got the mode wrap",
    ),
    "Split of an unknown size": (
        18,
        16,
        "g (float[N] x) => (float[A] y, float[B] z) { [here] y, z = Split<num_outputs=2>(x) }",
        "the size of its input along axis 0 is not known",
    ),
    "Resize with axes": (
        18,
        16,
        "g (float[1,3,3] x) => (float[1,3,6] y) <float[1] s = {2}> { [here] y = Resize<axes=[2]>(x, , s) }",
        "it has no attribute axes there",
    ),
    "Resize with antialias": (
        18,
        16,
        'g (float[3] x) => (float[6] y) <float[1] s = {2}> { [here] y = Resize<antialias=1,mode="linear">(x, , s) }',
        "it has no attribute antialias there",
    ),
    "Resize half_pixel_symmetric": (
        19,
        18,
        "g (float[3] x) => (float[6] y) <float[1] s = {2}> "
        '{ [here] y = Resize<coordinate_transformation_mode="half_pixel_symmetric">(x, , s) }',
        "half_pixel_symmetric",
    ),
    "reduction max": (
        18,
        16,
        'g (float[3] x, int64[1,1] i, float[1] u) => (float[3] y) { [here] y = ScatterND<reduction="max">(x, i, u) }',
        "at opset 18 it got the reductions max and min",
    ),
    "a type": (
        22,
        21,
        "g (bfloat16[1,1,3,3] x, bfloat16[1,1,2,2] w) => (bfloat16[1,1,2,2] y) { [here] y = Conv(x, w) }",
        "its input X cannot be a tensor(bfloat16) there",
    ),
    "a type that follows from the operators": (
        22,
        21,
        "g (float[3] x) => (float[3] z) { h = Cast<to=16>(x) [here] y = Sin(h) z = Cast<to=1>(y) }",
        "its input input cannot be a tensor(bfloat16) there",
    ),
    "a type that the converter lets pass": (
        19,
        18,
        "g (string[3] x, string[3] t) => (bool[3] y) { [here] y = Equal(x, t) }",
        "cannot be a tensor(string) there",
    ),
    "an operator without a body": (
        18,
        16,
        "g (float[1,4,4] x, int64[2] s, int64[2] b) => (float[A,B,C,D] y) { [here] y = Col2Im(x, s, b) }",
        "opset 16 has no Col2Im",
    ),
    "Resize 10 both ways": (
        10,
        16,
        "g (float[3,5] x) => (float[A,B] y) <float[2] s = {2.5,0.6}> { [here] y = Resize(x, s) }",
        "it enlarges one axis and reduces another",
    ),
    "Resize 10 by who knows": (
        10,
        16,
        "g (float[3,5] x, float[2] s) => (float[A,B] y) { [here] y = Resize(x, s) }",
        "whether it enlarges or reduces is not known",
    ),
    "Hardmax": (
        11,
        16,
        "g (float[2,3] x) => (float[2,3] y) { [here] y = Hardmax(x) }",
        "at opset 13 it came to mean one axis only",
    ),
    "a model that is too old": (
        6,
        16,
        "g (float[2,3] x, float[3] b) => (float[2,3] y) { [here] y = Add<broadcast=1>(x, b) }",
        "models are converted from opset 7",
    ),
    "no operator of ONNX": (
        16,
        18,
        "g (float[3] x) => (float[3] y) { [here] y = Nothing(x) }",
        "knows no such operator at opset 16",
    ),
    "GridSample that is not ours": (
        20,
        16,
        "g (float[1,1,3,3] x, float[1,2,2,2] g) => (float[1,1,2,2] y) { [here] y = GridSample(x, g) }",
        "its attribute mode has another default there",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_follow_is_named_and_the_model_stays(name):
    source, opset, text, reason = REFUSED[name]
    model = parsed(text, source, ir_version=10)
    before = ir.to_proto(model).SerializeToString(deterministic=True)
    obstacle = first_obstacle(model, opset, ours=())
    assert (obstacle.node, obstacle.source, obstacle.opset) == ("here", source, opset)
    assert reason in obstacle.reason
    with pytest.raises(UnsupportedError) as error:
        convert_opset(model, opset, ours=())
    assert str(error.value) == f"convert_opset: {obstacle}"
    assert ir.to_proto(model).SerializeToString(deterministic=True) == before


def test_the_message_says_what_to_do():
    model = parsed(REFUSED["Pad that wraps"][2], 19)
    assert str(first_obstacle(model, 16)) == (
        "Pad node 'here' cannot follow from opset 19 to 16: at opset 19 it got the mode wrap; "
        "opset 19 or newer has it as it is"
    )


def test_the_first_of_several_is_named():
    model = parsed(
        'g (float[3] x, int64[2] p) => (float[A] y) { [a] h = Pad<mode="wrap">(x, p) [b] y = Pad<mode="wrap">(h, p) }',
        19,
    )
    assert first_obstacle(model, 16).node == "a"


@pytest.mark.parametrize("opset", [OLDEST_TARGET - 1, NEWEST + 1])
@pytest.mark.parametrize("function", [first_obstacle, convert_opset])
def test_no_model_goes_beyond_what_is_known(function, opset):
    with pytest.raises(UnsupportedError, match=f"to opset {OLDEST_TARGET} to {NEWEST}.*got {opset}"):
        function(parsed("g (float[3] x) => (float[3] y) { y = Abs(x) }", 16), opset)


def test_axes_in_an_external_file_are_an_obstacle():
    model = parsed("g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMean(x, a) }", 18)
    model.graph.initializers["a"].const_value = ir.ExternalTensor(
        "nowhere.bin", 0, 8, ir.DataType.INT64, shape=ir.Shape([1]), name="a"
    )
    assert "it has no input axes there" in first_obstacle(model, 16).reason
