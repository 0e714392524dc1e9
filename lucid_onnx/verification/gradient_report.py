"""What the verification of a gradient model found: a row for each direction, as a table, as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lucid_onnx.verification.report import for_json

GRADIENT_HEADER = ("with respect to", "where", "slope", "by the gradient", "error", "allowed", "verdict")
"""Columns of `GradientVerification.table`."""


@dataclass(frozen=True)
class SlopeRow:
    """A direction in which a gradient was compared with the slope of the original.

    Parameters
    ----------
    name : str
        What is moved.
    where : {"given", "made", "moved"}
        The point: inputs that were given or made, or what is differentiated for moved off them, away from a kink.
    slope : float
        That of the original.
    expected : float
        What the gradient says.
    error, bound : float
        Their difference, and what is allowed.
    ok : bool
        Whether it passes.
    """

    name: str
    where: str
    slope: float
    expected: float
    error: float
    bound: float
    ok: bool


@dataclass
class GradientVerification:
    """What `verify_gradient` found.

    Parameters
    ----------
    rows : list of SlopeRow
        The directions, in the order of `wrt`.
    slopes : str
        In what the slopes were computed.
    kinks : int
        Directions that were given up, and replaced by others, because the original has a kink there.
    error : str
        Why the gradient model does not run, or is not one of the original. Empty if it is.
    notes : list of str
        What was not judged, or less sharply, and why.
    """

    rows: list[SlopeRow] = field(default_factory=list)
    slopes: str = ""
    kinks: int = 0
    error: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the gradient model runs, something was compared, and all of it passes. Notes say what was not."""
        return not self.error and bool(self.rows) and all(row.ok for row in self.rows)

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        result: dict[str, Any] = for_json({"ok": self.ok, **asdict(self)})
        return result

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Header and rows for a terminal.

        Examples
        --------
        >>> result = GradientVerification([SlopeRow("x", "made", 0.5, 0.5, 1e-8, 1e-5, True)])
        >>> result.table()[1]
        [('x', 'made', '0.5', '0.5', '1e-08', '1e-05', 'ok')]
        """
        return GRADIENT_HEADER, [
            (
                row.name,
                row.where,
                f"{row.slope:.6g}",
                f"{row.expected:.6g}",
                f"{row.error:.2g}",
                f"{row.bound:.2g}",
                "ok" if row.ok else "over",
            )
            for row in self.rows
        ]
