"""Whole networks: forward and the gradients of all parameters, beside the same network in PyTorch."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx_ir as ir

from lucid_onnx.bench import twins
from lucid_onnx.bench.gradient_rows import NetworkRow
from lucid_onnx.bench.growth import timed_gradient
from lucid_onnx.bench.memory import grown, grown_calling
from lucid_onnx.bench.timing import THREADS, medians, open_session
from lucid_onnx.exporters.module import module_to_model
from lucid_onnx.models import STN
from lucid_onnx.operators.finishing import DEFAULT_OPSET
from lucid_onnx.reference import affine_grid, grid_sample_nd
from lucid_onnx.reference.schema import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Network:
    """A network in PyTorch, and how it becomes a model.

    Parameters
    ----------
    twin : callable
        Makes it, the same at every call.
    model : callable
        Makes a model of it, whose initializers have the names of its parameters.
    inputs : mapping
        Names of the inputs, and their shapes.
    output : str
        Name of the output that the upstream gradient is of.
    """

    twin: Callable[[], torch.nn.Module]
    model: Callable[[torch.nn.Module, Sequence[torch.Tensor]], onnx.ModelProto]
    inputs: Mapping[str, tuple[int, ...]]
    output: str

    def arrays(self) -> dict[str, Array]:
        """Smooth inputs, the same at every call."""
        rng = np.random.default_rng(0)
        return {name: _smooth(rng, shape) for name, shape in self.inputs.items()}


def of_zoo(twin: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> onnx.ModelProto:
    """The STN of the zoo with the weights of its twin."""
    module = STN()
    module.load_state_dict({name: ir.tensor(tensor.numpy()) for name, tensor in twin.state_dict().items()})
    return module_to_model(module, DEFAULT_OPSET)


def exported(twin: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> onnx.ModelProto:
    """What PyTorch's own exporter makes of a network."""
    import torch

    with _quiet():
        program = torch.onnx.export(
            twin,
            tuple(inputs),
            dynamo=True,
            opset_version=DEFAULT_OPSET,
            input_names=["moving", "fixed"],
            output_names=["warped"],
            verbose=False,
        )
    assert program is not None
    return program.model_proto


NETWORKS = {
    "STN, 64 images of 28x28": Network(twins.stn, of_zoo, {"X": (64, 1, 28, 28)}, "logits"),
    "registration U-Net, 32x32x32": Network(
        twins.unet, exported, {"moving": (1, 1, 32, 32, 32), "fixed": (1, 1, 32, 32, 32)}, "warped"
    ),
}
"""Every network that is measured: one of the zoo, and one by PyTorch's exporter."""


def with_pytorch() -> dict[str, Network]:
    """`NETWORKS`, or nothing where PyTorch, which each is made of, is not installed."""
    return NETWORKS if importlib.util.find_spec("torch") else {}


def measure_network(name: str, network: Network, repeats: int, memory: bool = False) -> NetworkRow:
    """Measure a network and the gradients of all its parameters."""
    import torch

    twin, arrays = network.twin(), network.arrays()
    tensors = [torch.from_numpy(array) for array in arrays.values()]
    wrt = [parameter for parameter, _ in twin.named_parameters()]
    model, seconds = timed_gradient(network.model(twin, tensors), wrt, [network.output])
    grad_out = _grad_out(twin, tensors)
    (seed,) = {value.name for value in model.graph.input} - set(arrays)
    feed = {**arrays, seed: grad_out}
    session = open_session(model)
    gradients = session.run(None, feed)[-len(wrt) :]
    calls: dict[str, Callable[[], object]] = {
        "ours": partial(session.run, None, feed),
        "pytorch": pytorch_network(network),
    }
    truth, theirs = (_gradients(twin, tensors, grad_out, dtype) for dtype in (torch.float64, torch.float32))
    calls["pytorch"]()
    times = medians(calls, repeats)
    ratio = grown(model, feed, THREADS) / grown_calling(partial(pytorch_network, network), THREADS) if memory else None
    errors = _error(gradients, truth), _error(theirs, truth)
    return NetworkRow(name, times["ours"], times["pytorch"], *errors, seconds, ratio)


def pytorch_network(network: Network) -> Callable[[], Sequence[torch.Tensor]]:
    """PyTorch's forward and backward of a network: its output, and the gradients of all parameters."""
    import torch

    twin = network.twin()
    parameters = list(twin.parameters())
    tensors = [torch.from_numpy(array) for array in network.arrays().values()]
    upstream = torch.from_numpy(_grad_out(twin, tensors))

    def call() -> Sequence[torch.Tensor]:
        result = twin(*tensors)
        return result, *torch.autograd.grad(result, parameters, upstream)

    return call


def _grad_out(twin: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> Array:
    """An upstream gradient of noise."""
    import torch

    with torch.inference_mode():
        shape = tuple(twin(*tensors).shape)
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def _smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Noise of a fourth of the resolution, enlarged."""
    axes = len(shape) - 2
    noise = rng.standard_normal((*shape[:2], *(size // 4 for size in shape[2:])), np.float32)
    identity = np.broadcast_to(np.eye(axes, axes + 1, dtype=np.float32), (shape[0], axes, axes + 1))
    return grid_sample_nd(noise, affine_grid(identity, shape), "bicubic", "border")


def _gradients(
    twin: torch.nn.Module, tensors: Sequence[torch.Tensor], grad_out: Array, dtype: torch.dtype
) -> list[Array]:
    """PyTorch's gradients of all parameters, computed in `dtype`."""
    import torch

    module = copy.deepcopy(twin).to(dtype)
    result = module(*[tensor.to(dtype) for tensor in tensors])
    found = torch.autograd.grad(result, list(module.parameters()), torch.from_numpy(grad_out).to(dtype))
    return [gradient.numpy() for gradient in found]


def _error(found: Sequence[Array], truth: Sequence[Array]) -> float:
    """Relative error, in the root of the mean square, of the parameter where it is largest."""
    pairs = zip(found, truth, strict=True)
    return max(float(np.linalg.norm(got - expected) / np.linalg.norm(expected)) for got, expected in pairs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what PyTorch's exporter has to say of packages that are not needed here."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
