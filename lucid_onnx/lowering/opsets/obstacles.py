"""Where a conversion ends: opsets beyond which no model goes, and nodes that cannot follow."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from lucid_onnx.operators.finishing import newest_opset
from lucid_onnx.reference.schema import UnsupportedError

OLDEST_TARGET = 13
"""The oldest opset to convert to: below it Softmax and the axes of many operators are other operators."""

OLDEST_SOURCE = 7
"""The oldest opset to convert from: before it arithmetic did not broadcast as NumPy does."""


def check_target(opset: int) -> None:
    """Raise unless models can be converted to `opset`."""
    newest = newest_opset()
    if not OLDEST_TARGET <= opset <= newest:
        raise UnsupportedError(
            f"convert_opset: models are converted to opset {OLDEST_TARGET} to {newest}, the newest that the installed "
            f"onnx {onnx.__version__} knows; got {opset}"
        )


def check_source(opset: int) -> None:
    """Raise unless nodes can be converted from `opset`."""
    if not OLDEST_SOURCE <= opset <= newest_opset():
        raise StuckError(f"models are converted from opset {OLDEST_SOURCE} to {newest_opset()}")


class StuckError(Exception):
    """A way that does not lead to the target, with the reason."""


@dataclass(frozen=True)
class Obstacle:
    """A node that cannot follow to another opset.

    Parameters
    ----------
    operator, node : str
        Its operator and name; the name of its first output where it has none.
    source, opset : int
        The version in force, and the one asked for.
    reason, advice : str
        Why it cannot follow, and what to do.

    Examples
    --------
    >>> print(Obstacle("Gelu", "act", 20, 16, "opset 16 has no Gelu", "use opset 20 or newer"))
    Gelu node 'act' cannot follow from opset 20 to 16: opset 16 has no Gelu; use opset 20 or newer
    """

    operator: str
    node: str
    source: int
    opset: int
    reason: str
    advice: str

    def __str__(self) -> str:
        return (
            f"{self.operator} node {self.node!r} cannot follow from opset {self.source} to {self.opset}: "
            f"{self.reason}; {self.advice}"
        )
