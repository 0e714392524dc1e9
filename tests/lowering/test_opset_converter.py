"""ONNX's converter is asked once, and answers for each node as if it were alone."""

import onnx
import onnx_ir as ir
import pytest
from lowering.converting import parsed

from lucid_onnx.lowering.opsets import convert_opset
from lucid_onnx.lowering.opsets.converter import converted, lone_node
from lucid_onnx.lowering.opsets.value_types import Types

NODES = {
    "Slice": "y = Slice<axes=[0,1],starts=[1,-4],ends=[3,-1]>(x)",
    "another Slice": "y = Slice<starts=[1,0],ends=[3,4]>(x)",
    "Slice without ends": "y = Slice<starts=[1,0]>(x)",
    "Clip with values left out": "y = Clip<max=0.5>(x)",
    "Dropout": "y, mask = Dropout<ratio=0.3>(x)",
    "Dropout with an output left out": 'y, "" = Dropout<ratio=0.3>(x)',
    "Pad": "y = Pad<pads=[1,2,0,1],value=0.5>(x)",
    "Softmax": "y = Softmax<axis=0>(x)",
    "Upsample": "y = Upsample(x, s)",
    "TopK that is not valid": "y = TopK(x, s)",
    "Loop without a body": "y = Loop(s)",
}


def lone(text):
    model = parsed(f"g (float[4,5] x, float[2] s) => (y) {{ {text} }}", 9)
    return lone_node(model.graph[0], 9, Types())


def plain(outcome):
    """What can be compared: tensors are equal only to themselves."""
    if isinstance(outcome, str):
        return outcome
    return [(step.operator, step.inputs, step.outputs, list(map(ir.to_proto, step.attributes))) for step in outcome]


@pytest.fixture(scope="module")
def together():
    return converted([lone(text) for text in NODES.values()], 16)


@pytest.mark.parametrize("name", NODES)
def test_a_node_among_others_is_converted_as_if_alone(together, name):
    node = lone(NODES[name])
    assert plain(together[node]) == plain(converted([node], 16)[node])


def test_a_node_that_fails_stops_no_other(together):
    failed = {name for name, text in NODES.items() if isinstance(together[lone(text)], str)}
    assert failed == {"Slice without ends", "TopK that is not valid", "Loop without a body"}


@pytest.fixture
def asked(monkeypatch):
    """The models that ONNX's converter is given."""
    models = []
    convert = onnx.version_converter.convert_version
    monkeypatch.setattr(
        onnx.version_converter, "convert_version", lambda model, opset: models.append(model) or convert(model, opset)
    )
    return models


def test_nodes_alike_are_converted_once(asked):
    nodes = " ".join(f"h{i + 1} = ReduceL1<axes=[-1]>(h{i})" for i in range(50))
    model = parsed(f"g (float[2,2,77] h0) => (float[2,2,1] h50) {{ {nodes} }}", 13)
    assert len(convert_opset(model, 19)) == 50
    assert [len(model.graph.node) for model in asked] == [3]  # those at the ends know the rank of one end


def test_nodes_that_differ_are_converted_in_one_call(asked):
    nodes = " ".join(f"h{i + 1} = Slice<starts=[0],ends=[{100 + i}]>(h{i})" for i in range(50))
    model = parsed(f"g (float[4] h0) => (float[4] h50) {{ {nodes} }}", 9)
    assert len(convert_opset(model, 16)) == 50
    assert [len(model.graph.node) for model in asked] == [50]


def test_nodes_of_several_opsets_are_converted_each_from_its_own(asked):
    text = "g (float[4] x) => (float[2] z) { y = Slice<starts=[0],ends=[3]>(x) z = local.F(y) }\n"
    function = '<domain: "local", opset_import: ["": 8]> F (x) => (y) { y = Slice<starts=[1],ends=[3]>(x) }'
    model = parsed(text + function, 9)
    convert_opset(model, 16)
    assert sorted(model.opset_import[0].version for model in asked) == [8, 9]
