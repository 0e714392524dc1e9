"""What is asked of the gradient of any model: it is valid, the primal is what it was, and the slopes agree."""

import numpy as np
import onnx
from gradient.checking import session, slopes_agree

import lucid_onnx as lo

FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)


def parse(text, opset=20, imports="", ir_version=10):
    """A model of ONNX text, checked; what follows its graph are functions."""
    model = onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["" : {opset}{imports}]> {text}')
    onnx.checker.check_model(model, full_check=True)
    _clear_domains(model.graph)
    return model


def _clear_domains(graph):
    """Have the default domain be left out, as it is in all models but the parser's."""
    for node in graph.node:
        if not node.domain:
            node.ClearField("domain")
        for attribute in node.attribute:
            for subgraph in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
                _clear_domains(subgraph)


_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def floats(values):
    return [value.name for value in values if value.type.tensor_type.elem_type in FLOATS]


def gradients(model, feed, wrt=None, outputs=None, **options):
    """The gradient model, the upstream gradients that were made up, and all of its outputs by name."""
    backward = lo.gradient(model, wrt, outputs, **options)
    check_valid(backward)
    runner = session(backward)
    rng = np.random.default_rng(5)
    before = session(model)
    names = [value.name for value in before.get_outputs()]
    values = dict(zip(names, before.run(None, {i.name: feed[i.name] for i in before.get_inputs()}), strict=True))
    added = [value.name for value in backward.graph.input if value.name not in feed and value.name.endswith("_grad")]
    chosen = floats(model.graph.output) if outputs is None else outputs
    seeds = {
        seed: np.asarray(rng.standard_normal(values[name].shape), values[name].dtype)
        for seed, name in zip(added, chosen, strict=True)
    }
    results = dict(
        zip([value.name for value in backward.graph.output], runner.run(None, {**feed, **seeds}), strict=True)
    )
    for name, value in values.items():
        np.testing.assert_array_equal(results[name], value, err_msg=f"the primal's {name}")
    return backward, seeds, results


def check_gradient(model, feed, wrt=None, second=True):
    """Raise unless the gradient of a float64 model is right, and that of its gradient; return the gradient model."""
    names = floats(model.graph.input) if wrt is None else wrt
    outputs = floats(model.graph.output)
    backward, seeds, results = gradients(model, feed, names, outputs)
    grads = {name: results[name] for name in [value.name for value in backward.graph.output][-len(names) :]}
    for name, grad in zip(names, grads.values(), strict=True):
        assert grad.shape == feed[name].shape
    slopes_agree(model, feed, names, outputs, seeds, grads)
    if second:
        again = [*names, *seeds]
        twice, upstream, results = gradients(backward, {**feed, **seeds}, again, list(grads))
        found = {value.name: results[value.name] for value in list(twice.graph.output)[-len(again) :]}
        slopes_agree(backward, {**feed, **seeds}, again, list(grads), upstream, found)
    return backward


def check_valid(model):
    """Raise unless ONNX accepts a model, and no name stands for two things in a graph and those around it."""
    onnx.checker.check_model(model, full_check=True)
    _check_names(model.graph, set())


def _check_names(graph, outer):
    own = [tensor.name for tensor in graph.initializer if tensor.name not in {value.name for value in graph.input}]
    own += [value.name for value in graph.input]
    own += [name for node in graph.node for name in node.output if name]
    assert len(set(own)) == len(own), f"names that come twice: {sorted({name for name in own if own.count(name) > 1})}"
    assert not outer & set(own), f"names that hide others: {outer & set(own)}"
    nodes = [node.name for node in graph.node if node.name]
    assert len(set(nodes)) == len(nodes)
    for node in graph.node:
        for attribute in node.attribute:
            for subgraph in (attribute.g, *attribute.graphs):
                _check_names(subgraph, outer | set(own))


def operators(graph):
    """The operators of a graph, in order."""
    return [node.op_type for node in graph.node]
