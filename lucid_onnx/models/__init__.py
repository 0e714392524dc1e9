"""The zoo: spatial-transformer models as `onnxscript.nn` modules, by name."""

from collections.abc import Callable

from onnxscript import nn

from lucid_onnx.models.affine_warp import AffineWarp
from lucid_onnx.models.spatial_transformer import SpatialTransformer
from lucid_onnx.models.stn import STN

ZOO: dict[str, Callable[..., nn.Module]] = {
    "affine_warp": AffineWarp,
    "spatial_transformer": SpatialTransformer,
    "stn": STN,
}
"""Every model by its name: what `lucid_onnx.export` and ``lucid-onnx export`` know."""

__all__ = ["STN", "ZOO", "AffineWarp", "SpatialTransformer"]
