"""The semantics: NumPy forward and backward of affine_grid and grid_sample. Imports nothing of ONNX."""

from lucid_onnx.reference.affine_grid import AffineGridBackward, affine_grid, affine_grid_backward
from lucid_onnx.reference.grid_sample import (
    GridSampleBackward,
    grid_sample,
    grid_sample_backward,
    grid_sample_nd,
    grid_sample_nd_backward,
)
from lucid_onnx.reference.schema import (
    AmpPolicy,
    ArgumentError,
    DtypeError,
    LucidError,
    OpSchema,
    RunError,
    UnsupportedError,
    autocast,
)

__all__ = [
    "AffineGridBackward",
    "AmpPolicy",
    "ArgumentError",
    "DtypeError",
    "GridSampleBackward",
    "LucidError",
    "OpSchema",
    "RunError",
    "UnsupportedError",
    "affine_grid",
    "affine_grid_backward",
    "autocast",
    "grid_sample",
    "grid_sample_backward",
    "grid_sample_nd",
    "grid_sample_nd_backward",
]
