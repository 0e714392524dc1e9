"""The adapter of ONNX's own evaluator in Python."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np
import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, first_line, refusing
from lucid_onnx.reference.schema import Array


class OnnxReference:
    """``onnx.reference``, which has neither providers nor options.

    Parameters
    ----------
    setting : Setting
        An empty one.

    Raises
    ------
    UnsupportedError
        A setting that is not empty.
    """

    name = "onnx.reference"
    runs_models = True
    version = onnx.__version__
    provider = ""

    def __init__(self, setting: Setting) -> None:
        check_setting(self.name, setting)

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run; see `Runtime`."""
        from onnx.reference import ReferenceEvaluator

        with refusing(_words):
            evaluator = ReferenceEvaluator(model)

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            # NumPy warns of values that are not finite, which many cases are about.
            with refusing(_words), np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return [np.array(result) for result in evaluator.run(None, dict(inputs))]

        return run


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {first_line(error)}"
