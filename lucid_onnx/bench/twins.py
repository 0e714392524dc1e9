"""The networks whose gradients are measured, in PyTorch, which is imported only when one is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def stn() -> torch.nn.Module:
    """The STN of the zoo for images of 28 x 28, its scores alone; theta depends on the image.

    Its parameters have the names and shapes of those of `lucid_onnx.models.STN`.
    """
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    def pooled(x: Tensor) -> Tensor:
        return functional.relu(functional.max_pool2d(x, 2))

    class Localization(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv2d(1, 8, 7, padding=3), nn.Conv2d(8, 10, 5, padding=2)
            self.fc1, self.fc2 = nn.Linear(10 * 7 * 7, 32), nn.Linear(32, 6)
            self.fc2.bias.data = torch.eye(2, 3).flatten()

        def forward(self, x: Tensor) -> Tensor:
            features = pooled(self.conv2(pooled(self.conv1(x))))
            theta: Tensor = self.fc2(functional.relu(self.fc1(features.flatten(1))))
            return theta.view(-1, 2, 3)

    class STN(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = nn.ModuleDict({"localization": Localization()})
            self.conv1, self.conv2 = nn.Conv2d(1, 10, 5, padding=2), nn.Conv2d(10, 20, 5, padding=2)
            self.fc1, self.fc2 = nn.Linear(20 * 7 * 7, 50), nn.Linear(50, 10)

        def forward(self, x: Tensor) -> Tensor:
            grid = functional.affine_grid(self.transformer["localization"](x), list(x.shape), align_corners=False)
            warped = functional.grid_sample(x, grid, align_corners=False)
            features = pooled(self.conv2(pooled(self.conv1(warped))))
            scores: Tensor = self.fc2(functional.relu(self.fc1(features.flatten(1))))
            return scores

    torch.manual_seed(0)
    return STN()


def unet(size: int = 32) -> torch.nn.Module:
    """A network that registers a volume of `size` per axis with another one, after VoxelMorph: it returns it warped.

    Source: G. Balakrishnan et al., *VoxelMorph: A Learning Framework for Deformable Medical Image Registration*, 2019.
    """
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    def conv(channels: int, results: int, stride: int = 1) -> nn.Conv3d:
        return nn.Conv3d(channels, results, 3, stride, padding=1)

    class UNet(nn.Module):
        identity: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList([conv(2, 16), conv(16, 32, 2), conv(32, 32, 2)])
            self.up = nn.ModuleList([conv(64, 32), conv(48, 16)])
            self.flow = conv(16, 3)
            identity = functional.affine_grid(torch.eye(3, 4)[None], [1, 1, size, size, size], align_corners=False)
            self.register_buffer("identity", identity)

        def forward(self, moving: Tensor, fixed: Tensor) -> Tensor:
            features, skips = torch.cat([moving, fixed], 1), []
            for layer in self.down:
                features = functional.leaky_relu(layer(features), 0.2)
                skips.append(features)
            skips.pop()
            for layer in self.up:
                larger = functional.interpolate(features, scale_factor=2, mode="nearest")
                features = functional.leaky_relu(layer(torch.cat([larger, skips.pop()], 1)), 0.2)
            grid = self.identity + self.flow(features).permute(0, 2, 3, 4, 1)
            return functional.grid_sample(moving, grid, padding_mode="border", align_corners=False)

    torch.manual_seed(0)
    return UNet().eval()
