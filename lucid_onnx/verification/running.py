"""The two models in onnxruntime: their outputs, and values inside of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import onnx
import onnx_ir as ir
import onnxruntime as ort

from lucid_onnx.files import ModelSource
from lucid_onnx.reference.schema import Array, LucidError, UnsupportedError
from lucid_onnx.runtime import Session

_FOLDER = "session.model_external_initializers_file_folder_path"
"""Where onnxruntime looks for the external data of a model that comes as bytes."""

_FATAL = 4
"""What is logged: that a model fails is an answer here, told once."""


class Runner:
    """A model, and the sessions that were opened for it.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; it is not changed.
    folder : str
        Where its external data lies.
    """

    def __init__(self, model: onnx.ModelProto, folder: str) -> None:
        self.model = model
        self._folder = folder
        self._sessions: dict[frozenset[str], Session] = {}
        graph = model.graph
        self.inputs = {info.name: info.type.tensor_type.elem_type for info in graph.input}
        self.outputs = [info.name for info in graph.output]
        self.names = {*self.inputs, *(name for node in graph.node for name in node.output if name)}

    def run(self, feed: Mapping[str, Array], extra: Iterable[str] = ()) -> dict[str, Array]:
        """The outputs by name, and of the values `extra` those that the main graph has.

        Raises
        ------
        UnsupportedError
            onnxruntime does not open the model.
        RunError
            It fails on these inputs.
        ArgumentError
            The inputs are not those of the model.
        """
        known = {name for name in extra if name in self.names and name not in self.inputs}
        names = [*self.outputs, *sorted(known.difference(self.outputs))]
        results = self._session(names).run(names, feed)
        found = dict(zip(names, results, strict=True))
        return {**{name: feed[name] for name in extra if name in feed and name in self.inputs}, **found}

    def open(self) -> None:
        """Raise UnsupportedError now, not at the first run, if onnxruntime does not open the model."""
        self._session(self.outputs)

    def _session(self, names: list[str]) -> Session:
        key = frozenset(names)
        if key not in self._sessions:
            self._sessions[key] = _open(_with_outputs(self.model, names), self._folder)
        return self._sessions[key]


def reason(runner: Runner, feed: Mapping[str, Array]) -> str:
    """Why a model does not run on these inputs; empty if it does."""
    try:
        runner.run(feed)
    except LucidError as error:
        return str(error)
    return ""


def folder_of(source: ModelSource, model: ir.Model) -> str:
    """Where the external data of a model lies."""
    if isinstance(source, str | os.PathLike):
        return os.path.dirname(os.path.abspath(source))
    for value in model.graph.initializers.values():
        if isinstance(value.const_value, ir.ExternalTensor):
            return os.fspath(value.const_value.base_dir)
    return os.getcwd()


def _with_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    """The model with more outputs; onnxruntime infers their types."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for name in names[len(model.graph.output) :]:
        copy.graph.output.add(name=name)
    return copy


def _open(model: onnx.ModelProto, folder: str) -> Session:
    options = ort.SessionOptions()
    options.log_severity_level = _FATAL
    options.add_session_config_entry(_FOLDER, folder)
    try:
        return Session(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no narrower base
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UnsupportedError(f"onnxruntime {ort.__version__} refuses the model: {first}") from error
