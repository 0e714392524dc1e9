"""onnxruntime sessions with checked inputs: providers by name, threads, one clear error."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort

from lucid_onnx.files import ModelSource, as_proto, check_readable
from lucid_onnx.reference.schema import (
    ArgumentError,
    Array,
    DtypeError,
    LucidError,
    RunError,
    UnsupportedError,
    as_array,
    no_such,
    shown,
)

MOST_THREADS = 256
"""onnxruntime starts as many threads as it is told to, and stands still with far too many."""

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

_TENSOR_DTYPES = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(bfloat16)": BFLOAT16,
    "tensor(bool)": np.dtype(np.bool_),
    **{f"tensor({kind}int{bits})": np.dtype(f"{kind}int{bits}") for kind in ("", "u") for bits in (8, 16, 32, 64)},
}


def session(model: ModelSource, providers: Sequence[str] | None = None, threads: int | None = None) -> Session:
    """Open a model in onnxruntime.

    Parameters
    ----------
    model : path, onnx.ModelProto or onnx_ir.Model
        The model. External data is looked for beside a path.
    providers : sequence of str, optional
        Execution providers by name, the preferred one first; by default the CPU.
    threads : int, optional
        Threads within one operator; by default onnxruntime's own choice.

    Returns
    -------
    Session

    Raises
    ------
    ArgumentError
        No such file, no ONNX model, or a number of threads below 1 or above `MOST_THREADS`.
    DtypeError
        What came is no model, or the providers are no names.
    UnsupportedError
        A provider that this onnxruntime does not have, or a model that it cannot run.

    Examples
    --------
    >>> import lucid_onnx as lo
    >>> warp = lo.session(lo.operator_model("GridSample"), threads=1)
    >>> (y,) = warp.run(None, {"X": np.ones((1, 1, 2, 2), "f"), "grid": np.zeros((1, 1, 1, 2), "f")})
    >>> y.item()
    1.0
    """
    wanted = list(providers) if isinstance(providers, list | tuple) else ["CPUExecutionProvider"]
    if not isinstance(providers, list | tuple | None) or not all(isinstance(name, str) for name in wanted):
        raise DtypeError(f"session: providers must be a list of names; got {providers!r}")
    present = ort.get_available_providers()
    absent = [name for name in wanted if name not in present]
    if absent or not wanted:
        raise UnsupportedError(
            f"session: no execution provider {', '.join(absent) or 'named'}; "
            f"onnxruntime {ort.__version__} here has {', '.join(present)}"
        )
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if threads is not None:
        if not isinstance(threads, int | np.integer) or not 1 <= threads <= MOST_THREADS:
            raise ArgumentError(f"session: threads must be a whole number from 1 to {MOST_THREADS}; got {threads!r}")
        options.intra_op_num_threads = threads
    source = _source(model)
    try:
        return Session(source, options, providers=wanted)
    except Exception as error:  # onnxruntime's own exceptions share no narrower base
        name = repr(source) if isinstance(source, str) else "the model"
        if "protobuf" in str(error).lower():
            raise ArgumentError(f"{name} is not an ONNX model") from None
        raise UnsupportedError(
            f"session: onnxruntime {ort.__version__} refuses {name}: {_first_line(error)}"
        ) from error


class Session(ort.InferenceSession):  # type: ignore[misc]
    """An ``onnxruntime.InferenceSession`` whose `run` checks its inputs and knows bfloat16."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, npt.ArrayLike],
        run_options: ort.RunOptions | None = None,
    ) -> list[Array]:
        """Run the model.

        Parameters
        ----------
        output_names : sequence of str, optional
            Outputs to return; None for all.
        input_feed : mapping of str to array
            Every input by its name, of the dtype the model asks for. bfloat16 is that of ml_dtypes.
        run_options : onnxruntime.RunOptions, optional
            As in onnxruntime.

        Returns
        -------
        list of Array

        Raises
        ------
        ArgumentError
            Lists every input that is missing, unknown, or does not fit in rank, dtype or a known dimension,
            and outputs that the model does not have.
        DtypeError
            The inputs are no mapping.
        RunError
            A `RuntimeError`: onnxruntime failed on these inputs.

        Examples
        --------
        >>> import lucid_onnx as lo
        >>> grid = lo.session(lo.operator_model("AffineGrid"))
        >>> theta = np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)
        >>> grid.run(["grid"], {"theta": theta, "size": np.array([1, 1, 1, 2])})[0].tolist()
        [[[[-0.5, 0.0], [0.5, 0.0]]]]
        """
        if not isinstance(input_feed, Mapping):
            raise DtypeError(f"run: inputs must be a mapping of names to arrays; got {type(input_feed).__name__}")
        inputs, outputs = self.inputs(), {node.name: node for node in self.get_outputs()}
        feed = {name: _as_input(inputs.get(name), name, value) for name, value in input_feed.items()}
        names = list(outputs) if output_names is None else list(output_names)
        self._check(feed, inputs, names, outputs)
        types = {name: node.type for name, node in (*inputs.items(), *outputs.items())}
        try:
            if not any(types[name] == "tensor(bfloat16)" for name in [*feed, *names]):
                return list(super().run(names, feed, run_options))
            values = {name: _to_ort_value(name, array) for name, array in feed.items()}
            return [_from_ort_value(result) for result in self.run_with_ort_values(names, values, run_options)]
        except LucidError:
            raise
        except Exception as error:  # onnxruntime's own exceptions share no narrower base
            raise RunError(f"run: onnxruntime {ort.__version__} failed: {_first_line(error)}") from error

    def inputs(self) -> dict[str, ort.NodeArg]:
        """Every input by name; those that an initializer stands in for come last."""
        return {node.name: node for node in [*self.get_inputs(), *self.get_overridable_initializers()]}

    def _check(
        self,
        feed: Mapping[str, Any],
        inputs: Mapping[str, ort.NodeArg],
        output_names: Sequence[str],
        outputs: Mapping[str, ort.NodeArg],
    ) -> None:
        required = [node.name for node in self.get_inputs() if not node.type.startswith("optional(")]
        problems = [f"input {name!r} is missing" for name in required if name not in feed]
        problems += [no_such("input", name, inputs) for name in feed if name not in inputs]
        problems += [no_such("output", name, outputs) for name in output_names if name not in outputs]
        symbols: dict[str, tuple[str, int]] = {}
        for name, node in inputs.items():
            if name in feed and node.type.startswith("tensor("):
                problems += _mismatches(node, feed[name], symbols)
        if problems:
            raise ArgumentError("run: " + "; ".join(problems))


def _as_input(node: ort.NodeArg | None, name: str, value: Any) -> Any:
    """An array, where a tensor is asked for; sequences and optionals go to onnxruntime as they are."""
    if node is not None and not node.type.startswith("tensor("):
        return value
    return as_array(value, "run", f"input {name!r}")


def dtype_of_input(node: ort.NodeArg) -> np.dtype[Any]:
    """Dtype of the arrays that an input takes."""
    if node.type not in _TENSOR_DTYPES:
        raise UnsupportedError(f"input {node.name!r} is a {node.type}; only tensors of numbers can be given")
    dtype: np.dtype[Any] = _TENSOR_DTYPES[node.type]
    return dtype


def _mismatches(node: ort.NodeArg, array: Array, symbols: dict[str, tuple[str, int]]) -> list[str]:
    """What is wrong with `array` as the input `node`. A symbolic dimension has one size in all inputs."""
    problems = []
    expected = _TENSOR_DTYPES.get(node.type)
    if expected is not None and array.dtype != expected:
        order = "" if array.dtype.isnative else " of foreign byte order"
        problems.append(f"input {node.name!r} must be {expected.name}, got {array.dtype.name}{order}")
    shape = list(node.shape or [])
    if not shape:  # a scalar, or a tensor of unknown rank: onnxruntime does not tell which
        return problems
    if len(shape) != array.ndim:
        return [*problems, f"input {node.name!r} must have rank {len(shape)} {shown(shape)}, got shape {array.shape}"]
    for dimension, size in zip(shape, array.shape, strict=True):
        if isinstance(dimension, int) and dimension != size:
            problems.append(f"input {node.name!r} must have shape {shown(shape)}, got {array.shape}")
            break
        if isinstance(dimension, str):
            other, known = symbols.setdefault(dimension, (node.name, size))
            if known != size:
                problems.append(
                    f"{dimension} is {size} in input {node.name!r} of shape {array.shape}, but {known} in {other!r}"
                )
    return problems


def _source(model: ModelSource) -> str | bytes:
    """What onnxruntime loads: a path stays one, so that it finds external data."""
    if isinstance(model, str | os.PathLike):
        check_readable(model)
        return os.fspath(model)
    content: bytes = as_proto(model).SerializeToString()
    return content


def _to_ort_value(name: str, array: Any) -> ort.OrtValue:
    if not isinstance(array, np.ndarray) or array.dtype.kind in "OSU":
        raise UnsupportedError(f"run: beside bfloat16 every input is a tensor of numbers; {name!r} is not")
    if array.dtype != BFLOAT16:
        return ort.OrtValue.ortvalue_from_numpy(array)
    words = np.ascontiguousarray(array).view(np.uint16)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(words, onnx.TensorProto.BFLOAT16)


def _from_ort_value(value: ort.OrtValue) -> Array:
    """The array of a value. NumPy has no bfloat16 of its own, so its bytes are copied from where they lie."""
    array: Array
    if value.data_type() != "tensor(bfloat16)":
        array = value.numpy().copy()
        return array
    shape = tuple(value.shape())
    content = ctypes.string_at(value.data_ptr(), 2 * math.prod(shape)) if math.prod(shape) else b""
    array = np.frombuffer(content, np.uint16).view(BFLOAT16).reshape(shape).copy()
    return array


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
