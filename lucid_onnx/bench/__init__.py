"""Measuring what lowering gains, and what gradients cost: beside onnxruntime's own kernel, PyTorch and onnx-ad."""

from lucid_onnx.bench.bars import Bar
from lucid_onnx.bench.cases import LOWERED_SHAPES, SHAPES, Cell, Shape, cells, gradient_cells, parse_shapes
from lucid_onnx.bench.gradient_report import GradientResults
from lucid_onnx.bench.gradient_rows import GradientRow
from lucid_onnx.bench.gradient_run import run_gradient_bench
from lucid_onnx.bench.machine import machine
from lucid_onnx.bench.plot import check_plot, plot, plot_gradients
from lucid_onnx.bench.report import LoweringResults, Summary, summary, table
from lucid_onnx.bench.rows import Row
from lucid_onnx.bench.run import run_bench

__all__ = [
    "LOWERED_SHAPES",
    "SHAPES",
    "Bar",
    "Cell",
    "GradientResults",
    "GradientRow",
    "LoweringResults",
    "Row",
    "Shape",
    "Summary",
    "cells",
    "check_plot",
    "gradient_cells",
    "machine",
    "parse_shapes",
    "plot",
    "plot_gradients",
    "run_bench",
    "run_gradient_bench",
    "summary",
    "table",
]
