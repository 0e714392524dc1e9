"""Model-local functions that sample: one copy for each way in which they are called.

Inside a function nothing has a type, and attributes may be those of the call. So a function is looked at from
its calls: for each combination of dtypes, ranks and attributes a copy is typed and rewritten. The first keeps
the name of the function, others get a number.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from lucid_onnx.lowering.inference import infer
from lucid_onnx.lowering.nodes import is_sampling, walk


def sampling_functions(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """The functions that sample, themselves or by others that they call."""
    found = {key for key, function in model.functions.items() if any(map(is_sampling, walk(function)))}
    while True:
        callers = {
            key
            for key, function in model.functions.items()
            if key not in found and any(node.op_identifier() in found for node in walk(function))
        }
        if not callers:
            return found
        found |= callers


def specialize(model: ir.Model) -> list[str]:
    """Give every call of a function that samples a copy that is typed as it is called, in place.

    The model must be typed. Functions that sample and that nothing calls are dropped: nothing says what they
    sample. Returns their names.
    """
    specializer = _Specializer(model)
    waiting: list[ir.Graph | ir.Function] = [model.graph]
    while waiting:
        for node in walk(waiting.pop()):
            copy = specializer.specialize(node)
            if copy is not None:
                waiting.append(copy)
    return specializer.uncalled()


class _Specializer:
    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._originals = {key: model.functions.pop(key) for key in sampling_functions(model)}
        self._copies: dict[object, ir.Function] = {}
        self._called: set[ir.OperatorIdentifier] = set()

    def specialize(self, node: ir.Node) -> ir.Function | None:
        """Have a call use a copy of its function that fits; the copy, where it is new."""
        key = node.op_identifier()
        if key not in self._originals:
            return None
        self._called.add(key)
        original = self._originals[key]
        attributes = attributes_of(original, node)
        signature = (key, _inputs(node), tuple(sorted((name, _content(a)) for name, a in attributes.items())))
        known = self._copies.get(signature)
        if known is not None:
            node.op_type = known.name
            return None
        copy = original.clone()
        for value, cloned in zip(_values(original), _values(copy), strict=True):
            cloned.meta.update(value.meta)
        copy.name = self._fresh(original)
        self._copies[signature] = copy
        self._model.functions[copy.identifier()] = copy
        node.op_type = copy.name
        substitute(copy, attributes)
        self._type(copy, node)
        return copy

    def uncalled(self) -> list[str]:
        """Names of functions that sample but that nothing calls: they are gone."""
        return [key[1] for key in self._originals if key not in self._called]

    def _fresh(self, original: ir.Function) -> str:
        name, number = original.name, 0
        while (original.domain, name, original.overload) in self._model.functions:
            number += 1
            name = f"{original.name}_{number}"
        return name

    def _type(self, copy: ir.Function, call: ir.Node) -> None:
        """Infer the types in a copy from those of a call."""
        twin = copy.clone()
        for inner, outer in zip(twin.inputs, [*call.inputs, *[None] * len(twin.inputs)], strict=False):
            if outer is not None:
                inner.type, inner.shape = outer.type, None if outer.shape is None else outer.shape.copy()
        model = ir.Model(twin.graph, ir_version=self._model.ir_version)
        model.functions.update({**self._originals, **self._model.functions})
        infer(model)
        for typed, untyped in zip(_values(twin), _values(copy), strict=True):
            untyped.type, untyped.shape = typed.type, typed.shape


def attributes_of(function: ir.Function, call: ir.Node) -> dict[str, ir.Attr]:
    """Attributes that a call gives to a function, and the function's own where it gives none."""
    own = {name: attribute for name, attribute in function.attributes.items() if attribute.value is not None}
    return {**own, **{name: attribute for name, attribute in call.attributes.items() if not attribute.is_ref()}}


def _content(attribute: ir.Attr) -> bytes:
    """What tells one value of an attribute from another."""
    content: bytes = ir.to_proto(attribute).SerializeToString()
    return content


def _inputs(call: ir.Node) -> tuple[object, ...]:
    """Dtypes and shapes of what a function is called on, symbols without their names."""
    return tuple(
        None
        if value is None
        else (
            value.dtype,
            None if value.shape is None else tuple(d if isinstance(d, int) else None for d in value.shape),
        )
        for value in call.inputs
    )


def substitute(function: ir.Function, attributes: dict[str, ir.Attr]) -> None:
    """Put the attributes of a call in the place of references to them; what it does not give is not there."""
    for node in walk(function):
        for name, attribute in [*node.attributes.items()]:
            if not attribute.is_ref():
                continue
            given = attributes.get(attribute.ref_attr_name or "")
            if given is not None:
                node.attributes[name] = ir.Attr(name, given.type, given.value)
            else:
                del node.attributes[name]


def _values(function: ir.Function) -> Iterator[ir.Value]:
    yield from function.inputs
    for graph in function.subgraphs():
        yield from graph.inputs
    for node in walk(function):
        yield from node.outputs
