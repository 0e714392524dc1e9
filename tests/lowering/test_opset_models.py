"""All of a model follows to another opset, subgraphs and functions too, and keeps all that need not change."""

import onnx_ir as ir
import pytest
from lowering.converting import check_converts, parsed, results

from lucid_onnx.lowering.opsets import convert_opset, first_obstacle


def test_what_the_caller_handles_is_left_alone():
    text = (
        "g (float[1,1,3,3] x, float[1,2,2,2] g) => (float[1,1,2,2] y) { [s] h = GridSample(x, g) [p] y = Identity(h) }"
    )
    model = parsed(text, 20)
    assert first_obstacle(model, 16) is None
    assert convert_opset(model, 16) == []
    assert model.graph[0].op_type == "GridSample"
    assert first_obstacle(parsed(text, 20), 16, ours=()).node == "s"


def test_other_domains_and_functions_named_as_operators_are_left_alone():
    model = parsed(
        "g (float[3] x) => (float[3] y) { h = local.ReduceMean<axes=[0]>(x) y = local.Unknown(h) }\n"
        '<domain: "local", opset_import: ["": 13]> ReduceMean<axes>(x) => (y) { y = Identity(x) }',
        13,
    )
    assert convert_opset(model, 18) == []
    assert list(model.graph[0].attributes) == ["axes"]


IF = """g (bool c, float[2,3] x) => (float[A] y) <int64[1] a = {1}> {
    [if] y = If (c) <
        then_branch = then () => (float[A] t) { [mean] t = ReduceMean<keepdims=0>(x, a) },
        else_branch = other () => (float[A] e) { [max] e = ReduceMax<keepdims=0>(x, a) }>
}"""
LOOP = """g (float[3] x) => (float[3] y) <int64 n = {4}, bool c = {1}> {
    y = Loop (n, c, x) <body = b (int64 i, bool go, float[3] v) => (bool on, float[3] w) {
        on = Identity(go) [gelu] w = Gelu(v)
    }>
}"""
SCAN = """g (float[2] s, float[4,2] x) => (float[2] t, float[4,2] y) {
    t, y = Scan <num_scan_inputs = 1, body = b (float[2] v, float[2] r) => (float[2] w, float[2] o) {
        k = Constant<value_ints=[0]>() m = ReduceSumSquare(r, k) w = Add(v, m) o = Identity(w)
    }> (s, x)
}"""


@pytest.mark.parametrize("text", [IF, LOOP, SCAN], ids=["If", "Loop", "Scan"])
def test_subgraphs_are_converted_too(text):
    check_converts(parsed(text, 20, ir_version=9), 16, 2e-6)


def test_an_obstacle_in_a_subgraph_is_found():
    model = parsed(IF.replace("a = {1}", "b = {1}").replace("float[2,3] x)", "float[2,3] x, int64[1] a)"), 18)
    assert first_obstacle(model, 16).node == "mean"


CALL = """g (float[2,3] x) => (float[2,1] y) { [call] y = local.F (x) }
<domain: "local", opset_import: ["": FUNCTION]> F (x) => (y) { BODY }"""


@pytest.mark.parametrize(
    ("source", "function", "opset", "body"),
    [
        (18, 18, 16, "a = Constant<value_ints=[1]>() [mean] y = ReduceMean(x, a)"),
        (18, 13, 18, "[mean] y = ReduceMean<axes=[1]>(x)"),
        (16, 11, 20, "[mean] y = ReduceSum<axes=[1]>(x)"),
        (16, 18, 16, "a = Constant<value_ints=[1]>() [mean] y = ReduceMean(x, a)"),
    ],
)
def test_a_function_is_converted_from_its_own_version(source, function, opset, body):
    model = parsed(CALL.replace("FUNCTION", str(function)).replace("BODY", body), source, ir_version=9)
    assert convert_opset(model, opset) == ["mean"]
    only = model.functions["local", "F", ""]
    assert (only.opset_imports[""], model.graph.opset_imports[""]) == (opset, opset)
    assert results(model)[0].shape == (2, 1)


def test_an_attribute_that_the_caller_of_a_function_chooses_follows_where_its_meaning_stays():
    text = 'g (float[3] x) => (int64[3] y) { y = local.F<kind=7> (x) }\n<domain: "local", opset_import: ["": 21]> F '
    model = parsed(text + "<kind>(x) => (y) { y = Cast<to: int = @kind>(x) }", 21, ir_version=10)
    check_converts(model, 16)


def test_an_attribute_that_the_caller_of_a_function_chooses_is_an_obstacle_where_it_moves():
    text = 'g (float[3] x) => (float[1] y) { y = local.F<kind=[0]> (x) }\n<domain: "local", opset_import: ["": 13]> F '
    model = parsed(text + "<kind>(x) => (y) { y = ReduceMean<axes: ints = @kind>(x) }", 13, ir_version=9)
    assert "the function's caller chooses" in first_obstacle(model, 18).reason


def decorated():
    """A model of which everything has a name, a doc string or metadata, some of it by odd names."""
    model = parsed(
        "g (float[N,3] x, float[3] unused) => (float[N,1] y, float[N,3] relu) "
        "<int64[1] axes = {1}, float[2] w = {1,2}> "
        "{ [soft] relu = Relu(x) [soft_Constant] h = Softmax(relu) [mean] y = ReduceMean<axes=[1]>(h) }",
        12,
    )
    model.doc_string, model.metadata_props["author"], model.producer_name = "doc", "me", "maker"
    for thing in (*model.graph, *model.graph.inputs, *(value for node in model.graph for value in node.outputs)):
        thing.doc_string, thing.metadata_props["key"] = f"doc of {thing.name}", f"value of {thing.name}"
    return model


def described(model):
    graph = model.graph
    return {
        "model": (model.doc_string, dict(model.metadata_props), model.producer_name, graph.name),
        "values": [
            (v.name, v.doc_string, dict(v.metadata_props), str(v.type), str(v.shape))
            for v in (*graph.inputs, *graph.outputs)
        ],
        "initializers": [(name, id(value), id(value.const_value)) for name, value in graph.initializers.items()],
        "nodes": [
            (n.name, n.doc_string, dict(n.metadata_props)) for n in graph if n.name in ("soft", "soft_Constant", "mean")
        ],
        "domains": {domain: version for domain, version in graph.opset_imports.items() if domain},
    }


@pytest.mark.parametrize("opset", [16, 18, 21])
def test_all_else_stays(opset):
    model = decorated()
    before, relu = described(model), model.graph[0]
    convert_opset(model, opset)
    assert described(model) == before
    assert model.graph[0] is relu


def test_new_names_are_not_taken_already():
    model = decorated()
    convert_opset(model, 21)
    names = [value.name for node in model.graph for value in node.outputs] + [v.name for v in model.graph.inputs]
    assert len(set(names)) == len(names)
    nodes = [node.name for node in model.graph]
    assert len(set(nodes)) == len(nodes)
    assert all(name.startswith(("soft", "mean")) for name in nodes)


def test_a_node_that_need_not_change_is_not_touched():
    model = parsed("g (float[3] x) => (float[3] y) { [a] h = Relu(x) [b] y = Identity(h) }", 13)
    nodes = list(model.graph)
    assert convert_opset(model, 21) == []
    assert all(node is before for node, before in zip(model.graph, nodes, strict=True))


def test_external_data_is_not_loaded():
    text = "g (float[1,3,4,4] x) => (float[1,3,1,1] y) { h = Conv(x, w) y = ReduceMean<axes=[2,3]>(h) }"
    model = parsed(text.replace("y)", "y) <float[3,3,1,1] w = {1,2,3,4,5,6,7,8,9}>", 1), 13)
    weight = ir.ExternalTensor("nowhere.bin", 0, 36, ir.DataType.FLOAT, shape=ir.Shape([3, 3, 1, 1]), name="w")
    model.graph.initializers["w"].const_value = weight
    convert_opset(model, 22)
    assert model.graph.initializers["w"].const_value is weight


@pytest.mark.parametrize(("ir_version", "opset", "expected"), [(7, 21, 10), (10, 16, 10), (4, 13, 7)])
def test_the_ir_version_rises_as_needed_and_never_falls(ir_version, opset, expected):
    model = parsed("g (float[3] x) => (float[3] y) { y = Abs(x) }", 13, ir_version)
    convert_opset(model, opset)
    assert model.ir_version == expected


def test_the_other_name_of_the_default_domain_stays():
    model = parsed("g (float[3] x) => (float[3] y) { y = Abs(x) }", 13)
    model.graph.opset_imports["ai.onnx"] = model.graph.opset_imports.pop("")
    convert_opset(model, 16)
    assert model.graph.opset_imports["ai.onnx"] == 16
    assert "" not in model.graph.opset_imports
