"""What the networks of `architectures` share: pixels, warps, displacements and a U-Net."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn


def pixel_positions(sizes: Sequence[int], like: Tensor) -> Tensor:
    """Index of every pixel, (1, d, *sizes), first spatial axis first."""
    import torch

    axes = [torch.arange(size, dtype=like.dtype) for size in sizes]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"))[None]


def normalized(positions: Tensor, sizes: Sequence[int], align_corners: bool) -> Tensor:
    """Pixel positions (N, d, *points), first axis first, as a grid (N, *points, d), last axis first."""
    import torch

    coordinates = [
        2 * positions[:, axis] / (size - 1) - 1 if align_corners else (2 * positions[:, axis] + 1) / size - 1
        for axis, size in enumerate(sizes)
    ]
    return torch.stack(coordinates[::-1], -1)


def warp(
    image: Tensor,
    displacement: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "border",
    align_corners: bool = True,
) -> Tensor:
    """The image (N, C, *sizes) read at every pixel's position plus its displacement (N, d, *sizes) in pixels."""
    from torch.nn.functional import grid_sample

    sizes = displacement.shape[2:]
    positions = pixel_positions(sizes, displacement) + displacement
    grid = normalized(positions, sizes, align_corners)
    warped: Tensor = grid_sample(image, grid, mode, padding_mode, align_corners)
    return warped


def integrated(velocity: Tensor, steps: int) -> Tensor:
    """The displacement of a stationary velocity, by scaling and squaring (Arsigny 2006): it is warped by itself."""
    displacement = velocity / float(2**steps)
    for _ in range(steps):
        displacement = displacement + warp(displacement, displacement)
    return displacement


def unet(conv: type[nn.Module], channels: int, outputs: int) -> nn.Module:
    """A U-Net of two levels for images of any size."""
    import torch
    from torch import nn
    from torch.nn.functional import interpolate, leaky_relu

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fine = conv(channels, 8, 3, padding=1)
            self.coarse = conv(8, 16, 3, padding=1, stride=2)
            self.joined = conv(24, 8, 3, padding=1)
            self.last = conv(8, outputs, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            fine = leaky_relu(self.fine(x), 0.2)
            coarse = leaky_relu(self.coarse(fine), 0.2)
            raised = interpolate(coarse, size=fine.shape[2:], mode="nearest")
            joined: Tensor = self.last(leaky_relu(self.joined(torch.cat([raised, fine], 1)), 0.2))
            return joined

    return UNet()
