"""One pass over the nodes of a typed model: each is done with as the table says, and the report notes it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from lucid_onnx.lowering.build import Constant, Operand, replacement
from lucid_onnx.lowering.decide import Decision, Recipe, decide
from lucid_onnx.lowering.kernels import FAR, spelled
from lucid_onnx.lowering.nodes import GUARDED, Sampling, constant_of, is_sampling, read, scopes, walk
from lucid_onnx.lowering.precision import Raiser
from lucid_onnx.lowering.report import Entry, LoweringReport
from lucid_onnx.lowering.rows import Target
from lucid_onnx.lowering.splice import Splicer, set_strings
from lucid_onnx.operators.building import Value
from lucid_onnx.operators.finishing import FOLDED
from lucid_onnx.reference.schema import TAPS

MOST_CONSTANT = 2**24
"""Numbers up to which an AffineGrid of constants is computed beforehand: 64 MB of float32."""

MANY_TAPS = 16
"""Pixels a point from which on a graph takes so long to build that a model gets it for `MOST_SIZES` sizes only."""

MOST_SIZES = 16

MOST_FOLDED = 2**20
"""Numbers up to which what is computed from a constant grid is: more would bloat the model for little time."""


class Rewriter:
    """Rewrites the nodes of one model."""

    def __init__(self, model: ir.Model, target: Target, report: LoweringReport) -> None:
        self._model, self._target, self._report = model, target, report
        self._opset, self._finite = report.opset_after, report.assume_finite
        self._splicer = Splicer(model)
        self._raiser = Raiser(self._splicer)
        self._sizes: set[tuple[Sampling, tuple[int | None, ...]]] = set()

    def run(self) -> None:
        """Rewrite every node, those of subgraphs and functions included."""
        for scope in scopes(self._model):
            self._splicer.scope = scope
            where = scope.name if isinstance(scope, ir.Function) else ""
            for node in walk(scope):
                if is_sampling(node):
                    self._rewrite(node, where)
        self._splicer.drop_unused_constants()

    def _rewrite(self, node: ir.Node, where: str) -> None:
        sampling = read(node)
        grid = constant_of(node.inputs[1]) if sampling.op == "GridSample" and node.inputs[1] is not None else None
        known = GUARDED in node.metadata_props or (grid is not None and _is_near(grid))
        decision = decide(self._target, sampling, self._opset, self._finite, known)
        name, op = node.name or node.outputs[0].name or "", node.op_type
        action, why = self._done(node, sampling, decision, self._finite or known)
        source = "" if decision.kernel is None else decision.kernel.source
        self._report.entries.append(Entry(name, op, where, str(sampling), action, why, source))

    def _done(self, node: ir.Node, sampling: Sampling, decision: Decision, finite: bool) -> tuple[str, str]:
        """Do what was decided, and say it."""
        if self._is_folded(node, sampling):
            return "folded", "theta and size are constants"
        why = decision.why(self._opset)
        casts = decision.form != "expand" and not decision.keep_image and sampling.dtype != decision.dtype
        if decision.form == "keep" and not casts and sampling.grid_dtype == decision.dtype:
            return ("respelled" if self._spell(node, sampling) else "kept"), why
        if casts:
            why += f"; cast to {decision.dtype.numpy().name} and back"
        self._replace(node, sampling, decision.recipe(self._opset, finite))
        if decision.form == "canonical":
            return ("guarded" if decision.faults else "canonicalised"), why
        return ("cast" if decision.form == "keep" else "expanded"), why

    def _spell(self, node: ir.Node, sampling: Sampling) -> bool:
        """Have a node that is kept say its mode in the spelling of the opset."""
        if sampling.op == "AffineGrid":
            return False
        return set_strings(node, {"mode": spelled(sampling.mode, self._opset)})

    def _is_folded(self, node: ir.Node, sampling: Sampling) -> bool:
        """Compute an AffineGrid of constants beforehand, where it is one; whether it was."""
        theta = None if node.inputs[0] is None else constant_of(node.inputs[0])
        if sampling.op != "AffineGrid" or theta is None or sampling.sizes is None:
            return False
        points = math.prod((theta.shape.numpy()[0], *sampling.sizes))
        if points * len(sampling.sizes) > MOST_CONSTANT:
            return False
        recipe = Decision("expand", None, sampling.dtype).recipe(self._opset, finite=True)
        operands = tuple(_operand(value, (), True) for value in node.inputs if value is not None)
        self._splicer.replace(node, replacement(sampling, recipe, operands, 4 * points), [])
        return True

    def _replace(self, node: ir.Node, sampling: Sampling, recipe: Recipe) -> None:
        """Put in the place of a node what the recipe says."""
        first, second = (value for value in node.inputs[:2] if value is not None)
        largest = FOLDED
        if sampling.op == "AffineGrid":
            wide = second
            operand = _operand(second, (sampling.rank,), sampling.sizes is not None)
        else:
            wide = self._raiser.raised(second)
            points, folds = _folds(wide, sampling, recipe)
            if folds:
                largest = max(FOLDED, 2 * points)
            shape = _grid_shape(wide, sampling)
            if recipe.form == "expand" and self._shares(sampling, shape):
                free = (None,) * (sampling.rank - 2)
                sampling, shape = replace(sampling, shape=(*sampling.shape[:2], *free)), (shape[0], *free, shape[-1])
            operand = _operand(wide, shape, folds)
        operands = (_operand(first, sampling.shape, False), operand)
        inputs = [first] if operand.constant is not None else [first, wide]
        self._splicer.replace(node, replacement(sampling, recipe, operands, largest), inputs)
        self._splicer.remove_unused([first, second, wide])

    def _shares(self, sampling: Sampling, grid: tuple[int | None, ...]) -> bool:
        """Whether an expansion is one of too many sizes to be built for its own.

        A graph for all sizes computes them at run time, which is nothing beside 64 taps a point.
        """
        if taps(sampling) < MANY_TAPS:
            return False
        self._sizes.add((sampling, grid))
        return taps(sampling) > MANY_TAPS or len(self._sizes) > MOST_SIZES


def taps(sampling: Sampling) -> int:
    """How many pixels a point of a GridSample reads."""
    count: int = TAPS[sampling.mode] ** (sampling.rank - 2)
    return count


def _folds(grid: Value, sampling: Sampling, recipe: Recipe) -> tuple[int, bool]:
    """Numbers in a constant grid, and whether what is made of them is few enough to be folded."""
    tensor = constant_of(grid)
    if tensor is None:
        return 0, False
    each = 2 * taps(sampling) if recipe.form == "expand" else 1
    return tensor.size, tensor.size * each <= MOST_FOLDED


def _grid_shape(grid: Value, sampling: Sampling) -> tuple[int | None, ...]:
    """Shape of a grid, which is known by its rank at least."""
    axes = sampling.rank - 2
    if grid.shape is None:
        return (sampling.shape[0], *[None] * axes, axes)
    return tuple(d if isinstance(d, int) else None for d in grid.shape)


def _operand(value: Value, shape: tuple[int | None, ...], as_constant: bool) -> Operand:
    assert value.dtype is not None
    tensor = constant_of(value) if as_constant else None
    if tensor is None:
        return Operand(value.dtype, shape)
    constant = Constant.of(tensor)
    return Operand(value.dtype, constant.shape, constant)


def _is_near(grid: ir.TensorProtocol) -> bool:
    """Whether the coordinates of a constant grid are finite, and near enough for every kernel."""
    values = np.abs(grid.numpy().astype(np.float64))
    return bool(np.all(values < FAR))
