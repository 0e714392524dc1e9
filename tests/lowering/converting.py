"""Models given as text, and what they give before and after a conversion."""

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from lucid_onnx.lowering.opsets import convert_opset


def parsed(text, opset, ir_version=8):
    """A model of `text`, a graph, which may be followed by functions."""
    return ir.from_onnx_text(f'<ir_version: {ir_version}, opset_import: ["": {opset}, "local": 1]>\n{text}')


def results(model, seed=0):
    """What onnxruntime gives for random inputs."""
    proto = ir.to_proto(model)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    dtypes = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
    feeds = {}
    for given in session.get_inputs():
        shape = [size if isinstance(size, int) else 3 for size in given.shape]
        if given.type in dtypes:
            feeds[given.name] = rng.normal(size=shape).astype(dtypes[given.type])
        else:
            feeds[given.name] = np.ones(shape, {"tensor(int64)": np.int64, "tensor(bool)": np.bool_}[given.type])
    return session.run(None, feeds)


def check_converts(model, opset, tolerance=0):
    before = results(model)
    convert_opset(model, opset)
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
    for ours, theirs in zip(results(model), before, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)
    assert model.graph.opset_imports[""] == opset
