"""What the outputs of a model truly are, to be differenced: in float64 where anything runs it, in float32 otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from lucid_onnx.lowering.nodes import FLOATS
from lucid_onnx.model_files import read_model
from lucid_onnx.reference.schema import FLOAT_DTYPES, Array, UnsupportedError
from lucid_onnx.verification.doubling import double, free
from lucid_onnx.verification.kernels import KERNELS
from lucid_onnx.verification.running import Runner

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Witness:
    """A way to evaluate the original.

    Parameters
    ----------
    what : str
        In what it computes, for the report.
    run : callable
        From the inputs and the initializers that are differentiated for to the outputs by name, in float64.
    steps : tuple of float
        Steps of a difference, in sizes of what is moved: the first is taken, the others where that meets a kink.
    eps : float
        Relative error of the outputs.
    relative : float
        The smallest error of a slope, in sizes of the gradient, that it can tell.
    """

    what: str
    run: Callable[[Values], dict[str, Array]]
    steps: tuple[float, ...]
    eps: float
    relative: float


def witnesses(
    model: ir.Model, wrt: Sequence[str], outputs: Sequence[str], folder: str, seconds: float
) -> Iterator[Callable[[], Witness]]:
    """What opens each witness of a model, the best first; each raises UnsupportedError where there is none.

    `seconds` is how long onnxruntime runs the model.
    """
    yield lambda: _exact(_ONNXRUNTIME, model, wrt, outputs, folder)
    if seconds < _SLOW:
        yield lambda: _exact(_EVALUATOR, model, wrt, outputs, folder)
    yield lambda: _as_it_is(model, wrt, outputs, folder)


EXACT = (1e-7, 1e-8, 3e-9)
"""So small because each ReLU and pixel border within a step is a kink: a network on 28 x 28 pixels has some in 1e-6."""

COARSE = (1e-2, 3e-3, 3e-2)

_COARSE_ERROR = 5e-2
"""A difference in float32 is off by this, in sizes of the gradient: by rounding in the outputs, and curvature."""

_SLOW = 0.5
"""What takes onnxruntime longer than this takes the evaluator minutes."""

_ONNXRUNTIME, _EVALUATOR = "float64 in onnxruntime", "float64 in ONNX's reference evaluator"


def _exact(what: str, model: ir.Model, wrt: Sequence[str], outputs: Sequence[str], folder: str) -> Witness:
    # Those who convert, infer and evaluate raise exceptions of their own, which share no narrower base.
    try:
        wide = _freed(model, wrt, outputs)
        double(wide)
        proto = ir.to_proto(wide)
        run = _opened(proto, folder) if what == _ONNXRUNTIME else _evaluator(proto)
    except Exception as error:
        raise _refusal(what, error) from error
    needed = {value.name for value in wide.graph.inputs}

    def call(values: Values) -> dict[str, Array]:
        try:
            return run({name: widened(array) for name, array in values.items() if name in needed})
        except Exception as error:
            raise _refusal(what, error) from error

    return Witness(what, call, EXACT, 2.0**-52, 0.0)


def _as_it_is(model: ir.Model, wrt: Sequence[str], outputs: Sequence[str], folder: str) -> Witness:
    plain = _freed(model, wrt, outputs)
    run = _opened(ir.to_proto(plain), folder)
    floats = {value.name: value.dtype.numpy() for value in plain.graph.inputs if value.dtype in FLOATS and value.dtype}
    needed = {value.name for value in plain.graph.inputs}

    def call(values: Values) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            feed = {k: array.astype(floats.get(k, array.dtype)) for k, array in values.items() if k in needed}
        return {name: widened(array) for name, array in run(feed).items()}

    eps = max((eps_of(dtype) for dtype in floats.values()), default=0.0)
    return Witness("the model's own dtypes in onnxruntime", call, COARSE, eps, _COARSE_ERROR)


def widened(array: Array) -> Array:
    """Floats as float64."""
    return array.astype(np.float64) if array.dtype.name in FLOAT_DTYPES else array


def eps_of(dtype: np.dtype[Any]) -> float:
    """Distance from 1 to the next number of a dtype."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def _freed(model: ir.Model, wrt: Sequence[str], outputs: Sequence[str]) -> ir.Model:
    copy = read_model(model, "verify")
    free(copy, wrt, outputs)
    return copy


def _opened(proto: onnx.ModelProto, folder: str) -> Callable[[Values], dict[str, Array]]:
    runner = Runner(proto, folder)
    runner.open()
    return runner.run


def _evaluator(proto: onnx.ModelProto) -> Callable[[Values], dict[str, Array]]:
    evaluator = ReferenceEvaluator(proto, new_ops=KERNELS)

    def run(feed: Values) -> dict[str, Array]:
        # NumPy warns of what is not finite; that shows in the results.
        with np.errstate(all="ignore"):
            results = evaluator.run(None, dict(feed))
        return dict(zip(evaluator.output_names, map(np.asarray, results), strict=True))

    return run


def _refusal(what: str, error: Exception) -> UnsupportedError:
    first = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return UnsupportedError(f"{what}: {first}")
