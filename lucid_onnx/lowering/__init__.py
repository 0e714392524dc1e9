"""Rewriting a model for a runtime: what each runs is a table, and the rewriter does what it says."""

from lucid_onnx.lowering.report import Entry, LoweringReport
from lucid_onnx.lowering.rewrite import lower, lower_ir
from lucid_onnx.lowering.rows import COLUMNS, FAULTS, Kernel, Target
from lucid_onnx.lowering.tables import find_target
from lucid_onnx.lowering.targets import TARGETS

__all__ = [
    "COLUMNS",
    "FAULTS",
    "TARGETS",
    "Entry",
    "Kernel",
    "LoweringReport",
    "Target",
    "find_target",
    "lower",
    "lower_ir",
]
