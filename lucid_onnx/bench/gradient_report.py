"""What the rows of gradients come to: the bars that `gradient` is held to, and the tables."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter
from typing import Any

from lucid_onnx.bench.bars import Bar, Rule, Table, of_bound, shown
from lucid_onnx.bench.cases import SHAPES
from lucid_onnx.bench.gradient_rows import NETWORK_ERROR, BuildingRow, GradientRow, NetworkRow
from lucid_onnx.bench.plot import plot_gradients


@dataclass(frozen=True)
class GradientResults:
    """What `run_gradient_bench` measured.

    Parameters
    ----------
    cells : list of GradientRow
        GridSample and both its gradients.
    networks : list of NetworkRow
        Whole networks, where PyTorch is installed.
    building : list of BuildingRow
        Models that grow.
    notes : list of str
        Why a peer has no times.
    """

    cells: Sequence[GradientRow]
    networks: Sequence[NetworkRow]
    building: Sequence[BuildingRow]
    notes: Sequence[str]

    @property
    def ok(self) -> bool:
        """Whether every result is within the tolerance."""
        return all(row.ok for row in self._judged())

    def _judged(self) -> list[GradientRow | NetworkRow]:
        """The rows of which the results are known."""
        return [*self.cells, *self.networks]

    def bars(self) -> list[Bar]:
        """What was measured, held against the bars.

        Examples
        --------
        >>> {bar.verdict for bar in GradientResults([], [], [], []).bars()}
        {'not measured'}
        """
        return [
            *(rule.judge(self.cells) for rule in _CELLS),
            *(rule.judge(self.networks) for rule in _NETWORKS),
            *(rule.judge(self.building) for rule in _BUILDING),
            _MEMORY.judge(self._judged()),
            _ACCURACY.judge(self.cells),
            _NETWORK_ACCURACY.judge(self.networks),
        ]

    def tables(self) -> list[Table]:
        """Of the cells, the networks and the models that grow; those that were measured. Times in milliseconds."""
        found = (_table_of_cells(self.cells), _table_of_networks(self.networks), _table_of_building(self.building))
        return [(header, lines) for header, lines in found if lines]

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the cells."""
        plot_gradients(self.cells, path)

    def as_dict(self) -> dict[str, Any]:
        """The results for JSON."""
        return {
            "cells": [row.as_dict() for row in self.cells],
            "networks": [row.as_dict() for row in self.networks],
            "building": [asdict(row) for row in self.building],
            "notes": list(self.notes),
            "bars": [bar.as_dict() for bar in self.bars()],
        }


def _basic(row: GradientRow) -> bool:
    """Linear sampling with zeros of the shapes that the bars are about."""
    return row.shape in SHAPES and row.basic is None


_OURS, _GAIN, _OF_BASIC = "ours / pytorch", "onnx-ad / ours", "ours / linear, zeros"
_OF_PYTORCH = attrgetter("of_pytorch")

_CELLS: tuple[Rule[GradientRow], ...] = (
    Rule("linear, zeros: geometric mean", _OURS, 2, _OF_PYTORCH, _basic, mean=True, aim=1.5),
    Rule("C, E: linear, zeros", _OURS, 1, _OF_PYTORCH, lambda row: _basic(row) and row.shape in ("C", "E")),
    Rule("B: linear, zeros", _OURS, 2, _OF_PYTORCH, lambda row: _basic(row) and row.shape == "B"),
    Rule("linear, zeros: every shape", _OURS, 8, _OF_PYTORCH, _basic),
    Rule(
        "every other linear and nearest cell", _OF_BASIC, 1.5, attrgetter("of_basic"), lambda row: row.mode != "cubic"
    ),
    Rule("every cubic cell", _OF_BASIC, 4, attrgetter("of_basic"), lambda row: row.mode == "cubic"),
    Rule("beside onnx-ad: geometric mean", _GAIN, 2, attrgetter("gain"), _basic, least=True, mean=True, aim=3),
    Rule("beside onnx-ad: every cell", _GAIN, 1, attrgetter("gain"), least=True),
)
_NETWORKS: tuple[Rule[NetworkRow], ...] = tuple(
    Rule(name, _OURS, 2, _OF_PYTORCH, lambda row, name=name: row.name.startswith(name), aim=1.5)  # type: ignore[misc]
    for name in ("STN", "registration U-Net")
)
_BUILDING: tuple[Rule[BuildingRow], ...] = (
    Rule("building: 1,000 nodes", "seconds", 5, attrgetter("seconds"), lambda row: row.nodes == 1000),
    Rule("building: time a node grows", "by a factor", 1.25, attrgetter("growth")),
)
_MEMORY = Rule[GradientRow | NetworkRow]("memory", _OURS, 3, attrgetter("memory"))
_ACCURACY = Rule[GradientRow](
    "accuracy by the tolerance rule", "error / bound", 1, lambda row: of_bound(row.verdicts.values())
)
_NETWORK_ACCURACY = Rule[NetworkRow]("accuracy of networks", "relative error", NETWORK_ERROR, attrgetter("error"))


def _table_of_cells(rows: Sequence[GradientRow]) -> Table:
    header = (
        *("shape", "grid", "way", "ours", "pytorch", "onnx-ad", "ours/pytorch", "onnx-ad/ours", "ours/linear, zeros"),
        *("memory", "error/bound", ""),
    )
    return header, [
        (
            *(row.shape, row.grid, row.way),
            *(shown(time) for time in (row.ours, row.pytorch, row.onnx_ad)),
            *(shown(ratio) for ratio in (row.of_pytorch, row.gain, row.of_basic, row.memory)),
            shown(of_bound(row.verdicts.values())),
            _verdict(row),
        )
        for row in rows
    ]


def _table_of_networks(rows: Sequence[NetworkRow]) -> Table:
    header = ("network", "ours", "pytorch", "ours/pytorch", "memory", "built in s", "error", "pytorch's", "")
    return header, [
        (
            row.name,
            *(shown(number) for number in (row.ours, row.pytorch, row.of_pytorch, row.memory, row.building)),
            *(f"{error:.1e}" for error in (row.error, row.pytorch_error)),
            _verdict(row),
        )
        for row in rows
    ]


def _table_of_building(rows: Sequence[BuildingRow]) -> Table:
    header = ("nodes", "built in s", "time a node grows by")
    return header, [(str(row.nodes), shown(row.seconds), shown(row.growth)) for row in rows]


def _verdict(row: GradientRow | NetworkRow) -> str:
    return "ok" if row.ok else "OVER"
