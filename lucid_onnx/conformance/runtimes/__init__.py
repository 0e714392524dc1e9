"""The runtimes that the suite can judge, each behind one small adapter.

Adding a runtime is a file with a class that is a `Runtime` (see `base`), a row of `RUNTIMES`, and a row in
tests/conformance/test_runtimes.py.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping

from lucid_onnx.conformance.runtimes.base import Runtime, Setting
from lucid_onnx.reference.schema import ArgumentError, no_such

RUNTIMES: Mapping[str, str] = {
    "onnxruntime": "onnx_runtime:OnnxRuntime",
    "onnx.reference": "onnx_reference:OnnxReference",
    "openvino": "openvino:OpenVino",
    "torch": "pytorch:PyTorch",
    "tract": "tract:Tract",
    "command": "command:Command",
}
"""The module and the class of each adapter, by the name of the runtime, which is that of its package."""


def check_runtime(name: str) -> None:
    """Raise unless there is an adapter for a runtime.

    Examples
    --------
    >>> check_runtime("abacus")
    Traceback (most recent call last):
    lucid_onnx.reference.schema.ArgumentError: there is no runtime 'abacus' (there is onnxruntime, onnx.reference, \
openvino, torch, tract, command)
    """
    if name not in RUNTIMES:
        raise ArgumentError(no_such("runtime", name, RUNTIMES))


def open_runtime(name: str, setting: Setting) -> Runtime:
    """The adapter of a runtime, which imports it.

    Parameters
    ----------
    name : str
        A key of `RUNTIMES`.
    setting : Setting
        What is asked of it.

    Raises
    ------
    ArgumentError
        There is no such runtime, or an option has a value that it cannot have.
    UnsupportedError
        The runtime is not installed, or does not have what the setting asks for.

    Examples
    --------
    >>> open_runtime("onnxruntime", Setting()).provider
    'CPUExecutionProvider'
    """
    check_runtime(name)
    module, _, adapter = RUNTIMES[name].partition(":")
    create: Callable[[Setting], Runtime] = getattr(importlib.import_module(f"{__name__}.{module}"), adapter)
    return create(setting)


def installed() -> list[str]:
    """Runtimes whose package is installed; a command, which has none, is not among them.

    Examples
    --------
    >>> "onnxruntime" in installed(), "command" in installed()
    (True, False)
    """
    return [name for name in RUNTIMES if name != "command" and importlib.util.find_spec(name.partition(".")[0])]
