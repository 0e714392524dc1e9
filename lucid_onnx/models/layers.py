"""The few layers that the models here are made of, with PyTorch's parameter names, shapes and starting values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
from onnxscript import OpBuilder, nn

from lucid_onnx.operators.building import Value


def parameter(values: npt.NDArray[np.floating[Any]]) -> nn.Parameter:
    """A float32 parameter that starts at `values`."""
    return nn.Parameter(values.shape, data=ir.tensor(values.astype(np.float32)))


class Conv(nn.Module):
    """Convolution of stride 1, padded so that it keeps the size of images and volumes.

    Parameters
    ----------
    inputs, outputs : int
        Channels.
    kernel : int
        Size of the kernel along every axis; odd.
    axes : int
        2 for images, 3 for volumes.
    rng : numpy.random.Generator
        Draws the starting values, uniform in ±1/sqrt(inputs * kernel**axes).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, axes: int, rng: np.random.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs * kernel**axes)
        self.weight = parameter(rng.uniform(-bound, bound, (outputs, inputs, *[kernel] * axes)))
        self.bias = parameter(rng.uniform(-bound, bound, outputs))
        self._pads = [kernel // 2] * (2 * axes)

    def forward(self, op: OpBuilder, x: Value) -> Value:
        """(N, inputs, …) to (N, outputs, …)."""
        y: Value = op.Conv(x, self.weight, self.bias, pads=self._pads)
        return y


class Linear(nn.Module):
    """Affine map of the last axis: ``x @ weight.T + bias``.

    Parameters
    ----------
    inputs, outputs : int
        Features.
    rng : numpy.random.Generator
        Draws the starting values, uniform in ±1/sqrt(inputs).
    """

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(inputs)
        self.weight = parameter(rng.uniform(-bound, bound, (outputs, inputs)))
        self.bias = parameter(rng.uniform(-bound, bound, outputs))

    def forward(self, op: OpBuilder, x: Value) -> Value:
        """(N, inputs) to (N, outputs)."""
        y: Value = op.Gemm(x, self.weight, self.bias, transB=1)
        return y


def pooled_relu(op: OpBuilder, x: Value, axes: int) -> Value:
    """Halve every spatial axis by its maximum, then drop what is negative."""
    y: Value = op.Relu(op.MaxPool(x, kernel_shape=[2] * axes, strides=[2] * axes))
    return y


def pooled_size(sizes: Sequence[int], times: int) -> int:
    """Number of pixels that are left of an image after halving its axes some times."""
    return math.prod(size // 2**times for size in sizes)
