"""Types of values, spelled as schemas spell them, and values that are constants."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from lucid_onnx.lowering.opsets.obstacles import StuckError
from lucid_onnx.lowering.opsets.schemas import Signature, present, signature_of

_MOST_NUMBERS = 1024


class Types(dict[ir.Value, str]):
    """Types of values as schemas write them, those included that follow from the operators alone."""

    def of(self, value: ir.Value | None) -> str | None:
        """The type of a value, such as ``tensor(float)``; None if it is not known."""
        if value is None:
            return None
        if value.type is not None and value.type.dtype != ir.DataType.UNDEFINED:
            return text_of(value.type)
        tensor = constant_of(value)
        return self.get(value) if tensor is None else f"tensor({tensor.dtype.name.lower()})"

    def infer(self, node: ir.Node, version: int) -> None:
        """Learn the types of outputs that are not declared, where the schema leaves no choice."""
        if all(self.of(value) for value in node.outputs):
            return
        signature = signature_of(node.op_type, version)
        if signature is None or len(node.inputs) > signature.most_inputs or len(node.outputs) > signature.most_outputs:
            return
        bound = {}
        for position, value in enumerate(node.inputs):
            parameter, type_ = signature.formal("inputs", position), self.of(value)
            if type_ is not None and parameter.homogeneous:
                bound[parameter.variable] = type_
        to = node.attributes.get("to") if node.op_type == "Cast" else None
        for position, value in enumerate(node.outputs):
            parameter = signature.formal("outputs", position)
            if to is not None and not to.is_ref():
                self[value] = f"tensor({ir.DataType(to.as_int()).name.lower()})"
            elif parameter.homogeneous and parameter.variable in bound:
                self[value] = bound[parameter.variable]
            elif len(parameter.types) == 1:
                (self[value],) = parameter.types

    def check(self, node: ir.Node, signature: Signature) -> None:
        """Raise unless the types that are known are allowed by the signature; not known is allowed."""
        bound: dict[str, str] = {}
        for which, values in (("inputs", node.inputs), ("outputs", node.outputs)):
            for position, value in enumerate(present(values)):
                type_ = self.of(value)
                if type_ is None:
                    continue
                parameter = signature.formal(which, position)
                if type_ not in parameter.types:
                    raise StuckError(f"its {which[:-1]} {parameter.name} cannot be a {type_} there")
                if parameter.homogeneous and bound.setdefault(parameter.variable, type_) != type_:
                    raise StuckError(
                        f"its {which[:-1]} {parameter.name}, a {type_}, must be a {bound[parameter.variable]} there"
                    )


def text_of(type_: ir.TypeProtocol) -> str:
    """A type as schemas write it."""
    kinds = {ir.SequenceType: "seq", ir.OptionalType: "optional", ir.SparseTensorType: "sparse_tensor"}
    kind = next((text for class_, text in kinds.items() if isinstance(type_, class_)), "tensor")
    inner = type_.elem_type
    return f"{kind}({inner.name.lower() if isinstance(inner, ir.DataType) else text_of(inner)})"


def type_of(text: str) -> ir.TypeProtocol:
    """The inverse of `text_of`."""
    kind, _, inner = text.removesuffix(")").partition("(")
    if kind == "seq":
        return ir.SequenceType(type_of(inner))
    if kind == "optional":
        return ir.OptionalType(type_of(inner))
    dtype = ir.DataType[inner.upper()]
    return ir.SparseTensorType(dtype) if kind == "sparse_tensor" else ir.TensorType(dtype)


def constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """The tensor that `value` always is; an initializer that callers may override is none."""
    if value.const_value is not None:
        return None if value.is_graph_input() else value.const_value
    node = value.producer()
    if node is None or node.domain or node.op_type != "Constant":
        return None
    for attribute in node.attributes.values():
        if attribute.is_ref():
            return None
        if attribute.name == "value":
            return attribute.as_tensor()
        if attribute.name in ("value_int", "value_ints"):
            return ir.tensor(np.array(attribute.value, np.int64))
        if attribute.name in ("value_float", "value_floats"):
            return ir.tensor(np.array(attribute.value, np.float32))
    return None


def small_constant_of(value: ir.Value) -> ir.TensorProtocol | None:
    """The tensor that `value` always is, if it is small and need not be read from a file."""
    tensor = constant_of(value)
    if tensor is None or tensor.size > _MOST_NUMBERS or isinstance(tensor, ir.ExternalTensor):
        return None
    return tensor
