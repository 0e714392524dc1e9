"""A model that holds something of everything, and how to compare it with what became of it."""

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper, numpy_helper

from lucid_onnx.files import write_model


def tensor(name, count=3, location=None, offset=0, length=None, dtype=TensorProto.FLOAT, **entries):
    """`count` numbers: embedded, or in the file `location`."""
    if location is None:
        return numpy_helper.from_array(np.arange(count, dtype=np.float32), name)
    proto = TensorProto(name=name or None, data_type=dtype, dims=[count], data_location=TensorProto.EXTERNAL)
    length = 4 * count if length is None else length
    for key, value in {"location": location, "offset": offset, "length": length, **entries}.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def describe(*messages):
    """Give each message two properties, out of order, and a text where it has a place for one."""
    for message in messages:
        for key in ("zebra", "ant"):
            message.metadata_props.add(key=key, value=f"{key} of {message.name}")
        message.doc_string = f"about {message.name}"


def branch(name, node, *initializers):
    output = helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, ["N"])
    return helper.make_graph([node], name, [], [output], initializers)


def rich_model(place=tensor):
    """A model that holds something of everything; `place` makes its tensors: of the graph, of attributes, of bodies."""
    typed = helper.make_tensor_value_info
    inputs = [typed("x", TensorProto.FLOAT, ["N", "2*H - 1", None, 3]), typed("w", TensorProto.FLOAT, [3])]
    inputs.append(typed("yes", TensorProto.BOOL, []))
    inputs[0].type.denotation = "IMAGE"
    inputs[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    inputs.append(helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, ["P"]))
    constant = helper.make_node("Constant", [], ["c"], "constant", value=place("", 3))
    constant.attribute[0].doc_string = "about the attribute"
    call = helper.make_node("Scale", ["c"], ["scaled"], "call", domain="own", overload="fast", power=2)
    choice = helper.make_node("If", ["yes"], ["chosen"], "choice")
    inner = helper.make_node("Add", ["scaled", "inner"], ["left"], "inside")
    choice.attribute.append(helper.make_attribute("then_branch", branch("then", inner, place("inner", 3))))
    choice.attribute.append(
        helper.make_attribute("else_branch", branch("else", helper.make_node("Identity", ["w"], ["right"])))
    )
    total = helper.make_node("Sum", ["chosen", "w", "b", "a"], ["y"], "total")
    text = helper.make_tensor("text", TensorProto.STRING, [2], [b"one", b"two"])
    initializers = [place("w", 3), place("b", 3), place("a", 3), text]
    outputs = [typed("y", TensorProto.FLOAT, ["N"])]
    graph = helper.make_graph([constant, call, choice, total], "rich", inputs, outputs, initializers)
    graph.value_info.extend([typed("c", TensorProto.FLOAT, [3]), typed("chosen", TensorProto.FLOAT, ["M"])])
    graph.value_info.append(onnx.ValueInfoProto(name="scaled"))
    for name in ("x", "w", "b", "c", "y"):
        annotation = graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=f"{name}_scale")
    scale = helper.make_function(
        "own", "Scale", ["i"], ["o"], [], [helper.make_opsetid("", 20)], ["power"], overload="fast"
    )
    scale.attribute_proto.append(helper.make_attribute("shift", 0.1, "about the shift"))
    scale.node.append(helper.make_node("Constant", [], ["k"], value=place("k", 3)))
    power = helper.make_node("Custom", ["i", "k"], ["o"], domain="other")
    power.attribute.append(onnx.AttributeProto(name="p", ref_attr_name="power", type=onnx.AttributeProto.INT))
    scale.node.append(power)
    scale.value_info.extend([typed("i", TensorProto.FLOAT, [3]), typed("k", TensorProto.FLOAT, ["K"])])
    model = helper.make_model(graph, functions=[scale], producer_name="producer", ir_version=11)
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*pair) for pair in (("", 20), ("own", 1), ("other", 7)))
    model.producer_version, model.model_version, model.domain, model.doc_string = "3.2", 5, "org.example", "about all"
    model.metadata_props.add(key="author", value="nobody")
    graph, scale = model.graph, model.functions[0]
    describe(graph, *graph.node, *graph.input, *graph.output, *graph.value_info, graph.initializer[1])
    describe(scale, *scale.node, *scale.value_info)
    return model


def external(name, count=3):
    """Numbers in the file of `with_weights`, at a place that follows from the name."""
    return tensor(name, count, "weights.bin", offset=64 * (len(name) + ord(name[:1] or "-") % 8), checksum="abc")


def normal(model):
    """A model with its unordered lists in order, without what a tensor says of itself being said again."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    graphs = [model.graph, *(a.g for n in model.graph.node for a in n.attribute if a.HasField("g"))]
    for graph in graphs:
        given = {t.name for t in graph.initializer}
        kept = sorted((v for v in graph.value_info if v.name not in given), key=lambda v: v.name)
        del graph.value_info[:]
        graph.value_info.extend(kept)
        graph.quantization_annotation.sort(key=lambda annotation: annotation.tensor_name)
    for message in [model, *graphs, *model.functions, *(m for g in (*graphs, *model.functions) for m in g.node)]:
        message.metadata_props.sort(key=lambda entry: entry.key)
    for graph in graphs:
        for message in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            message.metadata_props.sort(key=lambda entry: entry.key)
    for function in model.functions:
        for message in function.value_info:
            message.metadata_props.sort(key=lambda entry: entry.key)
    return model


def given_as(kind, model, folder):
    """The model as a path, as a protobuf or as an intermediate representation."""
    path = folder / "model.onnx"
    write_model(model, path)
    return {"path": path, "proto": model, "ir": ir.load(path)}[kind]


def with_weights(folder, monkeypatch):
    """The folder with data in it, which becomes the current one: a protobuf knows no other."""
    (folder / "weights.bin").write_bytes(np.arange(4096, dtype=np.float32).tobytes())
    monkeypatch.chdir(folder)
    return folder


def listing(folder):
    """All files in a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
