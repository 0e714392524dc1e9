"""Models at other opsets give what they gave."""

import random

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from lowering.converting import check_converts, parsed, results

from lucid_onnx.lowering.opsets import convert_opset
from lucid_onnx.lowering.opsets.changes import SEMANTICS_CHANGED
from lucid_onnx.lowering.opsets.obstacles import OLDEST_TARGET
from lucid_onnx.operators.finishing import newest_opset

UP = {
    # name: the opset it comes from and its graph
    "BatchNormalization": (
        7,
        "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y) "
        "{ v2 = Mul(v, v) y = BatchNormalization(x, s, b, m, v2) }",
    ),
    "BatchNormalization spatial": (
        8,
        "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => "
        "(float[2,3,4] y) { v2 = Mul(v, v) y = BatchNormalization(x, s, b, m, v2) }",
    ),
    "Upsample 7": (7, "g (float[1,2,3,3] x) => (float[1,2,6,9] y) { y = Upsample<scales=[1.0,1.0,2.0,3.0]>(x) }"),
    "Upsample 9 by 1.5": (
        9,
        "g (float[1,2,4,4] x) => (float[1,2,A,B] y) <float[4] s = {1,1,1.5,1.75}> "
        '{ y = Upsample<mode="nearest">(x, s) }',
    ),
    "Upsample 9 linear": (
        9,
        'g (float[1,2,3,3] x) => (float[1,2,6,6] y) <float[4] s = {1,1,2,2}> { y = Upsample<mode="linear">(x, s) }',
    ),
    "Resize 10 linear": (
        10,
        'g (float[1,2,3,5] x) => (float[1,2,A,B] y) <float[4] s = {1,1,2.5,0.6}> { y = Resize<mode="linear">(x, s) }',
    ),
    "Resize 10 nearest larger": (
        10,
        "g (float[1,2,3,5] x) => (float[1,2,A,B] y) <float[4] s = {1,1,2.5,1.3}> { y = Resize(x, s) }",
    ),
    "Resize 10 nearest smaller": (
        10,
        "g (float[1,2,7,5] x) => (float[1,2,A,B] y) <float[4] s = {1,1,0.6,0.7}> { y = Resize(x, s) }",
    ),
    "Resize 11": (
        11,
        "g (float[1,2,3,5] x) => (float[1,2,A,B] y) <float[0] r = {}, float[4] s = {1,1,2,2}> "
        '{ y = Resize<mode="cubic">(x, r, s) }',
    ),
    "Squeeze": (11, "g (float[1,3,1] x) => (float[3] y) { y = Squeeze<axes=[0,2]>(x) }"),
    "Squeeze all": (11, "g (float[1,3,1] x) => (float[3] y) { y = Squeeze(x) }"),
    "Unsqueeze": (9, "g (float[3] x) => (float[1,3,1] y) { y = Unsqueeze<axes=[0,2]>(x) }"),
    "Clip": (9, "g (float[4,4] x) => (float[4,4] y) { y = Clip<min=-0.5,max=0.5>(x) }"),
    "Clip max": (9, "g (float[4,4] x) => (float[4,4] y) { y = Clip<max=0.5>(x) }"),
    "Clip min": (9, "g (float[4,4] x) => (float[4,4] y) { y = Clip<min=0.5>(x) }"),
    "Clip nothing": (9, "g (float[4,4] x) => (float[4,4] y) { y = Clip(x) }"),
    "Clip of float16": (
        10,
        "g (float[4,4] x) => (float[4,4] y) { h = Cast<to=10>(x) c = Clip<min=-0.5,max=0.5>(h) y = Cast<to=1>(c) }",
    ),
    "Slice": (9, "g (float[4,5] x) => (float[2,3] y) { y = Slice<axes=[0,1],starts=[1,-4],ends=[3,-1]>(x) }"),
    "Slice without axes": (9, "g (float[4,5] x) => (float[2,4] y) { y = Slice<starts=[1,0],ends=[3,4]>(x) }"),
    "Dropout": (7, "g (float[4] x) => (float[4] y) { y = Dropout<ratio=0.3>(x) }"),
    "Dropout by default": (10, "g (float[4] x) => (float[4] y) { y, m = Dropout(x) }"),
    "Pad": (10, "g (float[2,3] x) => (float[3,6] y) { y = Pad<pads=[1,2,0,1],value=0.5>(x) }"),
    "Pad reflect": (10, 'g (float[2,3] x) => (float[3,6] y) { y = Pad<pads=[1,2,0,1],mode="reflect">(x) }'),
    "TopK": (9, "g (float[2,5] x) => (float[2,3] y, int64[2,3] i) { y, i = TopK<k=3>(x) }"),
    "Softmax": (11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }"),
    "Softmax of axis 0": (11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=0>(x) }"),
    "Softmax of the last axis": (11, "g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=2>(x) }"),
    "Softmax of an unknown rank": (
        11,
        "g (float[2,3,4] x, int64[3] n) => (float[2,3,4] z) "
        "<int64[3] s = {2,3,4}> { r = Reshape(x, s) y = Softmax(r) z = Identity(y) }",
    ),
    "LogSoftmax": (12, "g (float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax(x) }"),
    "ReduceSum": (12, "g (float[2,3,4] x) => (float[2,4] y) { y = ReduceSum<axes=[1],keepdims=0>(x) }"),
    "ReduceMean": (13, "g (float[2,3,4] x) => (float[2,1,4] y) { y = ReduceMean<axes=[1]>(x) }"),
    "Split": (11, "g (float[6] x) => (float[2] y, float[4] z) { y, z = Split<split=[2,4]>(x) }"),
    "Split evenly": (13, "g (float[6] x) => (float[3] y, float[3] z) { y, z = Split(x) }"),
    "RoiAlign": (
        13,
        "g (float[1,2,6,6] x) => (float[1,2,2,2] y) <float[1,4] r = {0,0,4,5}, int64[1] b = {0}> "
        "{ y = RoiAlign<output_height=2,output_width=2>(x, r, b) }",
    ),
    "Scatter": (9, "g (float[3] x, float[2] u) => (float[3] y) <int64[2] i = {2,0}> { y = Scatter(x, i, u) }"),
    "Gemm": (7, "g (float[2,3] a, float[3,4] b, float[4] c) => (float[2,4] y) { y = Gemm<alpha=2.0>(a, b, c) }"),
    "MaxPool": (7, "g (float[1,1,5,5] x) => (float[1,1,2,2] y) { y = MaxPool<kernel_shape=[2,2],strides=[2,2]>(x) }"),
    "AveragePool ceil": (
        11,
        "g (float[1,1,6,6] x) => (float[1,1,4,4] y) "
        "{ y = AveragePool<kernel_shape=[3,3],strides=[2,2],pads=[1,1,1,1],ceil_mode=1,count_include_pad=1>(x) }",
    ),
    "GRU": (
        7,
        "g (float[3,1,2] x, float[1,6,2] w, float[1,6,2] r) => (float[3,1,1,2] y) { y = GRU<hidden_size=2>(x, w, r) }",
    ),
    "Upsample from arithmetic": (
        9,
        "g (float[1,1,2,2] x) => (float[1,1,A,B] y) <float[4] s = {1,1,1,1}> { t = Add(s, s) y = Upsample(x, t) }",
    ),
}
DOWN = {
    "ReduceMean": (
        18,
        13,
        "g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMean<noop_with_empty_axes=0>(x, a) }",
    ),
    "ReduceMean by a Constant": (
        18,
        16,
        "g (float[2,3] x) => (float[2] y) { a = Constant<value_ints=[-1]>() y = ReduceMean<keepdims=0>(x, a) }",
    ),
    "ReduceMax of all": (18, 16, "g (float[2,3] x) => (float[1,1] y) { y = ReduceMax(x) }"),
    "ReduceMax of no axes": (18, 16, "g (float[2,3] x) => (float[1,1] y) <int64[0] a = {}> { y = ReduceMax(x, a) }"),
    "ReduceMin with a noop of axes": (
        20,
        16,
        "g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMin<noop_with_empty_axes=1>(x, a) }",
    ),
    "ReduceSum": (18, 13, "g (float[2,3] x, int64[1] a) => (float[2,1] y) { y = ReduceSum(x, a) }"),
    "Split in equal parts": (
        18,
        13,
        "g (float[2,6] x) => (float[2,3] y, float[2,3] z) { y, z = Split<axis=-1,num_outputs=2>(x) }",
    ),
    "Split with a smaller part": (
        18,
        13,
        "g (float[7] x) => (float[3] y, float[3] z, float[1] w) { y, z, w = Split<num_outputs=3>(x) }",
    ),
    "Split of a size that its outputs know": (
        18,
        13,
        "g (float[2,6] x) => (float[2,3] y, float[2,3] z) { h = Relu(x) y, z = Split<axis=-1,num_outputs=2>(h) }",
    ),
    "Split by sizes": (
        18,
        13,
        "g (float[7] x, int64[2] s) => (float[A] y, float[B] z) <int64[2] s = {3,4}> { y, z = Split(x, s) }",
    ),
    "Pad": (19, 13, 'g (float[2,3] x) => (float[3,6] y) <int64[4] p = {1,2,0,1}> { y = Pad<mode="edge">(x, p) }'),
    "Resize": (
        19,
        13,
        "g (float[1,1,3,3] x) => (float[1,1,6,6] y) <float[4] s = {1,1,2,2}> "
        '{ y = Resize<antialias=0,keep_aspect_ratio_policy="stretch",mode="linear">(x, , s) }',
    ),
    "Cast": (24, 16, 'g (float[4] x) => (int64[4] y) { y = Cast<saturate=1,to=7,round_mode="up">(x) }'),
    "Reshape": (21, 13, "g (float[2,3] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Reshape<allowzero=0>(x, s) }"),
    "Shape": (23, 13, "g (float[2,3] x) => (int64[2] y) { y = Shape<start=0>(x) }"),
    "Conv": (22, 13, "g (float[1,1,4,4] x, float[1,1,3,3] w) => (float[1,1,2,2] y) { y = Conv(x, w) }"),
    "BatchNormalization": (
        15,
        13,
        "g (float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => "
        "(float[2,3,4] y) { v2 = Mul(v, v) y = BatchNormalization<training_mode=0>(x, s, b, m, v2) }",
    ),
    "LSTM": (
        22,
        13,
        "g (float[3,1,2] x, float[1,8,2] w, float[1,8,2] r) => (float[3,1,1,2] y) "
        "{ y = LSTM<hidden_size=2,layout=0>(x, w, r) }",
    ),
    "ScatterND": (
        18,
        13,
        'g (float[3] x, float[1] u) => (float[3] y) <int64[1,1] i = {2}> { y = ScatterND<reduction="none">(x, i, u) }',
    ),
    "QuantizeLinear": (
        21,
        16,
        "g (float[4] x) => (float[4] y) <float s = {0.1}, uint8 z = {128}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
    ),
    "Gelu": (20, 16, "g (float[2,3] x) => (float[2,3] y) { y = Gelu(x) }"),
    "Gelu by tanh": (20, 13, 'g (float[2,3] x) => (float[2,3] y) { y = Gelu<approximate="tanh">(x) }'),
    "LayerNormalization": (
        18,
        16,
        "g (float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) { y = LayerNormalization(x, s, b) }",
    ),
    "Mish": (18, 16, "g (float[2,3] x) => (float[2,3] y) { y = Mish(x) }"),
    "Swish by default": (24, 16, "g (float[2,3] x) => (float[2,3] y) { y = Swish(x) }"),
    "GroupNormalization": (
        21,
        16,
        "g (float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) "
        "{ y = GroupNormalization<num_groups=2>(x, s, b) }",
    ),
    "Attention": (
        23,
        16,
        "g (float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y) { y = Attention(q, k, v) }",
    ),
    "ReduceMax after opset 20": (
        22,
        18,
        "g (float[2,3] x) => (float[1,3] y) <int64[1] a = {0}> { y = ReduceMax(x, a) }",
    ),
}

TOLERANCE = {
    # What onnxruntime rounds to float16 after the conversion only, and what bodies compute in another order.
    "Clip of float16": 1e-3,
    **dict.fromkeys(("Gelu", "Gelu by tanh", "LayerNormalization", "Mish", "GroupNormalization", "Attention"), 2e-6),
}


@pytest.mark.parametrize("opset", [16, 20, 22])
@pytest.mark.parametrize("name", UP)
def test_an_older_model_gives_the_same_at_a_newer_opset(name, opset):
    if (name, opset) == ("RoiAlign", 22):
        pytest.skip("onnxruntime 1.32 has no RoiAlign of opset 22")
    source, text = UP[name]
    check_converts(parsed(text, source), opset, TOLERANCE.get(name, 0))


@pytest.mark.parametrize("name", DOWN)
def test_a_newer_model_gives_the_same_at_an_older_opset(name):
    source, opset, text = DOWN[name]
    check_converts(parsed(text, source, ir_version=10), opset, TOLERANCE.get(name, 0))


@pytest.mark.parametrize("opset", [21, 22])
def test_a_group_normalization_keeps_its_scale_of_groups(opset):
    graph = (
        "g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) "
        "{ y = GroupNormalization<num_groups=2>(x, s, b) }"
    )
    check_converts(parsed(graph, 18), opset, 2e-6)


def test_a_cast_loses_the_attribute_that_speaks_of_float8_only():
    model = parsed("g (float[4] x) => (int64[4] y) { [cast] y = Cast<saturate=0,to=7>(x) }", 24, 10)
    assert convert_opset(model, 16) == ["cast"]
    assert list(model.graph[0].attributes) == ["to"]


WALKER = """g (float[2,4,6] x, float[6] s) => (float[2,4,3] a, float[2,4,3] b, float[2,1,6] z) <int64[1] k = {1}> {
    [soft] h = Softmax<axis=1>(x) [split] a, b = Split<axis=2>(h)
    [mean] m = ReduceMean<axes=[1]>(x) [norm] n = Mul(m, s)
    [cast] i = Cast<to=7>(n) [back] f = Cast<to=1>(i) [clip] c = Clip<min=-1.0,max=1.0>(f)
    [pad] p = Pad<pads=[0,0,1,0,0,0]>(c) [cut] q = Slice<axes=[2],starts=[1],ends=[7]>(p)
    [sum] u = ReduceSum<axes=[1]>(q) [max] z = Max(u, n)
}"""


@pytest.mark.parametrize("seed", range(6))
def test_a_walk_over_the_opsets_changes_no_result(seed):
    model = parsed(WALKER, 9)
    before = results(model)
    rng = random.Random(seed)
    for _ in range(6):
        convert_opset(model, rng.randint(OLDEST_TARGET, newest_opset()))
        onnx.checker.check_model(ir.to_proto(model), full_check=True)
    convert_opset(model, rng.randint(OLDEST_TARGET, 22))
    for ours, theirs in zip(results(model), before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("operator", "version"), SEMANTICS_CHANGED)
def test_the_table_names_versions_that_there_are(operator, version):
    assert onnx.defs.get_schema(operator, version).since_version == version
