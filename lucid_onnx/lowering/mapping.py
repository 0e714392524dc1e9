"""Custom operators that stand for GridSample or AffineGrid.

They are told by their type, with or without a domain, and may give their attributes by ONNX's names or by PyTorch's
integers, or as constant inputs behind the grid, as ``aten::grid_sampler`` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from lucid_onnx.lowering.nodes import INPUTS, OPERATORS, constant_of, is_sampling, label, scopes, text_of, walk
from lucid_onnx.operators.building import Value
from lucid_onnx.reference.schema import MODES, ONNX_MODES, PADDING_MODES, ArgumentError, DtypeError

_NAMES = {
    "mode": ("mode", "interpolation_mode"),
    "padding_mode": ("padding_mode",),
    "align_corners": ("align_corners",),
}
"""Under which names a custom operator may give an attribute, in the order of PyTorch's arguments."""

_ATTRIBUTES = {"GridSample": ("mode", "padding_mode", "align_corners"), "AffineGrid": ("align_corners",)}

_CODES = {"mode": MODES, "padding_mode": PADDING_MODES}
"""PyTorch's integer codes are positions here."""


def replace_mapped(model: ir.Model, mapping: Mapping[str, str]) -> list[str]:
    """Make the nodes of custom operators that `mapping` names standard ones, in place.

    Parameters
    ----------
    model : onnx_ir.Model
        The model.
    mapping : mapping of str to str
        ``{"GridSample3D": "GridSample"}`` or ``{"my.domain::GridSample3D": "GridSample"}``: type of the custom
        operator, and which of the two it is. Attributes that its nodes do not have may follow:
        ``"GridSample,mode=bilinear,padding_mode=zeros,align_corners=0"``.

    Returns
    -------
    list of str
        Names of the nodes.
    """
    if not isinstance(mapping, Mapping) or not all(isinstance(text, str) for pair in mapping.items() for text in pair):
        raise DtypeError(f"map must be a mapping of str to str, as {{'GridSample3D': 'GridSample'}}; got {mapping!r}")
    wanted = {_parse_key(key): (key, *_parse_value(key, value)) for key, value in mapping.items()}
    found: set[str] = set()
    names, domains = [], set()
    for scope in scopes(model):
        for node in walk(scope):
            entry = wanted.get((node.domain, node.op_type)) or wanted.get((None, node.op_type))
            if entry is None or is_sampling(node):
                continue
            key, op, given = entry
            found.add(key)
            domains.add(node.domain)
            names.append(node.name or node.outputs[0].name or node.op_type)
            _standardize(node, op, given)
    missing = [key for key in mapping if key not in found]
    if missing:
        raise ArgumentError(f"map: the model has no node of {', '.join(missing)}")
    _drop_unused(model, domains)
    return names


def lookalikes(model: ir.Model) -> list[str]:
    """Custom operators whose names say that they sample: ``my.domain::GridSample3D``."""
    found = {
        f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        for scope in scopes(model)
        for node in walk(scope)
        if not is_sampling(node) and re.search("gridsampl|affinegrid", node.op_type.replace("_", "").lower())
    }
    called = {f"{domain}::{name}" for domain, name, _ in model.functions}
    return sorted(found - called)


def _parse_key(key: str) -> tuple[str | None, str]:
    domain, colons, op_type = key.strip().rpartition("::")
    if not op_type:
        raise ArgumentError(f"map: {key!r} names no operator; write GridSample3D or my.domain::GridSample3D")
    return (domain if colons else None), op_type


def _parse_value(key: str, value: str) -> tuple[str, dict[str, str]]:
    op, *given = (part.strip() for part in value.split(","))
    if op not in OPERATORS:
        raise ArgumentError(f"map: {key!r} must stand for {' or '.join(OPERATORS)}, got {op!r}")
    pairs: dict[str, str] = {}
    for part in given:
        name, _, text = (piece.strip() for piece in part.partition("="))
        if not text or name in pairs:
            raise ArgumentError(f"map: {key!r} has {part!r}; each attribute is written once, as mode=bilinear")
        pairs[name] = text
    unknown = [name for name in pairs if name not in _ATTRIBUTES[op]]
    if unknown:
        raise ArgumentError(f"map: {op} has no attribute {unknown[0]!r}; it has {', '.join(_ATTRIBUTES[op])}")
    return op, pairs


def _standardize(node: ir.Node, op: str, given: Mapping[str, str]) -> None:
    """Make a custom node a standard one: its type, its inputs and the attributes that ONNX has."""
    if len(node.outputs) != 1 or len(node.inputs) < 2:
        raise ArgumentError(
            f"{label(node)}: it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; {op} takes "
            f"{' and '.join(INPUTS[op])} and gives one output"
        )
    extra: Sequence[Value | None] = node.inputs[2:]
    values: dict[str, int | str] = {}
    for position, name in enumerate(_ATTRIBUTES[op]):
        value = _given(node, name, extra[position] if position < len(extra) else None, given)
        if value is None:
            raise ArgumentError(
                f"{label(node)}: it has no attribute {name}; give it with the map, as in "
                f"{node.op_type}={op},{name}={'0' if name == 'align_corners' else _CODES[name][0]}"
            )
        values[name] = _decoded(node, name, value)
    node.attributes.clear()
    for name, value in values.items():
        node.attributes[name] = ir.AttrInt64(name, value) if isinstance(value, int) else ir.AttrString(name, value)
    node.resize_inputs(2)
    node.domain, node.op_type, node.overload = "", op, ""


def _given(node: ir.Node, name: str, extra: Value | None, given: Mapping[str, str]) -> int | str | None:
    """An attribute of a custom node: its own, a constant input, or what the map says."""
    for spelled in _NAMES[name]:
        attribute = node.attributes.get(spelled)
        if attribute is not None:
            if attribute.is_ref():
                raise ArgumentError(
                    f"{label(node)}: its attribute {spelled} is that of the function that it is in; inline the function"
                )
            if attribute.type == ir.AttributeType.STRING:
                return text_of(node, spelled, attribute)
            if attribute.type == ir.AttributeType.INT:
                return attribute.as_int()
            raise ArgumentError(f"{label(node)}: its attribute {spelled} is neither a string nor an integer")
    if extra is not None:
        tensor = constant_of(extra)
        if tensor is None or tensor.size != 1:
            raise ArgumentError(f"{label(node)}: its input {extra.name!r}, the {name}, must be a constant number")
        return int(tensor.numpy().item())
    text = given.get(name)
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else text


def _decoded(node: ir.Node, name: str, value: int | str) -> int | str:
    """An attribute as ONNX has it at opset 16; the spelling follows the opset later."""
    if name == "align_corners":
        if value in (0, 1, "0", "1"):
            return int(value)
        raise ArgumentError(f"{label(node)}: align_corners is {value!r}; it must be 0 or 1")
    names = _CODES[name]
    if isinstance(value, int):
        if not 0 <= value < len(names):
            raise ArgumentError(
                f"{label(node)}: {name} is {value}; PyTorch's codes are "
                + ", ".join(f"{code} {known}" for code, known in enumerate(names))
            )
        return names[value]
    value = ONNX_MODES.get(value, value) if name == "mode" else value
    if value not in names:
        raise ArgumentError(f"{label(node)}: {name} is {value!r}; it must be one of {', '.join(names)}")
    return value


def _drop_unused(model: ir.Model, domains: set[str]) -> None:
    """Take away the imports of domains, and functions, that no node uses any longer."""
    nodes = [node for scope in scopes(model) for node in walk(scope)]
    used = {node.domain for node in nodes}
    called = {node.op_identifier() for node in nodes}
    for key in [key for key in model.functions if key[0] in domains and key not in called]:
        del model.functions[key]
    for scope in scopes(model):
        for domain in domains - used - {""}:
            scope.opset_imports.pop(domain, None)
