"""An image under an affine map that is given: affine_grid, then grid_sample."""

from __future__ import annotations

from collections.abc import Sequence

from onnxscript import OpBuilder, nn

from lucid_onnx.models.checks import check_count, check_sizes, image_spec, theta_spec
from lucid_onnx.operators import affine_grid, grid_sample
from lucid_onnx.operators.building import Value, dims, named
from lucid_onnx.operators.tensors import TensorSpec
from lucid_onnx.reference.schema import as_flag, check_modes, check_rank


class AffineWarp(nn.Module):
    """Sample an image, or a volume, where an affine map of its output pixels points.

    Source: M. Jaderberg et al., *Spatial Transformer Networks*, 2015, sections 3.2 and 3.3.

    Parameters
    ----------
    sizes : sequence of int, optional
        (H, W) or (D, H, W) of the input; by default images of any height and width.
    channels : int, optional
        Channels of the input; by default any number.
    output_sizes : sequence of int, optional
        Sizes of the output; by default those of the input.
    mode, padding_mode, align_corners
        As in `lucid_onnx.grid_sample`.
    rank : {4, 5}, optional
        5 for volumes of any size; otherwise `sizes` tell, or it is 4.

    Examples
    --------
    >>> warp = AffineWarp(mode="bicubic", padding_mode="border")
    >>> [spec.shape for spec in warp.inputs()]
    [('N', 'C', 'H', 'W'), ('N', 2, 3)]
    """

    def __init__(
        self,
        sizes: Sequence[int] | None = None,
        channels: int | None = None,
        output_sizes: Sequence[int] | None = None,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: bool = False,
        rank: int | None = None,
    ) -> None:
        super().__init__()
        check_modes("AffineWarp", mode, padding_mode)
        if channels is not None:
            check_count("AffineWarp", "channels", channels)
        self._align_corners = as_flag(align_corners, "AffineWarp")
        if rank is not None:
            rank = check_rank("AffineWarp", rank)
        self.axes = (rank or 4) - 2
        if sizes is not None:
            sizes = check_sizes("AffineWarp", "sizes", sizes, None if rank is None else rank - 2)
            self.axes = len(sizes)
        if output_sizes is not None:
            output_sizes = check_sizes("AffineWarp", "output_sizes", output_sizes, self.axes)
        self._sizes, self._channels, self._output_sizes = sizes, channels, output_sizes
        self._how = (mode, padding_mode, self._align_corners)

    def inputs(self) -> list[TensorSpec]:
        """Names, dtypes and shapes of the inputs: the image and theta."""
        return [image_spec("X", self._channels, self._sizes, self.axes), theta_spec(self.axes)]

    def outputs(self) -> list[TensorSpec]:
        """Name, dtype and shape of the warped image."""
        return [image_spec("Y", self._channels, self._output_sizes or self._sizes, self.axes)]

    def forward(self, op: OpBuilder, x: Value, theta: Value) -> Value:
        """Warped image (N, C, …) of `x` (N, C, …) under `theta` (N, 2, 3) or (N, 3, 4)."""
        rank = self.axes + 2
        spatial = dims(op, x, 2, rank) if self._output_sizes is None else list(self._output_sizes)
        size = op.Concat(dims(op, x, 0, 2), spatial, axis=0)
        grid = named(affine_grid(op, theta, size, self._align_corners, rank), "grid")
        return grid_sample(op, x, grid, *self._how)
