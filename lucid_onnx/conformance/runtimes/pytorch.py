"""The adapter of PyTorch, which has the operators themselves and no need of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, first_line, import_package, refusing
from lucid_onnx.reference.schema import Array, UnsupportedError
from lucid_onnx.runtime import BFLOAT16


class PyTorch:
    """PyTorch's ``grid_sample`` and ``affine_grid``, and their gradients by its autograd, in the dtype of a case.

    Parameters
    ----------
    setting : Setting
        The device, by default the CPU.

    Raises
    ------
    UnsupportedError
        PyTorch is not installed, or does not have the device.
    """

    name = "torch"
    runs_models = False

    def __init__(self, setting: Setting) -> None:
        check_setting(self.name, setting, providers=1)
        self._torch = import_package("torch")
        self.version = str(self._torch.__version__)
        self.provider = setting.providers[0] if setting.providers else "cpu"
        try:
            self._torch.zeros(1, device=self.provider).cpu().numpy()
        except Exception as error:  # an unknown device, one that is not there, and one without memory all differ
            raise UnsupportedError(
                f"conformance: torch {self.version} has no device {self.provider!r} here: {first_line(error)}"
            ) from error

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """The operator of a case, ready to run; see `Runtime`."""
        compute = OPERATORS[case.op]
        # What a model of known shapes holds as constants is no input of it.
        held = case.inputs() if case.shapes == "static" else {}

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            with refusing(first_line):
                tensors = {name: self._to_tensor(array) for name, array in {**held, **inputs}.items()}
                return [self._to_array(result) for result in compute(self._torch, case, tensors)]

        return run

    def _to_tensor(self, array: Array) -> Any:
        copied = np.array(array)
        if copied.dtype == BFLOAT16:
            return self._torch.from_numpy(copied.view(np.int16)).view(self._torch.bfloat16).to(self.provider)
        return self._torch.from_numpy(copied).to(self.provider)

    def _to_array(self, tensor: Any) -> Array:
        tensor = tensor.detach().cpu().contiguous()
        if tensor.dtype == self._torch.bfloat16:
            return np.array(tensor.view(self._torch.int16).numpy()).view(BFLOAT16)
        return np.array(tensor.numpy())


Tensors = Mapping[str, Any]


def _grid_sample(torch: Any, case: Case, tensors: Tensors) -> list[Any]:
    how = {"mode": case.mode, "padding_mode": case.padding_mode, "align_corners": case.align_corners}
    return [torch.nn.functional.grid_sample(tensors["X"], tensors["grid"], **how)]


def _grid_sample_grad(torch: Any, case: Case, tensors: Tensors) -> list[Any]:
    leaves = [tensors[name].requires_grad_() for name in ("X", "grid")]
    return list(torch.autograd.grad(_grid_sample(torch, case, tensors), leaves, tensors["dY"]))


def _affine_grid(torch: Any, case: Case, tensors: Tensors) -> list[Any]:
    size = tensors["size"].tolist()
    return [torch.nn.functional.affine_grid(tensors["theta"], size, align_corners=case.align_corners)]


def _affine_grid_grad(torch: Any, case: Case, tensors: Tensors) -> list[Any]:
    dgrid, d = tensors["dgrid"], case.rank - 2
    theta = dgrid.new_zeros((dgrid.shape[0], d, d + 1)).requires_grad_()
    return list(torch.autograd.grad(_affine_grid(torch, case, {**tensors, "theta": theta}), theta, dgrid))


OPERATORS: dict[str, Callable[[Any, Case, Tensors], list[Any]]] = {
    "GridSample": _grid_sample,
    "GridSampleGrad": _grid_sample_grad,
    "AffineGrid": _affine_grid,
    "AffineGridGrad": _affine_grid_grad,
}
"""What each operator of a case is in PyTorch: takes the package, the case and its inputs, returns the outputs."""
