"""The models of the zoo, written in PyTorch: same names and shapes of weights."""

import numpy as np
import pytest

from lucid_onnx.models import STN, SpatialTransformer

torch = pytest.importorskip("torch", reason="PyTorch is the twin")
nn, functional = torch.nn, torch.nn.functional


def pooled_relu(x):
    pool = functional.max_pool2d if x.ndim == 4 else functional.max_pool3d
    return functional.relu(pool(x, 2))


class TorchLocalization(nn.Module):
    def __init__(self, sizes, channels, hidden=32):
        super().__init__()
        self.axes = len(sizes)
        conv = nn.Conv2d if self.axes == 2 else nn.Conv3d
        self.conv1 = conv(channels, 8, 7, padding=3)
        self.conv2 = conv(8, 10, 5, padding=2)
        self.fc1 = nn.Linear(10 * int(np.prod([size // 4 for size in sizes])), hidden)
        self.fc2 = nn.Linear(hidden, self.axes * (self.axes + 1))

    def forward(self, x):
        x = pooled_relu(self.conv2(pooled_relu(self.conv1(x))))
        return self.fc2(functional.relu(self.fc1(x.flatten(1)))).view(-1, self.axes, self.axes + 1)


class TorchSpatialTransformer(nn.Module):
    def __init__(self, sizes, channels, output_sizes=None, mode="bilinear", padding_mode="zeros", align_corners=False):
        super().__init__()
        self.localization = TorchLocalization(sizes, channels)
        self.output_sizes = output_sizes
        self.how = (mode, padding_mode, align_corners)

    def forward(self, x):
        theta = self.localization(x)
        size = (*x.shape[:2], *(self.output_sizes or x.shape[2:]))
        grid = functional.affine_grid(theta, size, align_corners=self.how[2])
        return functional.grid_sample(x, grid, *self.how), theta


class TorchSTN(nn.Module):
    def __init__(self, sizes, channels, classes=10):
        super().__init__()
        self.transformer = TorchSpatialTransformer(sizes, channels)
        conv = nn.Conv2d if len(sizes) == 2 else nn.Conv3d
        self.conv1 = conv(channels, 10, 5, padding=2)
        self.conv2 = conv(10, 20, 5, padding=2)
        self.fc1 = nn.Linear(20 * int(np.prod([size // 4 for size in sizes])), 50)
        self.fc2 = nn.Linear(50, classes)

    def forward(self, x):
        warped, theta = self.transformer(x)
        features = pooled_relu(self.conv2(pooled_relu(self.conv1(warped))))
        return self.fc2(functional.relu(self.fc1(features.flatten(1)))), theta


def with_a_moving_theta(module, twin):
    """Weights of the twin that make theta depend on the image, loaded into both: names and shapes are the same."""
    import onnx_ir as ir

    generator = torch.Generator().manual_seed(0)
    state = {name: tensor.clone() for name, tensor in twin.state_dict().items()}
    (fc2,) = (name for name in state if name.endswith("localization.fc2.weight"))
    state[fc2] = torch.randn(state[fc2].shape, generator=generator) * 0.3
    twin.load_state_dict(state)
    module.load_state_dict({name: ir.tensor(tensor.numpy()) for name, tensor in state.items()})


CASES = [
    (SpatialTransformer, TorchSpatialTransformer, {"sizes": (28, 28), "channels": 1}),
    (SpatialTransformer, TorchSpatialTransformer, {"sizes": (17, 30), "channels": 3, "output_sizes": (9, 5)}),
    (
        SpatialTransformer,
        TorchSpatialTransformer,
        {"sizes": (12, 12), "channels": 2, "mode": "bicubic", "padding_mode": "reflection", "align_corners": True},
    ),
    (SpatialTransformer, TorchSpatialTransformer, {"sizes": (8, 9, 10), "channels": 2, "padding_mode": "border"}),
    (STN, TorchSTN, {"sizes": (28, 28), "channels": 1}),
    (STN, TorchSTN, {"sizes": (8, 8, 8), "channels": 2, "classes": 3}),
]
