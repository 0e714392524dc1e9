"""Opsets that the tests run over."""

import onnx

import lucid_onnx as lo
from lucid_onnx.operators.finishing import DEFAULT_OPSET, newest_opset


def newest_running_opset() -> int:
    """The newest opset that the installed onnx knows and the installed onnxruntime runs at all."""
    for opset in range(newest_opset(), DEFAULT_OPSET, -1):
        x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
        graph = onnx.helper.make_graph([onnx.helper.make_node("Abs", ["x"], ["y"])], "abs", [x], [y])
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
        try:
            lo.session(model, threads=1)
        except lo.UnsupportedError:
            continue
        return opset
    return DEFAULT_OPSET
