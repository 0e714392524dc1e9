"""From a node and a table to what is done, and why."""

import onnx_ir as ir
import pytest
from lowering.sampling import ELEMENTS

from lucid_onnx.lowering import TARGETS, Kernel, Target
from lucid_onnx.lowering.decide import decide, has_kernel
from lucid_onnx.lowering.nodes import Sampling

FLOAT = ir.DataType.FLOAT


def sampled(cell="bilinear zeros 0", rank=4, dtype="float32", grid_dtype=None, channels=3):
    mode, padding_mode, corners = cell.split()
    image, grid = (ir.DataType(ELEMENTS[name]) for name in (dtype, grid_dtype or dtype))
    shape = (None, channels, *[None] * (rank - 2))
    return Sampling("GridSample", rank, mode, padding_mode, corners == "1", image, grid, shape)


def affine(corners=False, sizes=(4, 5), dtype="float32"):
    element = ir.DataType(ELEMENTS[dtype])
    return Sampling("AffineGrid", 4, "", "", corners, element, element, (None, 2, 3), sizes)


def own(**changes):
    return Target("own", "", (Kernel("GridSample", (16, None), "measured", **changes),))


WRONG = ("non-finite", "far", "infinite pixels", "reflected ties")
DECISIONS = [
    # target, node, opset, finite, form, why
    ("portable", sampled(), 20, False, "expand", "the target has no kernel for it"),
    ("portable", affine(), 20, True, "expand", "the target has no kernel for it"),
    ("tensorrt", sampled(), 19, True, "keep", "a kernel that is right"),
    ("tensorrt", sampled(), 19, False, "canonical", "the kernel is wrong for non-finite, far"),
    ("tensorrt", sampled(), 20, True, "expand", "the target has no kernel for it"),
    ("tensorrt", sampled(rank=5), 19, True, "expand", "the target has no kernel for it"),
    ("tensorrt", sampled("nearest reflection 0"), 19, True, "canonical", "the kernel is wrong for reflected ties"),
    ("tensorrt", affine(), 20, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-cuda", affine(), 20, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-cuda", sampled("bicubic zeros 0", 5), 20, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-coreml", sampled("nearest zeros 0"), 20, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-directml", sampled("bicubic border 0"), 19, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-cpu", sampled("bilinear border 0"), 20, True, "canonical", "slow: its plan"),
    ("onnxruntime-cpu", sampled(), 20, True, "keep", "a kernel that is right"),
    ("onnxruntime-cpu", sampled("nearest zeros 0"), 20, True, "expand", "slow: coordinates are computed anew"),
    ("onnxruntime-cpu", sampled("bicubic zeros 0", channels=64), 20, True, "expand", "slow: 16 taps"),
    ("onnxruntime-cpu", sampled("bicubic zeros 0", channels=1), 20, True, "keep", "a kernel that is right"),
    ("onnxruntime-cpu", sampled("bicubic zeros 0", channels=None), 20, True, "keep", "a kernel that is right"),
    ("onnxruntime-cpu", sampled("bicubic zeros 0", 5), 20, True, "expand", "the target has no kernel for it"),
    ("onnxruntime-cpu", affine(), 20, True, "keep", "a kernel that is right"),
    ("onnxruntime-cpu", affine(corners=True), 20, True, "keep", "a kernel that is right"),
    ("onnxruntime-cpu", affine(corners=True, sizes=(4, 1)), 20, True, "expand", ""),
    ("onnxruntime-cpu", affine(corners=True, sizes=None), 20, True, "expand", ""),
    ("onnxruntime-cpu", affine(), 19, True, "expand", "the target has no kernel for it"),
    ("openvino", sampled(dtype="float32"), 22, True, "keep", "a kernel that is right"),
]


@pytest.mark.parametrize(
    ("target", "node", "opset", "finite", "form", "why"),
    DECISIONS,
    ids=[
        f"{target} {node} opset {opset} {'finite' if finite else 'any'}"
        for target, node, opset, finite, *_ in DECISIONS
    ],
)
def test_what_is_done_and_why(target, node, opset, finite, form, why):
    decision = decide(TARGETS[target], node, opset, finite)
    assert decision.form == form
    assert why in decision.why(opset)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("finite", [False, True])
def test_guards_are_for_what_is_not_finite(mode, finite):
    assert decide(own(wrong=WRONG), sampled(f"{mode} border 0"), 20, finite).guard == (not finite)


def test_a_constant_grid_that_is_finite_needs_no_guard():
    node = sampled("bilinear zeros 0")
    assert decide(own(wrong=WRONG), node, 20, finite=False).guard
    assert not decide(own(wrong=WRONG), node, 20, finite=False, known_finite=True).guard


@pytest.mark.parametrize(
    ("cell", "wrong"),
    [
        ("bilinear zeros 0", False),
        ("bilinear border 0", True),
        ("nearest border 0", False),
        ("bicubic border 0", False),
    ],
)
def test_infinite_pixels_spoil_only_where_taps_without_weight_are_read(cell, wrong):
    decision = decide(own(wrong=("infinite pixels",)), sampled(cell), 20, finite=False)
    assert (decision.faults == ("infinite pixels",)) == wrong


@pytest.mark.parametrize(
    ("dtype", "grid_dtype", "dtypes", "grid", "expected"),
    [
        ("float32", None, ("float32",), "same", ("keep", "float32", False)),
        ("float16", None, ("float32",), "same", ("keep", "float32", False)),
        ("bfloat16", None, ("float16",), "same", ("expand", "float32", False)),
        ("float64", None, ("float32",), "same", ("expand", "float64", False)),
        ("float64", None, ("float32", "float64"), "same", ("keep", "float64", False)),
        ("float32", "float64", ("float32",), "same", ("expand", "float64", False)),
        ("float32", "float64", ("float64",), "same", ("keep", "float64", False)),
        ("float16", None, ("float16", "float32"), "same", ("keep", "float32", False)),
        ("float16", None, ("float16", "float32"), "any", ("keep", "float32", True)),
        ("float16", "float32", ("float16",), "any", ("keep", "float32", True)),
    ],
)
def test_image_and_grid_meet_in_a_dtype_that_keeps_coordinates(dtype, grid_dtype, dtypes, grid, expected):
    decision = decide(own(dtypes=dtypes, grid=grid), sampled(dtype=dtype, grid_dtype=grid_dtype), 20, finite=True)
    assert (decision.form, decision.dtype.numpy().name, decision.keep_image) == expected


@pytest.mark.parametrize(("channels", "form"), [(1, "keep"), (2, "keep"), (3, "expand"), (None, "expand")])
def test_a_row_of_speed_is_for_its_channels(channels, form):
    target = own(channels=(1, 2))
    assert decide(target, sampled(channels=channels), 20, finite=True).form == form


@pytest.mark.parametrize("opset", range(16, 26))
def test_opsets_of_a_row_are_a_range(opset):
    target = Target("own", "", (Kernel("GridSample", (18, 20), "measured"),))
    assert has_kernel(target, sampled(), opset) == (18 <= opset <= 20)


def test_the_first_row_that_fits_decides():
    first = Kernel("GridSample", (16, None), "first", ranks=(5,))
    rows = (first, Kernel("GridSample", (16, None), "second"), Kernel("GridSample", (16, None), "third"))
    decision = decide(Target("own", "", rows), sampled(), 20, finite=True)
    assert decision.kernel is not None
    assert decision.kernel.source == "second"


def test_dtypes_are_compared_as_onnx_has_them():
    assert decide(own(), sampled(), 20, finite=True).dtype == FLOAT
