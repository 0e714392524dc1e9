"""Measuring what lowering gains: GridSample of onnxruntime beside what `lower` makes of it, and PyTorch."""

from lucid_onnx.bench.cases import SHAPES, Cell, Shape, cells, parse_shapes
from lucid_onnx.bench.plot import check_plot, plot
from lucid_onnx.bench.report import Bar, Summary, machine, summary, table
from lucid_onnx.bench.rows import Row
from lucid_onnx.bench.run import run_bench

__all__ = [
    "SHAPES",
    "Bar",
    "Cell",
    "Row",
    "Shape",
    "Summary",
    "cells",
    "check_plot",
    "machine",
    "parse_shapes",
    "plot",
    "run_bench",
    "summary",
    "table",
]
