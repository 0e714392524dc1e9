"""A suite that judges any runtime by the reference: cases, runtimes, tolerance, reports.

Examples
--------
>>> from lucid_onnx import conformance
>>> conformance.cases("nearest and nan")[0].probes
'NaN'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lucid_onnx.conformance.case import Case
    from lucid_onnx.conformance.outcome import Outcome
    from lucid_onnx.conformance.report import Report
    from lucid_onnx.conformance.running import run
    from lucid_onnx.conformance.suite import cases

# The plugin of pytest lives here, too, and pytest loads it whatever it is to test: a name is imported when it is used.
_HOME = {"Case": "case", "Outcome": "outcome", "Report": "report", "cases": "suite", "run": "running"}

__all__ = ["Case", "Outcome", "Report", "cases", "run"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"lucid_onnx.conformance.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lucid_onnx.conformance' has no attribute {name!r}")
