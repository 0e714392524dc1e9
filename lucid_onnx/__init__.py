"""affine_grid and grid_sample for ONNX: semantics, graphs of standard operators, sessions and exports.

Importing the package needs NumPy only; what a name needs is imported when the name is first used.

Examples
--------
>>> import numpy as np
>>> import lucid_onnx as lo
>>> theta = np.array([[[0.0, -1.0, 0.0], [1.0, 0.0, 0.0]]])
>>> grid = lo.affine_grid(theta, (1, 1, 2, 2))
>>> lo.grid_sample(np.array([[[[1.0, 2.0], [3.0, 4.0]]]]), grid)[0, 0].tolist()
[[2.0, 4.0], [1.0, 3.0]]
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lucid_onnx._version import __version__

if TYPE_CHECKING:
    from lucid_onnx import conformance as conformance
    from lucid_onnx import gradient as gradient
    from lucid_onnx import reference as reference
    from lucid_onnx.exporters import export
    from lucid_onnx.lowering import LoweringReport, lower
    from lucid_onnx.operators import operator_model
    from lucid_onnx.reference import (
        ArgumentError,
        DtypeError,
        LucidError,
        RunError,
        UnsupportedError,
        affine_grid,
        autocast,
        grid_sample,
    )
    from lucid_onnx.runtime import Session, session

_HOME = {
    "ArgumentError": "reference",
    "DtypeError": "reference",
    "LoweringReport": "lowering",
    "LucidError": "reference",
    "RunError": "reference",
    "Session": "runtime",
    "UnsupportedError": "reference",
    "affine_grid": "reference",
    "autocast": "reference",
    "export": "exporters",
    "grid_sample": "reference",
    "lower": "lowering",
    "operator_model": "operators",
    "session": "runtime",
}
_ROOMS = ("conformance", "exporters", "gradient", "lowering", "models", "operators", "reference", "runtime")

__all__ = [
    "ArgumentError",
    "DtypeError",
    "LoweringReport",
    "LucidError",
    "RunError",
    "Session",
    "UnsupportedError",
    "__version__",
    "affine_grid",
    "autocast",
    "conformance",
    "export",
    "gradient",
    "grid_sample",
    "lower",
    "operator_model",
    "reference",
    "session",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"lucid_onnx.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"lucid_onnx.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lucid_onnx' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ROOMS})
