"""The adapter of OpenVINO."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.runtimes.base import Run, Setting
from lucid_onnx.conformance.runtimes.checks import check_setting, import_package, refusing
from lucid_onnx.reference.schema import Array, UnsupportedError
from lucid_onnx.runtime import BFLOAT16


class OpenVino:
    """OpenVINO, on one device.

    Parameters
    ----------
    setting : Setting
        The device, by default the CPU, and properties of the compiled model. Unless they say otherwise it computes
        in float32, for models of half precision, too: left alone, OpenVINO takes bfloat16 for models of float32 on
        processors that have it. Unless results are repeated, the CPU takes one thread, since cases are small.

    Raises
    ------
    UnsupportedError
        OpenVINO is not installed, or does not have the device or a property.

    Notes
    -----
    A model of float64 is computed in float32 by the CPU, and its outputs are float64 nevertheless.
    """

    name = "openvino"
    runs_models = True

    def __init__(self, setting: Setting) -> None:
        check_setting(self.name, setting, providers=1, options=True)
        self._ov = import_package("openvino")
        self._core = self._ov.Core()
        self.version = self._ov.__version__.partition("-")[0]
        self.provider = setting.providers[0] if setting.providers else "CPU"
        self._properties = {"INFERENCE_PRECISION_HINT": "f32"}
        if self.provider == "CPU" and not setting.repeated:
            self._properties["INFERENCE_NUM_THREADS"] = "1"
        self._properties.update(setting.options)
        try:
            self._compile(self._smallest_model())
        except Exception as error:  # OpenVINO's own exceptions share no narrower base
            raise UnsupportedError(
                f"conformance: openvino {self.version} has no device {self.provider!r} with these properties: "
                f"{_words(error)}"
            ) from error

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run; see `Runtime`."""
        with refusing(_words):
            compiled = self._compile(self._core.read_model(model.SerializeToString()))

        def run(inputs: Mapping[str, Array]) -> list[Array]:
            with refusing(_words):
                request = compiled.create_infer_request()
                for port in compiled.inputs:
                    request.set_tensor(port, self._to_tensor(inputs[port.any_name]))
                request.infer()
                return [self._to_array(request.get_tensor(port)) for port in compiled.outputs]

        return run

    def _compile(self, model: Any) -> Any:
        return self._core.compile_model(model, self.provider, self._properties)

    def _smallest_model(self) -> Any:
        ops = import_package("openvino.opset13")
        x = ops.parameter([-1], self._ov.Type.f32)
        return self._ov.Model([ops.relu(x)], [x], "smallest")

    def _to_tensor(self, array: Array) -> Any:
        array = np.ascontiguousarray(array)
        if array.dtype != BFLOAT16:
            return self._ov.Tensor(array)
        # OpenVINO's arrays of bfloat16 have the bytes of it, and call themselves float16.
        return self._ov.Tensor(array.view(np.float16), self._ov.Shape(array.shape), self._ov.Type.bf16)

    def _to_array(self, tensor: Any) -> Array:
        array: Array = np.array(tensor.data)
        return array.view(BFLOAT16) if tensor.element_type == self._ov.Type.bf16 else array


def _words(error: Exception) -> str:
    r"""What OpenVINO said, without where in its source it said it, nor the summary at its end.

    Examples
    --------
    >>> _words(RuntimeError("Exception from core.cpp:117:\nIt does not do Squeeze_4711.\n\nSummary:\n-- failed"))
    'It does not do Squeeze.'
    """
    text, _, _ = str(error).partition("Summary:")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Nodes are numbered anew in each model that is loaded, so their numbers say nothing.
    return re.sub(r"(?<=[A-Za-z])_\d+\b", "", lines[-1]) if lines else type(error).__name__
