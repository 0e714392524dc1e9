"""The rest of a model stays as it is, and what is lowered twice is lowered once."""

import cells
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from lowering.sampling import left, nodes, parsed, run
from onnx import helper
from rich_models import external, normal, rich_model, with_weights

from lucid_onnx.lowering import TARGETS, lower, lower_ir
from lucid_onnx.reference import grid_sample

MODEL = """
    warp (float[N, 3, H, W] x, float[N, 6, 7, 2] flow, float[3, 1, 1] w)
      => (float[N, 3, 6, 7] y, float[N, 6, 7, 2] grid)
    <float[3, 1, 1] w = {1, 2, 3}, float b = {0.5}, float unused = {7},
     float[N, 3, 6, 7] warped, float[M, 3, 6, 7] scaled>
    {
        [first] scaled_flow = Mul (flow, b)
        [base] grid = Tanh (scaled_flow)
        [sample] warped = GridSample <mode = "linear", padding_mode = "border"> (x, grid)
        [scale] scaled = Mul (warped, w)
        [last] y = other.Custom <alpha = 3> (scaled)
    }
    <domain: "other", opset_import: ["" : 20]> Custom <alpha> (i) => (o) { o = Relu (i) }"""
OTHERS = ["first", "base", "scale", "last"]


def model():
    """A sampling in the middle of other things, all of them described."""
    made = parsed(MODEL, more=', "other" : 3, "unused" : 2')
    made.doc_string, made.producer_name, made.model_version = "about", "producer", 4
    made.metadata_props.add(key="author", value="nobody")
    made.graph.doc_string = "about the graph"
    made.graph.input[0].doc_string = "about x"
    for node in made.graph.node:
        if not node.domain:
            node.ClearField("domain")  # which the parser sets
        node.doc_string = f"about {node.name}"
        node.metadata_props.add(key="layer", value=node.name)
    return made


def feed(of, seed=0):
    """Values for the inputs of a model that have no default, 2 where a size is open."""
    rng = np.random.default_rng(seed)
    given = {tensor.name for tensor in of.graph.initializer}
    values = {}
    for value in of.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value or 2 for d in tensor.shape.dim]
        if value.name not in given:
            drawn = rng.uniform(-1.3, 1.3, shape)
            values[value.name] = drawn.astype(helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return values


def check_same(lowered, original, tolerance=1e-5):
    given = feed(original)
    for got, expected in zip(run(lowered, given), run(original, given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def fields(message, *without):
    """A message without some of its fields."""
    copied = type(message).FromString(message.SerializeToString())
    for field in without:
        copied.ClearField(field)
    return copied


@pytest.mark.parametrize("target", TARGETS)
def test_results_agree_with_the_original(target):
    check_same(lower(model(), target)[0], model())


@pytest.mark.parametrize("target", TARGETS)
def test_inputs_and_outputs_stay_with_names_order_types_and_texts(target):
    original, (lowered, _) = model(), lower(model(), target)
    assert [*lowered.graph.input] == [*original.graph.input]
    assert [*lowered.graph.output] == [*original.graph.output]


@pytest.mark.parametrize("target", TARGETS)
def test_initializers_stay_first_and_in_order(target):
    original, (lowered, _) = model(), lower(model(), target)
    count = len(original.graph.initializer)
    assert [*lowered.graph.initializer][:count] == [*original.graph.initializer]


@pytest.mark.parametrize("target", TARGETS)
def test_other_nodes_stay_in_order(target):
    lowered, _ = lower(model(), target)
    kept = [node for node in lowered.graph.node if node.name in OTHERS]
    assert kept == [node for node in model().graph.node if node.name in OTHERS]


@pytest.mark.parametrize("target", TARGETS)
def test_what_the_model_says_of_itself_stays(target):
    original, (lowered, _) = model(), lower(model(), target)
    assert fields(lowered, "graph", "opset_import", "functions") == fields(
        original, "graph", "opset_import", "functions"
    )
    assert (lowered.graph.name, lowered.graph.doc_string) == (original.graph.name, original.graph.doc_string)


@pytest.mark.parametrize("target", TARGETS)
def test_imports_of_other_domains_stay(target):
    lowered, _ = lower(model(), target)
    imports = {imported.domain: imported.version for imported in lowered.opset_import}
    assert (imports["other"], imports["unused"]) == (3, 2)


@pytest.mark.parametrize("target", TARGETS)
def test_of_the_old_values_is_said_what_was_said_before(target):
    original, (lowered, _) = model(), lower(model(), target)
    old = {name for node in original.graph.node for name in node.output}
    said = {value.name: value for value in lowered.graph.value_info if value.name in old}
    assert said == {value.name: value for value in original.graph.value_info}


@pytest.mark.parametrize("target", TARGETS)
def test_text_and_metadata_of_a_node_pass_to_what_takes_its_place(target):
    lowered, _ = lower(model(), target)
    (maker,) = [node for node in lowered.graph.node if "warped" in node.output]
    assert maker.doc_string == "about sample"
    assert {entry.key: entry.value for entry in maker.metadata_props}["layer"] == "sample"


@pytest.mark.parametrize("target", TARGETS)
def test_nodes_are_in_order_and_names_are_unique(target):
    lowered, _ = lower(model(), target)
    onnx.checker.check_model(lowered, full_check=True)
    names = [node.name for node in nodes(lowered)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_without_samplings_comes_back_as_it_was(target):
    lowered, report = lower(rich_model(), target)
    assert normal(lowered) == normal(rich_model())
    assert report.entries == []


def test_external_data_is_referred_to_as_it_was(tmp_path, monkeypatch):
    with_weights(tmp_path, monkeypatch)
    lowered, _ = lower(rich_model(external))
    assert normal(lowered) == normal(rich_model(external))


def test_a_model_with_other_domains_only_comes_back_as_it_was():
    original = parsed(MODEL.replace("GridSample", "other.GridSample"), more=', "other" : 3')
    lowered, report = lower(original)
    assert [node.domain for node in lowered.graph.node] == ["", "", "other", "", "other"]
    assert report.entries == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("finite", [False, True], ids=["guarded", "finite"])
def test_lowering_again_agrees(target, mode, finite):
    original = parsed(MODEL.replace("linear", mode), more=', "other" : 3')
    once, _ = lower(original, target, assume_finite=finite)
    again, _ = lower(once, target, assume_finite=finite)
    check_same(again, once)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_lowering_again_adds_nothing_to_what_needs_no_guard(target, mode):
    once, _ = lower(parsed(MODEL.replace("linear", mode), more=', "other" : 3'), target, assume_finite=True)
    again, _ = lower(once, target, assume_finite=True)
    before, after = len(once.graph.node), len(again.graph.node)
    assert before == after


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_lowering_again_adds_nothing_to_what_is_guarded(target, mode):
    once, _ = lower(parsed(MODEL.replace("linear", mode), more=', "other" : 3'), target)
    again, _ = lower(once, target)
    before, after = len(once.graph.node), len(again.graph.node)
    assert before == after


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_model_gives_the_same_bytes(target):
    first, second = (lower(model(), target)[0].SerializeToString() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("opset", [None, 16, 22])
def test_the_callers_protobuf_is_unchanged(opset):
    original = model()
    before = original.SerializeToString()
    lower(original, "portable", opset=opset)
    assert original.SerializeToString() == before


@pytest.mark.parametrize("opset", [None, 16, 22])
def test_the_callers_intermediate_representation_is_unchanged(opset):
    original = ir.from_proto(model())
    before = ir.to_proto(original).SerializeToString()
    lower(original, "portable", opset=opset)
    assert ir.to_proto(original).SerializeToString() == before


def test_a_path_a_protobuf_and_an_intermediate_representation_give_the_same(tmp_path):
    onnx.save(model(), tmp_path / "model.onnx")
    sources = (tmp_path / "model.onnx", model(), ir.from_proto(model()))
    lowered = [normal(lower(source, "tensorrt")[0]) for source in sources]
    assert lowered[0] == lowered[1] == lowered[2]


def test_lower_ir_works_in_place():
    changed = ir.from_proto(model())
    report = lower_ir(changed, "portable")
    assert left(ir.to_proto(changed)) == []
    assert [entry.node for entry in report.entries] == ["sample"]


def test_names_that_lowering_would_choose_may_be_taken():
    original = parsed(MODEL, more=', "other" : 3')
    lowered, _ = lower(original, "portable")
    own = {name for node in original.graph.node for name in node.output}
    names = {node.name for node in lowered.graph.node} - {node.name for node in original.graph.node}
    values = {name for node in lowered.graph.node for name in node.output} - own
    tensors = {tensor.name for tensor in lowered.graph.initializer} - {t.name for t in original.graph.initializer}
    assert min(len(names), len(values), len(tensors)) > 5
    clashing = parsed(MODEL, more=', "other" : 3')
    for name, value in zip(sorted(names), sorted(values), strict=False):
        clashing.graph.node.append(helper.make_node("Identity", ["w"], [value], name))
    clashing.graph.initializer.extend(helper.make_tensor(name, 1, [], [9.0]) for name in tensors)
    lowered, _ = lower(clashing, "portable")
    onnx.checker.check_model(lowered, full_check=True)
    check_same(lowered, original)


UNNAMED = """
    warp (float[N, 2, 4, 5] x, float[N, 3, 3, 2] grid)
      => (float[N, 2, 3, 3] y, float[N, 2, 3, 3] z, float[N, 2, 3, 3] s)
    {
        y = GridSample <mode = "cubic"> (x, grid)
        z = GridSample <mode = "nearest", align_corners = 1> (x, grid)
        s = Add (y, z)
    }"""
"""Nodes without names, two samplings of one grid, outputs of the graph that are used on."""


@pytest.mark.parametrize("target", TARGETS)
def test_unnamed_nodes_that_share_a_grid_and_make_outputs(target):
    lowered, report = lower(parsed(UNNAMED), target)
    assert [entry.node for entry in report.entries] == ["y", "z"]
    assert [output.name for output in lowered.graph.output] == ["y", "z", "s"]
    check_same(lowered, parsed(UNNAMED))


def test_an_output_may_be_the_grid_and_a_grid_may_be_an_output_of_the_graph():
    text = """
        warp (float[N, 2, 3, 4] x, float[N, 2, 3] theta) => (float[N, 3, 4, 2] grid, float[N, 2, 3, 4] y)
        {
            size = Shape (x)
            grid = AffineGrid (theta, size)
            y = GridSample (x, grid)
        }"""
    for target in TARGETS:
        lowered, _ = lower(parsed(text), target)
        assert [output.name for output in lowered.graph.output] == ["grid", "y"]
        check_same(lowered, parsed(text))


@pytest.mark.parametrize("target", TARGETS)
def test_guards_hold_inside_a_model(target):
    original = parsed(MODEL.replace("Tanh (scaled_flow)", "Identity (scaled_flow)"), more=', "other" : 3')
    given = feed(original)
    given["flow"] = np.resize(np.float32([np.nan, 0.3, np.inf, -0.2, -np.inf, 3e38, 0.1]), given["flow"].shape)
    y, grid = run(lower(original, target)[0], given)
    w = np.float32([1, 2, 3]).reshape(3, 1, 1)
    expected = np.maximum(grid_sample(given["x"], grid, "bilinear", "border") * w, 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)


def test_sizes_that_are_symbolic_stay_free():
    lowered, _ = lower(model(), "portable")
    for batch, height, width in ((1, 3, 4), (3, 8, 2)):
        x = cells.image((batch, 3, height, width), np.float32)
        flow = cells.generator("flow").uniform(-3, 3, (batch, 6, 7, 2)).astype(np.float32)
        y, grid = run(lowered, {"x": x, "flow": flow})
        w = np.float32([1, 2, 3]).reshape(3, 1, 1)
        np.testing.assert_allclose(
            y, np.maximum(grid_sample(x, grid, "bilinear", "border") * w, 0), rtol=1e-5, atol=1e-5
        )
