"""The adapter of a program of the user's own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Crashed, Refused, Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, first_line, killed_by, refusing, shortened
from lucid_onnx.reference.schema import ArgumentError, Array, UnsupportedError
from lucid_onnx.runtime import BFLOAT16

PLACES = {
    "model": "model.onnx",
    "inputs": "inputs.npz",
    "outputs": "outputs.npz",
    "inputs_pb": "inputs",
    "outputs_pb": "outputs",
}
"""What each placeholder stands for, in a folder that is made for each run."""

DAMAGE = (OSError, ValueError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""What NumPy raises where a file is no .npz of arrays, or a part of one."""

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

TAIL = 2000
"""Bytes of what a program says on standard error that are read, from the end."""

EXAMPLE = "./my-runtime {model} {inputs} {outputs}"


class Command:
    """A program that reads a model and inputs, and writes outputs.

    Parameters
    ----------
    setting : Setting
        The command line, which is split as a shell splits it and run without one. In it ``{model}`` stands for an
        ONNX file, ``{inputs}`` for an .npz file with an array for each input by its name, and ``{outputs}`` for the
        .npz file to write, with an array for each output by its name. ``{inputs_pb}`` and ``{outputs_pb}`` stand for
        folders instead, of input_0.pb, … and output_0.pb, … in the model's order, each an ``onnx.TensorProto``,
        as in ONNX's backend tests.

    Raises
    ------
    ArgumentError
        The command line is empty or lacks a placeholder, or has one that there is not.
    UnsupportedError
        There is no such program.

    Notes
    -----
    NumPy has no bfloat16: in an .npz file such an array has items of two bytes and the dtype ``|V2``, to be read with
    ``array.view(ml_dtypes.bfloat16)``. Such an output is read back so if the model says that it is bfloat16.

    A status other than 0 is a refusal, with the last line of standard error for its words. The suite kills a program
    that takes too long.
    """

    runs_models = True
    version = ""
    provider = ""

    def __init__(self, setting: Setting) -> None:
        check_setting("command", setting, command=True)
        self._line = _split(setting.command)
        self.name = Path(self._line[0]).name
        self._placeholders = set(PLACEHOLDER.findall(setting.command))
        if shutil.which(self._line[0]) is None:
            raise UnsupportedError(f"conformance: there is no program {self._line[0]!r} that may be run")

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run; see `Runtime`."""
        content = model.SerializeToString()
        order = [value.name for value in model.graph.input]
        outputs = list(model.graph.output)

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            with tempfile.TemporaryDirectory(prefix="lucid-onnx-") as folder:
                places = {name: Path(folder, place) for name, place in PLACES.items()}
                places["model"].write_bytes(content)
                self._write({name: inputs[name] for name in order}, places)
                self._call(places)
                if "outputs" in self._placeholders:
                    return read_npz(places["outputs"], outputs)
                return read_protobufs(places["outputs_pb"], outputs)

        return run

    def _write(self, inputs: Mapping[str, Array], places: Mapping[str, Path]) -> None:
        """Write the inputs in the form that is asked for, and make the folder for the outputs."""
        if "inputs" in self._placeholders:
            write_npz(places["inputs"], inputs)
        for name in {"inputs_pb", "outputs_pb"} & self._placeholders:
            places[name].mkdir()
        if "inputs_pb" in self._placeholders:
            for k, (name, array) in enumerate(inputs.items()):
                tensor = numpy_helper.from_array(array, name)
                (places["inputs_pb"] / f"input_{k}.pb").write_bytes(tensor.SerializeToString())

    def _call(self, places: Mapping[str, Path]) -> None:
        """Run the program."""
        words = [PLACEHOLDER.sub(lambda found: str(places[found[1]]), word) for word in self._line]
        # The standard streams of this process are those of the suite. A file is not waited for, as a pipe is, where the
        # program leaves a child that holds it, and may be long.
        with tempfile.TemporaryFile() as said, refusing(first_line):
            ended = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said, check=False)
            said.seek(max(said.seek(0, os.SEEK_END) - TAIL, 0))
            lines = said.read().decode(errors="replace").strip().splitlines()
        if ended.returncode < 0:
            raise Crashed(killed_by(-ended.returncode))
        if ended.returncode > 0:
            raise Refused(shortened(": ".join([f"status {ended.returncode}", *lines[-1:]])))


def _split(command: str) -> list[str]:
    """The words of a command line, if its placeholders fit."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ArgumentError(f"conformance: the command {command!r} cannot be split into words: {error}") from None
    found = PLACEHOLDER.findall(command)
    unknown = [name for name in found if name not in PLACES]
    if unknown:
        raise ArgumentError(
            f"conformance: the command {command!r} has {{{unknown[0]}}}; "
            f"there is {', '.join(f'{{{name}}}' for name in PLACES)}"
        )
    if not words or "model" not in found or len({"outputs", "outputs_pb"} & set(found)) != 1:
        raise ArgumentError(
            "conformance: a command has {model}, and either {outputs} or {outputs_pb}, as in "
            f"{EXAMPLE!r}; got {command!r}"
        )
    return words


def write_npz(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays under any names; NumPy's own savez takes some of them for its arguments."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_npz(path: Path, outputs: Sequence[onnx.ValueInfoProto]) -> list[Array]:
    """The arrays that a program wrote to an .npz file, in the order of the model's outputs.

    Raises
    ------
    Refused
        The file or one of the arrays is not there, or it is no such file.
    """
    if not path.exists():
        raise Refused(f"no {path.name} was written")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except DAMAGE:
        raise Refused(f"{path.name} is no .npz file of arrays") from None
    missing = [value.name for value in outputs if value.name not in arrays]
    if missing:
        raise Refused(f"{path.name} has no {missing[0]!r}; it has {', '.join(arrays) or 'nothing'}")
    return [_as_declared(arrays[value.name], value) for value in outputs]


def _as_declared(array: Array, value: onnx.ValueInfoProto) -> Array:
    """An array as bfloat16, if it has the bytes of it and the model says so."""
    bytes_of_two = array.dtype.kind == "V" and array.dtype.itemsize == 2
    bfloat16 = value.type.tensor_type.elem_type == TensorProto.BFLOAT16
    return array.view(BFLOAT16) if bfloat16 and bytes_of_two else array


def read_protobufs(folder: Path, outputs: Sequence[onnx.ValueInfoProto]) -> list[Array]:
    """The arrays that a program wrote as output_0.pb, … to a folder.

    Raises
    ------
    Refused
        A file is not there, or is no ``TensorProto``.
    """
    arrays = []
    for k in range(len(outputs)):
        path = folder / f"output_{k}.pb"
        if not path.exists():
            raise Refused(f"no {path.name} was written")
        try:
            arrays.append(np.array(numpy_helper.to_array(onnx.load_tensor(path))))
        except (DecodeError, ValueError, TypeError):
            raise Refused(f"{path.name} is no TensorProto of numbers") from None
    return arrays
