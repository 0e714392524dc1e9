"""The adapter of tract."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, first_line, import_package, refusing
from lucid_onnx.reference.schema import Array

MOST_OF_WHAT = 100
"""Characters of what failed: tract may print all of a tensor's type, and the cause comes after it."""


class Tract:
    """tract, which has neither providers nor options.

    Parameters
    ----------
    setting : Setting
        An empty one.

    Raises
    ------
    UnsupportedError
        tract is not installed, or a setting is not empty.

    Notes
    -----
    A model is taken as it is: one with symbolic dimensions is optimized with symbols in it, and runs on inputs of any
    shape. To tell tract the shapes first makes no difference: a gradient of symbolic dimensions, which it refuses, it
    then refuses for not being of these shapes. tract aborts the process on some models.
    """

    name = "tract"
    runs_models = True
    provider = ""

    def __init__(self, setting: Setting) -> None:
        check_setting(self.name, setting)
        # To find the stack of every refusal takes longer than to refuse.
        os.environ["RUST_BACKTRACE"] = "0"
        self._tract = import_package("tract")
        self.version = self._tract.version()

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run; see `Runtime`."""
        with refusing(_words), tempfile.TemporaryDirectory(prefix="lucid-onnx-") as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(model.SerializeToString())
            untyped = self._tract.onnx().load(path)
            names = [untyped.input_name(k) for k in range(untyped.input_count())]
            runnable = untyped.into_model().into_runnable()

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            with refusing(_words):
                results = runnable.run([inputs[name] for name in names])
                return [result.to_numpy() for result in results]

        return run


def _words(error: Exception) -> str:
    r"""What failed, and the innermost cause, without the stack.

    Examples
    --------
    >>> causes = "Caused by:\n    0: The rank.\n    1: It varies.\n\nStack backtrace:\n    0: main"
    >>> _words(RuntimeError(f"Translating node\n\n{causes}"))
    'Translating node: It varies.'
    """
    text, _, _ = str(error).partition("Stack backtrace:")
    what, _, causes = text.partition("Caused by:")
    innermost = [re.sub(r"^\s*\d+: ", "", line) for line in causes.strip().splitlines()[-1:]]
    return ": ".join([first_line(what.strip() or type(error).__name__)[:MOST_OF_WHAT], *innermost])
