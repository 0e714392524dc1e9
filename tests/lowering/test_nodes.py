"""Nodes that are not as ONNX has them are one clear error."""

import pytest
from lowering.sampling import grid_sample_model
from onnx import helper

from lucid_onnx.lowering import lower
from lucid_onnx.reference.schema import ArgumentError


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"mode": 1}, "its attribute mode must be a string"),
        ({"mode": b"\xff\xfe"}, "its attribute mode is not text"),
        ({"padding_mode": 0}, "its attribute padding_mode must be a string"),
        ({"align_corners": "yes"}, "its attribute align_corners must be an integer"),
    ],
)
def test_an_attribute_of_another_type_is_one_clear_error(attributes, message):
    model = grid_sample_model((4, "bilinear", "zeros", False), "float32", 20)
    model.graph.node[0].CopyFrom(helper.make_node("GridSample", ["X", "grid"], ["Y"], "sample", **attributes))
    with pytest.raises(ArgumentError, match=f"^GridSample node 'sample': {message}$"):
        lower(model)


@pytest.mark.parametrize("outputs", [[], ["Y", "Z"]])
def test_a_node_of_no_or_more_than_one_output_is_one_clear_error(outputs):
    model = grid_sample_model((4, "bilinear", "zeros", False), "float32", 20)
    model.graph.node[0].output[:] = outputs
    if not outputs:
        model.graph.node.append(helper.make_node("Identity", ["X"], ["Y"]))
    with pytest.raises(ArgumentError, match=f"GridSample node 'sample': it has {len(outputs)} outputs; ONNX's has one"):
        lower(model)
