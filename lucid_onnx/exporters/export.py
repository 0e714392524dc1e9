"""One function for every way in."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnxscript import nn

from lucid_onnx.exporters.module import module_to_model
from lucid_onnx.files import write_model
from lucid_onnx.models import ZOO
from lucid_onnx.operators import TARGETS
from lucid_onnx.operators.finishing import DEFAULT_OPSET, check_opset
from lucid_onnx.operators.tensors import Dimension
from lucid_onnx.reference.schema import ArgumentError, DtypeError, check_choice


def export(
    source: str | nn.Module,
    path: str | os.PathLike[str],
    *,
    opset: int = DEFAULT_OPSET,
    target: str = "onnxruntime-cpu",
    inputs: Mapping[str, Sequence[Dimension]] | None = None,
    outputs: Sequence[str] | None = None,
    **arguments: Any,
) -> onnx.ModelProto:
    """Write a model of the zoo, or a module of your own, as an ONNX file.

    Parameters
    ----------
    source : str or onnxscript.nn.Module
        A name of `lucid_onnx.models.ZOO`, or a module.
    path : path
        File to write; it is replaced only once the model is complete.
    opset : int
        From 16 up to the newest that the installed onnx knows.
    target : str
        Name of the runtime the model is for, one of `lucid_onnx.operators.TARGETS`. The sampling is made of
        standard operators and is the same for all of them.
    inputs : mapping of str to sequence, optional
        Names and shapes of the module's float32 inputs, in the order of its ``forward``; strings are
        symbolic dimensions. For a model of the zoo its arguments decide.
    outputs : sequence of str, optional
        Names of the outputs.
    **arguments
        For a name of the zoo: arguments of its class, such as ``sizes=(64, 64)`` or ``mode="bicubic"``.

    Returns
    -------
    onnx.ModelProto
        What was written: checked, with shapes inferred.

    Raises
    ------
    ArgumentError
        A `ValueError`: an unknown name or argument, a path that cannot be written, inputs that are not known.
    DtypeError
        A `TypeError`: `source` is neither a name nor a module.
    UnsupportedError
        A `NotImplementedError`: an opset that no model can be built at.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = export("spatial_transformer", f"{folder}/st.onnx", sizes=(32, 32), channels=3)
    >>> [value.name for value in model.graph.output]
    ['Y', 'theta']
    """
    check_choice("export", "target", target, TARGETS)
    opset = check_opset("export", opset)
    if isinstance(source, str) and inputs is not None:
        raise ArgumentError(f"export: the model {source!r} knows its inputs; its arguments decide on their shapes")
    model = module_to_model(_module(source, arguments), opset, inputs, outputs)
    write_model(model, path)
    return model


def _module(source: str | nn.Module, arguments: Mapping[str, Any]) -> nn.Module:
    if isinstance(source, str):
        check_choice("export", "a model's name", source, tuple(ZOO))
        _check_arguments(f"the model {source}", inspect.signature(ZOO[source]).parameters, arguments)
        return ZOO[source](**arguments)
    if not isinstance(source, nn.Module):
        raise DtypeError(
            f"export: source must be a name of the zoo ({', '.join(ZOO)}) or an onnxscript.nn.Module; "
            f"got {type(source).__name__}"
        )
    _check_arguments("a module that is made already", {}, arguments)
    return source


def _check_arguments(what: str, known: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    unknown = [name for name in arguments if name not in known]
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise ArgumentError(f"export: {what} has no argument {', '.join(unknown)}; {takes}")
