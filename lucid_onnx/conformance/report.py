"""What came of a run of the suite on one runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lucid_onnx.conformance.outcome import VERDICTS, Outcome
from lucid_onnx.files import check_readable, replacing
from lucid_onnx.reference.schema import ArgumentError


@dataclass(frozen=True)
class Report:
    """Outcomes of cases on one runtime.

    Parameters
    ----------
    runtime, version, provider : str
        What ran them: "onnxruntime", "1.32.0", "CPUExecutionProvider".
    transform : str
        What the models were rewritten with before they were run, if they were.
    seconds : float
        What the whole run took.
    cases : tuple of Outcome
        One for each case, in the order of the suite.
    """

    runtime: str
    version: str
    provider: str
    transform: str
    seconds: float
    cases: tuple[Outcome, ...]

    @property
    def title(self) -> str:
        """The runtime with its version and provider, in a few words."""
        rewritten = f", after {self.transform}" if self.transform else ""
        return f"{self.runtime} {self.version}".strip() + (f" ({self.provider})" if self.provider else "") + rewritten

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict, those that there are."""
        found = [outcome.verdict for outcome in self.cases]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Cases that failed, and that no known divergence explains."""
        return tuple(outcome for outcome in self.cases if outcome.unexpected and not outcome.passed)

    @property
    def surprises(self) -> tuple[Outcome, ...]:
        """Cases that passed although a known divergence says that they fail."""
        return tuple(outcome for outcome in self.cases if outcome.unexpected and outcome.passed)

    @property
    def ok(self) -> bool:
        """Whether no case failed that was not expected to."""
        return not self.failures

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        head = {"runtime": self.runtime, "version": self.version, "provider": self.provider}
        rewritten = {"transform": self.transform} if self.transform else {}
        cases = [outcome.as_dict() for outcome in self.cases]
        return {**head, **rewritten, "seconds": round(self.seconds, 2), "counts": self.counts, "cases": cases}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Report:
        """What `as_dict` made a dictionary of."""
        return cls(
            **{name: content[name] for name in ("runtime", "version", "provider", "seconds")},
            transform=content.get("transform", ""),
            cases=tuple(map(Outcome.from_dict, content["cases"])),
        )


def to_json(reports: Sequence[Report]) -> str:
    """JSON with a line for each case: an object for one report, a list of them for several."""
    texts = [_to_json(report) for report in reports]
    return texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]"


def _to_json(report: Report) -> str:
    content = report.as_dict()
    cases = ",\n".join(json.dumps(entry) for entry in content.pop("cases"))
    return f'{json.dumps(content)[:-1]}, "cases": [\n{cases}\n]}}'


def write_json(reports: Sequence[Report], path: str | os.PathLike[str]) -> None:
    """Write reports as JSON, whole or not at all."""
    with replacing(path) as beside:
        beside.write_text(to_json(reports) + "\n", encoding="utf-8")


def read_json(path: str | os.PathLike[str]) -> list[Report]:
    """The reports that `write_json` wrote.

    Raises
    ------
    ArgumentError
        No such file, or no such reports in it.
    """
    check_readable(path)
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        return [Report.from_dict(entry) for entry in (content if isinstance(content, list) else [content])]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ArgumentError(f"{os.fspath(path)!r} holds no report that `lucid-onnx conformance --json` wrote") from None
