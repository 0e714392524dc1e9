"""What every rule is held to, over declarative cases.

A case is a small model as ONNX text, with ``T`` for the float dtype, and the same in PyTorch. From it come a model in
float64 and one in float32, with the shapes as written and with every dimension symbolic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from gradient.repaired import REPAIRED
from onnx.reference import ReferenceEvaluator

import lucid_onnx as lo

ONNX_TYPES = {"float64": "double", "float32": "float", "float16": "float16", "bfloat16": "bfloat16"}


@dataclass(frozen=True)
class Case:
    """One row.

    Parameters
    ----------
    id : str
        Name of the test.
    text : str
        Inputs, outputs and nodes: ``"(T[2,3] x, T[3] y) => (T[2,3] z) { z = Add(x, y) }"``. ``@T`` is the number of the
        float dtype, for a Cast. Inputs of int64, int32 and bool are constants that `feed` gives.
    torch : callable, optional
        The same, on tensors in the order of the inputs; returns a tensor or a tuple of them.
    feed : mapping of str to array-like
        Values of inputs; those that are missing are made: standard normal, from `low` to `high` if these are given.
    low, high : float, optional
        Limits of the inputs that are made.
    wrt : tuple of str, optional
        By default all float inputs.
    opset : int
        Of the model.
    differences : bool
        Whether the gradient equals finite differences; not so at a kink.
    second : bool
        Whether the gradient of the gradient is checked, too.
    symbolic : bool
        Whether the case is repeated with every dimension symbolic.
    half : bool
        Whether it is repeated in float16.
    """

    id: str
    text: str
    torch: Callable[..., Any] | None = None
    feed: Mapping[str, Any] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None
    wrt: tuple[str, ...] | None = None
    opset: int = 20
    differences: bool = True
    second: bool = True
    symbolic: bool = True
    half: bool = False

    def model(self, dtype: str = "float64", symbolic: bool = False) -> onnx.ModelProto:
        """The case as a model."""
        text = re.sub(r"(?<!@)\bT(?=[\[ ])", ONNX_TYPES[dtype], self.text)
        text = text.replace("@T", str(onnx.TensorProto.DataType.Value(ONNX_TYPES[dtype].upper())))
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {self.opset}]> case {text}')
        if symbolic:
            for value in (*model.graph.input, *model.graph.output):
                for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
                    if value.type.tensor_type.elem_type in _FLOATS:
                        dimension.dim_param = f"{value.name}_{axis}"
        return model

    def inputs(self, dtype: str = "float64") -> dict[str, np.ndarray]:
        """Values of the inputs."""
        rng = np.random.default_rng(sum(map(ord, self.id)))
        feed = {}
        for value in self.model().graph.input:
            name, tensor = value.name, value.type.tensor_type
            shape = [dimension.dim_value for dimension in tensor.shape.dim]
            array = self.feed.get(name)
            if tensor.elem_type in _FLOATS:
                if array is None:
                    limits = self.low, self.high
                    array = rng.standard_normal(shape) if limits == (None, None) else rng.uniform(*limits, shape)
                # Every dtype of a case sees the same numbers.
                feed[name] = np.asarray(array, np.float32).reshape(shape).astype(dtype)
            else:
                feed[name] = np.asarray(array, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)).reshape(shape)
        return feed

    def names(self) -> list[str]:
        """What is differentiated for."""
        if self.wrt is not None:
            return list(self.wrt)
        return [v.name for v in self.model().graph.input if v.type.tensor_type.elem_type in _FLOATS]

    def outputs(self) -> list[str]:
        """The float outputs."""
        return [v.name for v in self.model().graph.output if v.type.tensor_type.elem_type in _FLOATS]

    def seeds(self, dtype: str = "float64") -> dict[str, np.ndarray]:
        """Upstream gradients."""
        values = run(self.model(), self.inputs(), self.outputs())
        rng = np.random.default_rng(7)
        return {
            f"{name}_grad": rng.standard_normal(array.shape).astype(np.float32).astype(dtype)
            for name, array in values.items()
        }


_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_STEP = 1e-5

_NO_KERNEL = ("not implemented", "not a registered", "lrn.h:23")
"""Parts of the messages in which onnxruntime says that it has no kernel; the last of LRN of an even size."""


def session(model: onnx.ModelProto, threads: int = 1) -> ort.InferenceSession:
    """A session of onnxruntime."""
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model: onnx.ModelProto, feed: Mapping[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    """Outputs of a model: of onnxruntime where it has the kernels, of ONNX's reference evaluator otherwise."""
    return dict(zip(names, runner(model)(names, feed), strict=True))


def runner(model: onnx.ModelProto) -> Callable[[list[str], Mapping[str, np.ndarray]], list[np.ndarray]]:
    """What runs a model."""
    try:
        return session(model).run
    except (ort.capi.onnxruntime_pybind11_state.NotImplemented, ort.capi.onnxruntime_pybind11_state.InvalidGraph):
        return ReferenceEvaluator(model, new_ops=REPAIRED).run
    except ort.capi.onnxruntime_pybind11_state.Fail as error:
        if not any(text in str(error).lower() for text in _NO_KERNEL):
            raise
        return ReferenceEvaluator(model, new_ops=REPAIRED).run


def grad_names(case: Case) -> list[str]:
    """Names of the outputs that hold the gradients."""
    return [f"{name}_grad" for name in case.names()]


@cache
def truth(case_id: str, case: HashedCase) -> dict[str, np.ndarray]:
    """Gradients in float64, by the gradient model."""
    return gradients(case.case)


@dataclass(frozen=True)
class HashedCase:
    """A case that compares by its name, for a cache."""

    id: str
    case: Case = field(compare=False, hash=False)


def gradients(case: Case, dtype: str = "float64", symbolic: bool = False) -> dict[str, np.ndarray]:
    """Gradients of a case by its gradient model."""
    model = lo.gradient(case.model(dtype, symbolic), case.names(), case.outputs())
    onnx.checker.check_model(model, full_check=not symbolic)
    feed = {**case.inputs(dtype), **case.seeds(dtype)}
    return run(model, feed, grad_names(case))


def of(case: Case) -> dict[str, np.ndarray]:
    """Gradients in float64, computed once."""
    return truth(case.id, HashedCase(case.id, case))


def by_pytorch(case: Case, dtype: str = "float64") -> dict[str, np.ndarray]:
    """Gradients of a case by PyTorch."""
    torch = pytest.importorskip("torch", reason="PyTorch is the witness")
    assert case.torch is not None
    names = case.names()
    tensors = {name: torch.tensor(array) for name, array in case.inputs(dtype).items()}
    for name in names:
        tensors[name].requires_grad_()
    results = case.torch(*tensors.values())
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    seeds = [torch.tensor(seed) for seed in case.seeds(dtype).values()]
    assert [tuple(r.shape) for r in results] == [tuple(s.shape) for s in seeds], "the twin has other shapes"
    pairs = [(r, s) for r, s in zip(results, seeds, strict=True) if r.requires_grad]
    leaves, results, seeds = [tensors[name] for name in names], [r for r, _ in pairs], [s for _, s in pairs]
    grads = torch.autograd.grad(results, leaves, seeds, allow_unused=True)
    return {
        f"{name}_grad": (torch.zeros_like(tensors[name]) if grad is None else grad).detach().numpy()
        for name, grad in zip(names, grads, strict=True)
    }


def check_against_pytorch(case: Case) -> None:
    """The values and gradients in float64 are PyTorch's."""
    torch = pytest.importorskip("torch", reason="PyTorch is the witness")
    if case.torch is None:
        pytest.skip("PyTorch has no such operator")
    primal = run(case.model(), case.inputs(), case.outputs())
    results = case.torch(*map(torch.tensor, case.inputs().values()))
    for name, result in zip(primal, [results] if isinstance(results, torch.Tensor) else results, strict=True):
        np.testing.assert_allclose(result.numpy(), primal[name], rtol=1e-5, atol=1e-6, err_msg=f"{name} of the twin")
    want = by_pytorch(case)
    for name, got in of(case).items():
        np.testing.assert_allclose(got, want[name], rtol=1e-9, atol=1e-11, err_msg=name)


def check_against_differences(case: Case) -> None:
    """The gradients in float64 are the slopes along random directions."""
    if not case.differences:
        pytest.skip("at a kink")
    slopes_agree(case.model(), case.inputs(), case.names(), case.outputs(), case.seeds(), of(case))


def slopes_agree(
    model: onnx.ModelProto,
    feed: Mapping[str, np.ndarray],
    wrt: list[str],
    outputs: list[str],
    seeds: Mapping[str, np.ndarray],
    grads: Mapping[str, np.ndarray],
) -> None:
    """Raise unless `grads`, in the order of `wrt`, are the gradients of sum(output * seed)."""
    call, rng = runner(model), np.random.default_rng(3)

    def value(shift: float, directions: Mapping[str, np.ndarray]) -> float:
        moved = {name: np.asarray(feed[name] + shift * directions[name]) for name in directions}
        moved = {**feed, **moved}
        results = call(outputs, moved)
        return sum(float(np.sum(r * s)) for r, s in zip(results, seeds.values(), strict=True))

    for name, grad in zip(wrt, grads.values(), strict=True):
        direction = {name: rng.standard_normal(feed[name].shape)}
        slope = (value(_STEP, direction) - value(-_STEP, direction)) / (2 * _STEP)
        expected = float(np.sum(grad * direction[name]))
        scale = float(np.sum(np.abs(grad * direction[name]))) + 1e-3
        assert abs(slope - expected) < 1e-5 * scale, f"{name}: the slope is {slope}, the gradient says {expected}"


def check_symbolic(case: Case) -> None:
    """Without a known dimension the gradients are the same, and no dimension is made up."""
    if not case.symbolic:
        pytest.skip("the operator needs known shapes")
    for name, got in gradients(case, symbolic=True).items():
        np.testing.assert_allclose(got, of(case)[name], rtol=1e-12, atol=1e-14, err_msg=name)


def check_float32(case: Case) -> None:
    """In float32 the error is within that of PyTorch's float32, and of a few roundings."""
    got = gradients(case, "float32")
    theirs = by_pytorch(case, "float32") if case.torch is not None else {}
    for name, right in of(case).items():
        assert got[name].dtype == np.float32
        assert got[name].shape == right.shape
        finite = np.isfinite(right)
        np.testing.assert_array_equal(got[name][~finite], right[~finite], err_msg=name)
        mine, witness, right = got[name][finite], theirs.get(name, right)[finite], right[finite]
        scale = float(np.max(np.abs(right), initial=0.0))
        allowed = 4 * float(np.max(np.abs(witness - right), initial=0.0)) + 64 * 2**-24 * scale
        assert np.max(np.abs(mine - right), initial=0.0) <= allowed + 1e-30, name


def check_half(case: Case) -> None:
    """In float16 the gradient is that of float32, rounded once."""
    if not case.half:
        pytest.skip("not a case of half precision")
    for name, got in gradients(case, "float16").items():
        right = of(case)[name]
        assert got.dtype == np.float16
        scale = float(np.max(np.abs(right), initial=0.0))
        np.testing.assert_allclose(got.astype("f"), right, rtol=4e-3, atol=4e-3 * scale, err_msg=name)


def check_second(case: Case) -> None:
    """The gradient of the gradient, in float64, is the slope of the gradient along random directions."""
    if not (case.second and case.differences):
        pytest.skip("first order only")
    first = lo.gradient(case.model(), case.names(), case.outputs())
    feed = {**case.inputs(), **case.seeds()}
    names = [*case.names(), *case.seeds()]
    second = lo.gradient(first, names, grad_names(case))
    old = {value.name for value in first.graph.input}
    new_inputs = [value.name for value in second.graph.input if value.name not in old]
    new_outputs = [value.name for value in second.graph.output][len(first.graph.output) :]
    rng = np.random.default_rng(11)
    shapes = [of(case)[grad].shape for grad in grad_names(case)]
    seeds = {name: rng.standard_normal(shape) for name, shape in zip(new_inputs, shapes, strict=True)}
    grads = run(second, {**feed, **seeds}, new_outputs)
    slopes_agree(first, feed, names, grad_names(case), seeds, grads)
