"""Whether a rewritten model still does what the original does, and its samplings what the reference says."""

from lucid_onnx.verification.report import NodeRow, OutputRow, Verification
from lucid_onnx.verification.verify import verify

__all__ = ["NodeRow", "OutputRow", "Verification", "verify"]
