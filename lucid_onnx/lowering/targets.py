"""What each runtime runs: a table, and nothing else. The rewriter knows no runtime but by its rows.

A `Kernel` is one row: an operator with the cells of it that a runtime has a kernel for, what that kernel does
wrong, what to do with it, and where all this is known from. The rows of a target are tried in their order and
the first that fits decides; a node that none fits is expanded into standard operators.
"""

from __future__ import annotations

from typing import Any

from lucid_onnx.lowering.rows import Kernel, Target

_ORT = "onnxruntime 1.32, measured (lucid-onnx bench)"
_ORT_KERNELS = "onnxruntime docs/OperatorKernels.md"
_FLOATS = ("float32", "float64")
_UNGUARDED = ("non-finite", "far", "infinite pixels", "reflected ties")
"""What a kernel does wrong that turns coordinates into integers as they come, and rounds before it reflects.

Measured for onnxruntime on the CPU, read in the sources for CUDA, DirectML and WebGPU, and assumed of the others,
which have not been measured: a guard too many costs little.
"""


def _onnxruntime_cpu(opsets: tuple[int, int | None], dtypes: tuple[str, ...]) -> tuple[Kernel, ...]:
    """Rows of onnxruntime's CPU kernel, which is the same at every opset but for dtypes and spelling."""

    def row(form: str, modes: tuple[str, ...], source: str, **more: Any) -> Kernel:
        return Kernel("GridSample", opsets, source, modes=modes, dtypes=dtypes, form=form, wrong=_UNGUARDED, **more)

    taps = "16 taps a channel, each with its checks"
    plan = "its plan of the sampling is shared by the channels only for zeros without align_corners"
    return (
        row("canonical", ("bilinear",), f"{_ORT}; core/providers/cpu/tensor/grid_sample.cc", ranks=(4,), slow=plan),
        row(
            "keep",
            ("bilinear",),
            f"{_ORT}: up to 5 channels are faster in the kernel",
            ranks=(5,),
            padding_modes=("zeros", "border"),
            channels=(0, 5),
        ),
        row("expand", ("nearest", "bilinear"), _ORT, slow="coordinates are computed anew for every channel"),
        row(
            "expand", ("bicubic",), _ORT, ranks=(4,), padding_modes=("zeros", "border"), channels=(11, None), slow=taps
        ),
        row("expand", ("bicubic",), _ORT, ranks=(4,), padding_modes=("reflection",), channels=(8, None), slow=taps),
        row("keep", ("bicubic",), f"{_ORT}: few channels", ranks=(4,), padding_modes=("zeros", "border")),
        row(
            "canonical",
            ("bicubic",),
            f"{_ORT}: few channels",
            ranks=(4,),
            padding_modes=("reflection",),
            slow="every tap is reflected on its own",
        ),
    )


_ROWS = (
    Target(
        "onnxruntime-cpu",
        "onnxruntime, CPUExecutionProvider",
        (
            *_onnxruntime_cpu((16, 19), ("float32",)),
            *_onnxruntime_cpu((20, None), _FLOATS),
            Kernel(
                "AffineGrid",
                (20, None),
                f"{_ORT}; core/providers/cpu/tensor/affine_grid.cc",
                dtypes=_FLOATS,
                wrong=("axis of one pixel",),
            ),
        ),
    ),
    Target(
        "onnxruntime-cuda",
        "onnxruntime, CUDAExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                f"{_ORT_KERNELS}; contrib_ops/cuda/grid_sample.cc: 5-D fails at run time",
                ranks=(4,),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (20, None),
                f"{_ORT_KERNELS}; pull request 27201 (2026); older builds hand the node to the CPU",
                ranks=(4,),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (20, None),
                "onnxruntime pull request 27201 (2026); older builds fail at run time",
                ranks=(5,),
                modes=("bilinear", "nearest"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-directml",
        "onnxruntime, DmlExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime DmlGridSample.h: the dtype of the image is taken for that of the grid, too",
                ranks=(4,),
                modes=("bilinear", "nearest"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime grid_sample.hlsl: cubic with border clips the coordinate before it takes the weights",
                ranks=(4,),
                modes=("bicubic",),
                padding_modes=("zeros", "reflection"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-webgpu",
        "onnxruntime, WebGpuExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime core/providers/webgpu/tensor/grid_sample.cc; pull request 28264 (2026)",
                ranks=(4,),
                dtypes=("float32", "float16"),
                grid="any",
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "onnxruntime-coreml",
        "onnxruntime, CoreMLExecutionProvider, ML Program",
        (
            Kernel(
                "GridSample",
                (16, None),
                "onnxruntime gridsample_op_builder.cc; coreml_supported_mlprogram_ops.md",
                ranks=(4,),
                modes=("bilinear",),
                padding_modes=("zeros", "border"),
                dtypes=("float32", "float16"),
                wrong=("non-finite", "far", "infinite pixels"),
                slow="not on the GPU nor the Neural Engine (coremltools issue 1875)",
            ),
            Kernel(
                "GridSample",
                (16, None),
                "onnxruntime gridsample_op_builder.cc: reflection only with align_corners",
                ranks=(4,),
                modes=("bilinear",),
                padding_modes=("reflection",),
                align_corners=(True,),
                dtypes=("float32", "float16"),
                wrong=("non-finite", "far", "infinite pixels"),
            ),
        ),
    ),
    Target(
        "onnxruntime-qnn",
        "onnxruntime, QNNExecutionProvider",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnxruntime core/providers/qnn/builder/opbuilder/simple_op_builder.cc; border needs QNN 2.30, "
                "reflection 2.32 (its tests)",
                ranks=(4,),
                modes=("bilinear", "nearest"),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
    ),
    Target(
        "tensorrt",
        "TensorRT 8.5 and later, by its ONNX parser",
        (
            Kernel(
                "GridSample",
                (16, 19),
                "onnx-tensorrt docs/operators.md, onnxOpImporters.cpp; from opset 20 on linear and cubic are read as "
                "nearest (TensorRT issue 4646), 5-D is refused (issue 4618)",
                ranks=(4,),
                dtypes=("float32", "float16"),
                wrong=_UNGUARDED,
            ),
        ),
        newest_opset=24,
    ),
    Target(
        "openvino",
        "OpenVINO 2022.2 and later, by its ONNX frontend",
        (
            Kernel(
                "GridSample",
                (16, None),
                "openvino frontend grid_sample.cpp; before pull request 36070 (2026) only the spelling of opset 16 is "
                "read (issue 33531); 5-D is refused (issue 37770)",
                ranks=(4,),
                grid="any",
                wrong=_UNGUARDED,
                slow="the default bfloat16 of its CPU plugin costs half a pixel at a width of 1024; hint float32",
            ),
            Kernel(
                "AffineGrid",
                (20, None),
                "openvino frontend affine_grid.cpp, supported_ops.md",
                wrong=("axis of one pixel",),
            ),
        ),
    ),
    Target("portable", "any runtime: only operators of opset 13 to 16, neither GridSample nor AffineGrid"),
)

TARGETS = {target.name: target for target in _ROWS}
"""Every target by name."""
