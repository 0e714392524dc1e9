"""The gradient model in onnxruntime: its outputs and gradients, and how much rounding changes these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from lucid_onnx.reference.schema import FLOAT_DTYPES, ArgumentError, Array
from lucid_onnx.verification.running import Runner
from lucid_onnx.verification.witness import Values, eps_of, widened


class Backward:
    """A gradient model, whose inputs and outputs are those of the original and behind them what `gradient` added.

    Parameters
    ----------
    model : onnx_ir.Model
        The gradient model.
    folder : str
        Where its external data lies.
    original : onnx_ir.Model
        The original.
    wrt, outputs : sequence of str
        What it is the gradient of, and with respect to what, in the order of the graph.

    Raises
    ------
    ArgumentError
        The model is no such gradient of the original.
    """

    def __init__(
        self, model: ir.Model, folder: str, original: ir.Model, wrt: Sequence[str], outputs: Sequence[str]
    ) -> None:
        self.wrt, self.outputs = list(wrt), list(outputs)
        self._model, self._folder = model, folder
        self._runner = Runner(ir.to_proto(model), folder)
        self._inputs = _added("input", original.graph.inputs, model.graph.inputs, outputs)
        self._grads = _added("output", original.graph.outputs, model.graph.outputs, wrt)
        self._dtypes = {value.name: value.dtype.numpy() for value in model.graph.inputs if value.dtype is not None}

    def draw_seeds(self, results: Values, rng: np.random.Generator) -> dict[str, Array]:
        """Random upstream gradients for outputs."""
        dtypes = {name: self._dtypes[added] for name, added in self._inputs.items()}
        return {
            name: np.asarray(rng.standard_normal(results[name].shape)).astype(dtypes[name]) for name in self.outputs
        }

    def run(self, values: Values, seeds: Values) -> tuple[dict[str, Array], dict[str, Array]]:
        """The outputs, and the gradients by the names of `wrt`, all in float64.

        Raises
        ------
        LucidError
            onnxruntime does not open the model, or fails.
        """
        known = {name: array for name, array in values.items() if name in self._dtypes}
        found = self._runner.run({**known, **{self._inputs[name]: seed for name, seed in seeds.items()}})
        outputs = {name: widened(found[name]) for name in self.outputs}
        return outputs, {name: widened(found[added]) for name, added in self._grads.items()}

    def noise(self, values: Values, seeds: Values, rng: np.random.Generator) -> dict[str, float]:
        """The length of what each gradient changes by when all that goes in changes by its own rounding."""
        _, grads = self.run(values, seeds)
        _, others = self.run(_jittered(values, rng), _jittered(seeds, rng))
        with np.errstate(all="ignore"):
            changes = {name: float(np.linalg.norm((others[name] - grad).reshape(-1))) for name, grad in grads.items()}
        return {name: change if np.isfinite(change) else 0.0 for name, change in changes.items()}

    def at(self, values: Values) -> Backward:
        """The same with other values in its initializers, for a point elsewhere."""
        moved = self._model.clone()
        for name, value in moved.graph.initializers.items():
            if name in self.wrt:
                value.const_value = ir.tensor(values[name], name=name)
        other = object.__new__(Backward)
        other.__dict__.update(self.__dict__)
        other._model, other._runner = moved, Runner(ir.to_proto(moved), self._folder)
        return other


def _added(kind: str, before: Sequence[ir.Value], after: Sequence[ir.Value], of: Sequence[str]) -> dict[str, str]:
    """Names of what was added behind `before`, by the names that it belongs to."""
    kept, added = after[: len(before)], after[len(before) :]
    if [value.name for value in kept] != [value.name for value in before] or len(added) != len(of):
        names = ", ".join(f"{name}_grad" for name in of)
        raise ArgumentError(f"the gradient model has other {kind}s than those of the original and {names} behind them")
    return {name: value.name or "" for name, value in zip(of, added, strict=True)}


def _jittered(values: Values, rng: np.random.Generator) -> dict[str, Array]:
    """The values, each float a rounding of its dtype up or down, or as it is."""
    result = dict(values)
    for name, array in values.items():
        if array.dtype.name in FLOAT_DTYPES:
            step = eps_of(array.dtype)
            wide = array.astype(np.float64)
            result[name] = np.asarray(wide * (1 + step * rng.integers(-1, 2, array.shape))).astype(array.dtype)
    return result
