"""Each model beside the same network written in PyTorch: same weights, same outputs."""

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.models import STN, AffineWarp, SpatialTransformer

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


@pytest.mark.parametrize("opset", [16, 20])
@pytest.mark.parametrize(("model", "twin", "arguments"), CASES)
def test_agrees_with_its_twin(tmp_path, model, twin, arguments, opset):
    module, reference = model(**arguments), twin(**arguments)
    with_a_moving_theta(module, reference)
    lo.export(module, tmp_path / "model.onnx", opset=opset)
    session = lo.session(tmp_path / "model.onnx")
    for batch in (1, 3):
        x = np.random.default_rng(batch).standard_normal((batch, arguments["channels"], *arguments["sizes"]))
        expected = [tensor.detach().numpy() for tensor in reference(torch.tensor(x, dtype=torch.float32))]
        for ours, theirs in zip(session.run(None, {"X": x.astype(np.float32)}), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rank", [4, 5])
@pytest.mark.parametrize("output_sizes", [None, (3, 5)])
def test_affine_warp_of_any_size(tmp_path, rank, output_sizes):
    d = rank - 2
    output_sizes = None if output_sizes is None else (4, *output_sizes)[-d:]
    lo.export(AffineWarp(rank=rank, output_sizes=output_sizes, mode="nearest"), tmp_path / "warp.onnx")
    warp = lo.session(tmp_path / "warp.onnx")
    rng = np.random.default_rng(rank)
    for shape in ((1, 3, 4, 6, 7), (2, 1, 5, 5, 1)):
        x = rng.standard_normal((*shape[:2], *shape[-d:])).astype(np.float32)
        theta = rng.standard_normal((shape[0], d, d + 1)).astype(np.float32)
        size = (*x.shape[:2], *(output_sizes or x.shape[2:]))
        grid = functional.affine_grid(torch.tensor(theta), size, align_corners=False)
        expected = functional.grid_sample(torch.tensor(x), grid, "nearest", align_corners=False)
        np.testing.assert_array_equal(warp.run(None, {"X": x, "theta": theta})[0], expected.numpy())
