"""Whether a rewritten model still does what the original does, and its samplings and gradients are right."""

from lucid_onnx.verification.gradient_report import GradientVerification, SlopeRow
from lucid_onnx.verification.gradients import verify_gradient
from lucid_onnx.verification.report import NodeRow, OutputRow, Verification
from lucid_onnx.verification.verify import verify

__all__ = [
    "GradientVerification",
    "NodeRow",
    "OutputRow",
    "SlopeRow",
    "Verification",
    "verify",
    "verify_gradient",
]
