"""A spatial transformer: a network looks at an image, decides on an affine map, and warps the image by it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnxscript import OpBuilder, nn

from lucid_onnx.models.affine_warp import AffineWarp
from lucid_onnx.models.checks import check_count, check_sizes, image_spec, theta_spec
from lucid_onnx.models.layers import Conv, Linear, parameter, pooled_relu, pooled_size
from lucid_onnx.operators.building import Value, named
from lucid_onnx.operators.tensors import TensorSpec


class Localization(nn.Module):
    """The network that regresses theta: two convolutions, two linear layers; it starts at the identity.

    Parameters
    ----------
    sizes, channels
        Of the image.
    hidden : int
        Features between the two linear layers.
    rng : numpy.random.Generator
        Draws the starting values.
    """

    def __init__(self, sizes: Sequence[int], channels: int, hidden: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.axes = len(sizes)
        self.conv1 = Conv(channels, 8, 7, self.axes, rng)
        self.conv2 = Conv(8, 10, 5, self.axes, rng)
        self.fc1 = Linear(10 * pooled_size(sizes, 2), hidden, rng)
        self.fc2 = Linear(hidden, self.axes * (self.axes + 1), rng)
        # Jaderberg 2015, section 4: regressed from zero weights and the bias of the identity.
        self.fc2.weight = parameter(np.zeros((self.axes * (self.axes + 1), hidden)))
        self.fc2.bias = parameter(np.eye(self.axes, self.axes + 1).ravel())

    def forward(self, op: OpBuilder, x: Value) -> Value:
        """Theta (N, 2, 3) or (N, 3, 4) of images (N, C, …)."""
        features = pooled_relu(op, self.conv1(op, x), self.axes)
        features = pooled_relu(op, self.conv2(op, features), self.axes)
        features = op.Relu(self.fc1(op, op.Flatten(features, axis=1)))
        theta: Value = op.Reshape(self.fc2(op, features), [-1, self.axes, self.axes + 1])
        return theta


class SpatialTransformer(nn.Module):
    """Localisation network, affine_grid and grid_sample: an image in, the warped image and theta out.

    Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015.

    Parameters
    ----------
    sizes : sequence of int
        (H, W) or (D, H, W) of the input, each 4 or more.
    channels : int
        Channels of the input.
    output_sizes : sequence of int, optional
        Sizes of the output; by default those of the input.
    mode, padding_mode, align_corners
        As in `lucid_onnx.grid_sample`.
    hidden : int
        Features of the localisation network between its two linear layers.
    seed : int
        Decides on the starting values.

    Examples
    --------
    >>> transformer = SpatialTransformer(sizes=(28, 28), channels=1)
    >>> sorted(transformer.state_dict())[:2]
    ['localization.conv1.bias', 'localization.conv1.weight']
    """

    def __init__(
        self,
        sizes: Sequence[int] = (28, 28),
        channels: int = 1,
        output_sizes: Sequence[int] | None = None,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
        hidden: int = 32,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._sizes = check_sizes("SpatialTransformer", "sizes", sizes, least=4)
        check_count("SpatialTransformer", "channels", channels)
        check_count("SpatialTransformer", "hidden", hidden)
        check_count("SpatialTransformer", "seed", seed, least=0)
        self._channels = channels
        self.axes = len(self._sizes)
        self.localization = Localization(self._sizes, channels, hidden, np.random.default_rng(seed))
        self.warp = AffineWarp(self._sizes, channels, output_sizes, mode, padding_mode, align_corners)

    def inputs(self) -> list[TensorSpec]:
        """Name, dtype and shape of the image."""
        return [image_spec("X", self._channels, self._sizes, self.axes)]

    def outputs(self) -> list[TensorSpec]:
        """Names, dtypes and shapes of the warped image and of theta."""
        return [*self.warp.outputs(), theta_spec(self.axes)]

    def forward(self, op: OpBuilder, x: Value) -> tuple[Value, Value]:
        """Warped images, and the theta they were warped by, of images `x` (N, C, …)."""
        theta = named(self.localization(op, x), "theta")
        return self.warp(op, x, theta), theta
