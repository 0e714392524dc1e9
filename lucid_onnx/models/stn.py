"""A classifier that straightens its image first: spatial transformer, then a small convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir
from onnxscript import OpBuilder, nn

from lucid_onnx.models.checks import check_count, check_sizes, theta_spec
from lucid_onnx.models.layers import Conv, Linear, pooled_relu, pooled_size
from lucid_onnx.models.spatial_transformer import SpatialTransformer
from lucid_onnx.operators.building import Value
from lucid_onnx.operators.tensors import TensorSpec


class STN(nn.Module):
    """Spatial transformer network for classification: an image in, scores of the classes and theta out.

    Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015, section 4.1.

    Parameters
    ----------
    sizes, channels, mode, padding_mode, align_corners, seed
        As in `SpatialTransformer`.
    classes : int
        Number of classes.

    Examples
    --------
    >>> [(spec.name, spec.shape) for spec in STN().outputs()]
    [('logits', ('N', 10)), ('theta', ('N', 2, 3))]
    """

    def __init__(
        self,
        sizes: Sequence[int] = (28, 28),
        channels: int = 1,
        classes: int = 10,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_count("STN", "classes", classes)
        sizes = check_sizes("STN", "sizes", sizes, least=4)
        self.transformer = SpatialTransformer(sizes, channels, None, mode, padding_mode, align_corners, seed=seed)
        rng = np.random.default_rng(seed + 1)
        self.axes = self.transformer.axes
        self.conv1 = Conv(channels, 10, 5, self.axes, rng)
        self.conv2 = Conv(10, 20, 5, self.axes, rng)
        self.fc1 = Linear(20 * pooled_size(sizes, 2), 50, rng)
        self.fc2 = Linear(50, classes, rng)
        self._classes = classes

    def inputs(self) -> list[TensorSpec]:
        """Name, dtype and shape of the image."""
        return self.transformer.inputs()

    def outputs(self) -> list[TensorSpec]:
        """Names, dtypes and shapes of the scores, before any softmax, and of theta."""
        return [TensorSpec("logits", ir.DataType.FLOAT, ("N", self._classes)), theta_spec(self.axes)]

    def forward(self, op: OpBuilder, x: Value) -> tuple[Value, Value]:
        """Scores (N, classes), and theta, of images `x` (N, C, …)."""
        warped, theta = self.transformer(op, x)
        features = pooled_relu(op, self.conv1(op, warped), self.axes)
        features = pooled_relu(op, self.conv2(op, features), self.axes)
        features = op.Relu(self.fc1(op, op.Flatten(features, axis=1)))
        return self.fc2(op, features), theta
