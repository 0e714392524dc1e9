"""The same two operators as ONNX graphs of standard operators.

``coordinates``, ``interpolation``, ``affine_grid`` and ``grid_sample`` mirror `lucid_onnx.reference`, function by
function; the other files build models of them.
"""

from lucid_onnx.operators.affine_grid import affine_grid, affine_grid_backward
from lucid_onnx.operators.grid_sample import grid_sample, grid_sample_backward
from lucid_onnx.operators.model import OPERATORS, TARGETS, operator_function, operator_model

__all__ = [
    "OPERATORS",
    "TARGETS",
    "affine_grid",
    "affine_grid_backward",
    "grid_sample",
    "grid_sample_backward",
    "operator_function",
    "operator_model",
]
