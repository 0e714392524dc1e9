"""The models with GridSample and AffineGrid that torch.onnx makes of the networks of `architectures`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
import pytest
from lowering import architectures

if TYPE_CHECKING:
    from lowering.architectures import Built
    from torch import Tensor, nn

DynamicShapes: TypeAlias = tuple[dict[int, str], ...]
"""For each input, its symbolic axes and their names."""


@dataclass(frozen=True)
class Network:
    """A network, how it is exported, and how well a runtime must agree with it."""

    name: str
    architecture: Callable[[], Built]
    dynamic_shapes: DynamicShapes | None = None
    opset: int = 20
    tolerance: float = 1e-4
    """Largest difference to the expected outputs that rounding explains, absolute and relative."""

    def build(self) -> Built:
        """The module in eval mode and its example arguments: the same ones at every call."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            module, args = self.architecture()
        return module.eval(), args


@cache
def exported(name: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray], list[np.ndarray]]:
    """The network's ONNX model, a feed for it, and PyTorch's outputs; all are shared, so copy before changing them."""
    torch = pytest.importorskip("torch", reason="PyTorch builds and exports the networks")
    network = NETWORKS[name]
    module, args = network.build()
    program = torch.onnx.export(
        module,
        args,
        dynamo=True,
        opset_version=network.opset,
        dynamic_shapes=network.dynamic_shapes,
        custom_translation_table={torch.ops.aten.affine_grid_generator.default: _affine_grid},
        verbose=False,
    )
    model = program.model_proto
    feed = {value.name: arg.numpy() for value, arg in zip(model.graph.input, args, strict=True)}
    return model, feed, _expected(module, args)


def _expected(module: nn.Module, args: Sequence[Tensor]) -> list[np.ndarray]:
    """Outputs of the module, computed in float32 and rounded once: PyTorch's own float16 on the CPU is no witness."""
    import torch

    with torch.no_grad():
        outputs = copy.deepcopy(module).float()(*(arg.float() for arg in args))
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    return [output.to(args[0].dtype).numpy() for output in outputs]


def _affine_grid(theta: Any, size: Sequence[Any], align_corners: bool) -> Any:
    """A translation of ATen's operator: without one, torch.onnx decomposes it and no AffineGrid is in the model."""
    from onnxscript import opset20

    op: Any = opset20
    if all(isinstance(length, int) for length in size):
        sizes = op.Constant(value_ints=list(size))
    else:
        one_axis = op.Constant(value_ints=[1])
        lengths = (
            op.Constant(value_ints=[length]) if isinstance(length, int) else op.Reshape(length, one_axis)
            for length in size
        )
        sizes = op.Concat(*lengths, axis=0)
    return op.AffineGrid(theta, sizes, align_corners=int(align_corners))


def _image_axes(*names: str, inputs: int = 2) -> DynamicShapes:
    axes = {"N": 0, "H": 2, "W": 3}
    return ({axes[name]: name for name in names},) * inputs


NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        Network("spatial_transformer", architectures.spatial_transformer, _image_axes("N", inputs=1)),
        Network("registration_2d", architectures.registration_2d, _image_axes("N", "H", "W")),
        Network("registration_3d", architectures.registration_3d),
        Network(
            "deformable_attention", architectures.deformable_attention, ({0: "N", 1: "Q"}, {0: "N", 1: "Q"}, {0: "N"})
        ),
        Network("face_reenactment", architectures.face_reenactment, _image_axes("N")),
        Network("optical_flow", architectures.optical_flow, _image_axes("N"), opset=18),
        Network("label_warp", architectures.label_warp, _image_axes("N", "H", "W")),
        Network("bilateral_slicing_float16", architectures.bilateral_slicing_float16, tolerance=2e-3),
    )
}
