"""The adapter of onnxruntime, with any execution provider."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, first_line, refusing
from lucid_onnx.conformance.runtimes.placement import Placement
from lucid_onnx.reference.schema import ArgumentError, Array, LucidError, UnsupportedError, no_such
from lucid_onnx.runtime import Session

CPU = "CPUExecutionProvider"

PROVIDER_DEFAULTS = {"CUDAExecutionProvider": {"use_tf32": "0"}}
"""Options of providers unless others are given: TF32 has 10 bits where float32 has 23."""

BOOLS = {"0": False, "1": True, "false": False, "true": True}

SHORTER = (
    (r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", r"\1: "),
    (r"Non-zero status code returned while running .*?Status Message: ", ""),
    (r"\S*[/\\]\S+:\d+ (?:.* was false\. (?=.))?", ""),
)
"""What of onnxruntime's messages is replaced by what: where in its source an error is from, above all."""


class OnnxRuntime:
    """onnxruntime.

    Parameters
    ----------
    setting : Setting
        Providers are written NAME or NAME,key=value,… with options of the provider. An option of the session is the
        name of an attribute of ``onnxruntime.SessionOptions``, or that of a configuration entry, which has a dot in it:
        ``intra_op_num_threads=4``, ``graph_optimization_level=ORT_DISABLE_ALL``, ``session.disable_prepacking=1``.
        Unless it is given or results are repeated, one thread runs an operator, since cases are small.

    Raises
    ------
    ArgumentError
        An option has a value that it cannot have.
    UnsupportedError
        This onnxruntime does not have a provider, cannot start it, or does not have an option.

    Notes
    -----
    With another first provider than the CPU's a session's first run is profiled, and a run fails if nodes ran
    elsewhere: see `placement`.
    """

    name = "onnxruntime"
    runs_models = True
    version = ort.__version__

    def __init__(self, setting: Setting) -> None:
        check_setting(self.name, setting, providers=math.inf, options=True)
        self._providers = dict(map(_provider, setting.providers or (CPU,)))
        self._options = dict(setting.options)
        if not setting.repeated:
            self._options.setdefault("intra_op_num_threads", "1")
        self.provider = next(iter(self._providers))
        self._check()

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run; see `Runtime`."""
        placement = None if self.provider == CPU else Placement(self.provider)
        with refusing(_words):
            session = self._open(model, placement)

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            with refusing(_words):
                results = session.run(None, inputs)
            if placement is not None:
                placement.check(session)
            return results

        return run

    def _open(self, model: onnx.ModelProto, placement: Placement | None = None) -> Session:
        options = session_options(self._options)
        if placement is not None:
            placement.watch(options)
        how = {"providers": list(self._providers), "provider_options": list(self._providers.values())}
        # Without fallback an error of a provider is one, and not a line on the terminal.
        return Session(model.SerializeToString(), options, **how, enable_fallback=0)

    def _check(self) -> None:
        """Raise unless a session with these providers and options can be made."""
        try:
            session = self._open(_smallest_model())
        except LucidError:
            raise
        except Exception as error:  # onnxruntime's own exceptions share no narrower base
            raise UnsupportedError(
                f"conformance: onnxruntime {self.version} makes no session with {', '.join(self._providers)} and "
                f"{self._options}: {_words(error)}"
            ) from error
        missing = [name for name in self._providers if name not in session.get_providers()]
        if missing:
            raise UnsupportedError(
                f"conformance: onnxruntime {self.version} has {', '.join(missing)} but cannot start it here; "
                "check its driver and libraries"
            )


def _provider(text: str) -> tuple[str, dict[str, str]]:
    """Name and options of a provider, which is written NAME,key=value."""
    name, *pairs = text.split(",")
    present = ort.get_available_providers()
    if name not in present:
        raise UnsupportedError(
            f"conformance: {no_such('execution provider', name, present)}; it comes with another build of onnxruntime"
        )
    options = dict(PROVIDER_DEFAULTS.get(name, {}))
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise ArgumentError(f"conformance: options of a provider are written NAME,key=value,…; got {text!r}")
        options[key] = value
    return name, options


def session_options(given: Mapping[str, str]) -> ort.SessionOptions:
    """Options of a session.

    Parameters
    ----------
    given : mapping of str to str
        As in the `Setting` of an `OnnxRuntime`.

    Examples
    --------
    >>> options = session_options({"enable_mem_pattern": "false", "session.disable_prepacking": "1"})
    >>> options.enable_mem_pattern, options.get_session_config_entry("session.disable_prepacking")
    (False, '1')
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for name, text in given.items():
        if "." in name:
            options.add_session_config_entry(name, text)
        else:
            _set(options, name, text)
    return options


def _set(options: ort.SessionOptions, name: str, text: str) -> None:
    """Set an attribute to the value that a text stands for."""
    attributes = [a for a in dir(options) if not a.startswith("_") and not callable(getattr(options, a))]
    if name not in attributes:
        raise UnsupportedError(
            f"conformance: {no_such('session option', name, attributes)}; configuration entries have a dot, session.…"
        )
    kind = type(getattr(options, name))
    words: Mapping[str, Any] = BOOLS if kind is bool else getattr(kind, "__members__", {})
    try:
        setattr(options, name, words[text] if words else kind(text))
    except (KeyError, ValueError, TypeError):
        wanted = f"one of {', '.join(words)}" if words else "a whole number that is not too large"
        raise ArgumentError(f"conformance: {name} must be {wanted}; got {text!r}") from None


def _smallest_model() -> onnx.ModelProto:
    """A model that every provider can load."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N"]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "smallest", [x], [y])
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))


def _words(error: BaseException) -> str:
    """What onnxruntime said, in short.

    Examples
    --------
    >>> said = "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Add node. Name:'Add' "
    >>> where = "Status Message: /core/add.cc:3 int add(T) [with T = float] rank_ == 4 was false. "
    >>> _words(RuntimeError(f"{said}{where}It only adds images."))
    'FAIL: It only adds images.'
    """
    text = first_line(error.__cause__ or error)
    for pattern, replacement in SHORTER:
        text = re.sub(pattern, replacement, text)
    return text
