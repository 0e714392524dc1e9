"""The suite, a test for each case: see `lucid_onnx.conformance.plugin`."""

from __future__ import annotations

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.pool import Worker


def test_conformance(lucid_case: Case, lucid_worker: Worker) -> None:
    """The runtime gives what the reference expects."""
    (outcome,) = lucid_worker.run([lucid_case])
    assert outcome.passed, f"{outcome.verdict}: {outcome.worst or outcome.words} ({lucid_case.probes})"
