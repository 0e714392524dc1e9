"""Every cell, lowered for every target from several opsets: right by the tolerance rule, and what the target takes."""

from functools import lru_cache

import cells
import onnx
import pytest
from judging import Case
from lowering.sampling import DTYPES, attributes, grid_sample_model, nodes, opset_of
from opsets import newest_running_opset

import lucid_onnx as lo
from lucid_onnx.lowering import TARGETS, lower
from lucid_onnx.reference.schema import MODES, ONNX_MODES

OPSETS = sorted({16, 20, 22, newest_running_opset()})
SHAPES = {
    4: {"static": (2, 3, 3, 4), "square": (1, 8, 4, 4), "one pixel": (2, 1, 1, 5)},
    5: {"static": (2, 2, 2, 3, 4), "cube": (1, 1, 3, 3, 3), "one pixel": (1, 2, 1, 1, 5)},
}
"""Static shapes: few and many channels, equal and other sizes, an axis of one pixel."""

VARIANTS = [
    pytest.param((cell, dtype, shape), id=f"{cells.cell_id(cell)}-{dtype}-{shape}")
    for cell in reversed(cells.CELLS)
    for dtype in DTYPES
    for shape in ("symbolic", *SHAPES[cell[0]])
    if shape in ("symbolic", "static") or dtype == "float32"
]
"""The whole product, that which takes longest first; other static shapes in one dtype."""

CUBIC_VOLUMES = [variant for variant in VARIANTS if variant.values[0][0][:2] == (5, "bicubic")]
FINITE = ("outside", "ties")
"""Grids that need no guard."""


@lru_cache(maxsize=64)
def drawn(family, shape, cell, dtype):
    return Case.drawn(family, shape, *cell[1:], dtype)


class Lowerings:
    """One variant, lowered for every target, from every opset, with and without guards."""

    def __init__(self, cell, dtype, shape):
        self.cell, self.dtype = cell, dtype
        rank = cell[0]
        self.shapes = [SHAPES[rank][shape]] if shape != "symbolic" else [SHAPES[rank]["static"], *cells.IMAGES[rank]]
        given = (None, None) if shape == "symbolic" else (self.shapes[0], cells.POINTS[rank])
        opsets = OPSETS if shape in ("symbolic", "static") else OPSETS[1:2]
        originals = {opset: grid_sample_model(cell, dtype, opset, *given) for opset in opsets}
        self.models = {
            (target, opset, finite): lower(model, target, assume_finite=finite)[0]
            for opset, model in originals.items()
            for target in TARGETS
            for finite in ((False, True) if opset == OPSETS[1] and dtype == "float32" else (False,))
        }

    def of(self, *targets):
        return [(key, model) for key, model in self.models.items() if key[0] in targets]

    def distinct(self):
        """Models that differ, as targets often share one: each with whether only finite grids are its business."""
        found = {}
        for (*_, finite), model in self.models.items():
            key = model.SerializeToString(deterministic=True)
            found[key] = (model, finite and found.get(key, (None, True))[1])
        return found.values()


@pytest.fixture(scope="module", params=VARIANTS)
def lowerings(request):
    return Lowerings(*request.param)


def sampled(model):
    """The GridSample nodes of a model, each with the rank and the dtype of its image."""
    kept = [node for node in nodes(model) if node.op_type == "GridSample"]
    if not kept:
        return
    inferred = onnx.shape_inference.infer_shapes(model).graph
    types = {value.name: value.type.tensor_type for value in (*inferred.input, *inferred.value_info)}
    for node in kept:
        image = types[node.input[0]]
        yield node, len(image.shape.dim), onnx.helper.tensor_dtype_to_np_dtype(image.elem_type).name


def test_agrees_with_the_reference(lowerings):
    for model, finite in lowerings.distinct():
        session = lo.session(model, threads=1)
        for shape in lowerings.shapes:
            for family in FINITE if finite else (*FINITE, "nonfinite"):
                case = drawn(family, shape, lowerings.cell, lowerings.dtype)
                (y,) = session.run(None, {"X": case.x, "grid": case.grid})
                assert y.dtype == DTYPES[lowerings.dtype]
                verdict = case.judge_y(y)
                assert verdict.ok, (opset_of(model), shape, family, finite, verdict)


def test_passes_the_checker(lowerings):
    for model, _ in lowerings.distinct():
        # ONNX infers no GridSample of a volume before opset 20, though onnxruntime runs it.
        volume = lowerings.cell[0] == 5 and any(node.op_type == "GridSample" for node in nodes(model))
        onnx.checker.check_model(model, full_check=not (volume and opset_of(model) < 20))


def test_modes_are_spelled_as_the_opset_wants(lowerings):
    for model, _ in lowerings.distinct():
        modes = MODES if opset_of(model) < 20 else ("linear", "nearest", "cubic")
        assert all(attributes(node)["mode"] in modes for node in nodes(model) if node.op_type == "GridSample")


def test_portable_holds_neither_operator(lowerings):
    for _, model in lowerings.of("portable"):
        assert not {"GridSample", "AffineGrid"} & {node.op_type for node in nodes(model)}


def test_tensorrt_gets_images_in_the_old_spelling_only(lowerings):
    for key, model in lowerings.of("tensorrt"):
        for _, rank, _ in sampled(model):
            assert opset_of(model) < 20, key
            assert rank == 4, key


def test_cuda_gets_float32_only(lowerings):
    for key, model in lowerings.of("onnxruntime-cuda"):
        assert {dtype for _, _, dtype in sampled(model)} <= {"float32"}, key


@pytest.mark.parametrize("lowerings", CUBIC_VOLUMES, indirect=True, scope="module")
def test_a_cubic_volume_is_expanded_everywhere(lowerings):
    for key, model in lowerings.models.items():
        assert not any(node.op_type == "GridSample" for node in nodes(model)), key


def test_what_is_kept_has_a_row(lowerings):
    for (target, *_), model in lowerings.models.items():
        for node, rank, dtype in sampled(model):
            how = attributes(node)
            assert any(
                kernel.opsets[0] <= opset_of(model) <= (kernel.opsets[1] or opset_of(model))
                and rank in kernel.ranks
                and ONNX_MODES.get(how["mode"], how["mode"]) in kernel.modes
                and how["padding_mode"] in kernel.padding_modes
                and bool(how["align_corners"]) in kernel.align_corners
                and dtype in kernel.dtypes
                for kernel in TARGETS[target].rows("GridSample")
            ), (target, opset_of(model), node)


def test_the_opset_stays_where_none_is_better(lowerings):
    assert all(opset_of(model) == opset for (_, opset, _), model in lowerings.of("portable"))
