"""Each model beside the same network written in PyTorch: same weights, same outputs."""

import numpy as np
import pytest

import lucid_onnx as lo
from lucid_onnx.models import AffineWarp

torch = pytest.importorskip("torch", reason="PyTorch is the twin")
from twins import CASES, with_a_moving_theta  # noqa: E402

functional = torch.nn.functional


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
