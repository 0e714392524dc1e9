"""Tables of one's own: TOML that extends the table of a target.

::

    name = "my-runtime"
    extends = "onnxruntime-cuda"      # its rows are tried after the new ones; "portable" has none
    about = "our build, with 5-D kernels"
    newest_opset = 22                 # optional

    [[kernel]]
    op = "GridSample"
    opsets = [20]                     # from 20 on; [16, 19] for a range
    ranks = [5]
    modes = ["bilinear", "nearest"]
    source = "our release notes, 3.2"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, TypeAlias

from lucid_onnx.files import check_readable
from lucid_onnx.lowering.nodes import OPERATORS
from lucid_onnx.lowering.rows import FAULTS, FORMS, GRIDS, RENAMED, Kernel, Target
from lucid_onnx.lowering.targets import TARGETS
from lucid_onnx.operators.finishing import OLDEST_OPSET
from lucid_onnx.reference.schema import FLOAT_DTYPES, MODES, PADDING_MODES, SPATIAL_AXES, ArgumentError, DtypeError

TargetSource: TypeAlias = "str | os.PathLike[str] | Target"
"""A target: its name, a TOML file, or itself."""


def find_target(source: TargetSource) -> Target:
    """The table of a target.

    Parameters
    ----------
    source : str, path or Target
        A name of `TARGETS`, or a TOML file, whose name ends in .toml.

    Raises
    ------
    ArgumentError
        No such target, or a file that is no such table: what is wrong with it, and where.

    Examples
    --------
    >>> find_target("tensorrt").newest_opset
    24
    """
    if isinstance(source, Target):
        return source
    if not isinstance(source, str | os.PathLike):
        raise DtypeError(f"target must be a name, a path to a table or a Target; got {source!r}")
    name = str(os.fspath(source))
    if name in TARGETS:
        return TARGETS[name]
    if not name.lower().endswith(".toml"):
        near = get_close_matches(name.lower(), TARGETS, n=1, cutoff=0.5) or [t for t in TARGETS if name.lower() in t]
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ArgumentError(
            f"unknown target {name!r}{hint}; there are {', '.join(TARGETS)}, or a table of your own: FILE.toml"
        )
    check_readable(name)
    try:
        with open(name, "rb") as file:
            content = tomllib.load(file)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{name!r} is not valid TOML: {error}") from None
    return _target(content, name)


def _target(content: Mapping[str, Any], path: str) -> Target:
    known = {"name": str, "extends": str, "about": str, "newest_opset": int, "kernel": list}
    _check_keys(content, known, path)
    base = TARGETS.get(content.get("extends", "portable"))
    if base is None:
        raise ArgumentError(f"{path}: it extends {content['extends']!r}; there are {', '.join(TARGETS)}")
    newest = content.get("newest_opset", OLDEST_OPSET)
    if newest < OLDEST_OPSET:
        raise ArgumentError(f"{path}: newest_opset must be {OLDEST_OPSET} or newer, got {newest}")
    rows = tuple(_kernel(row, f"{path}: kernel {k}") for k, row in enumerate(content.get("kernel", []), start=1))
    name = content.get("name", os.path.splitext(os.path.basename(path))[0])
    return Target(
        name,
        content.get("about", f"extends {base.name}"),
        rows + base.kernels,
        content.get("newest_opset", base.newest_opset),
    )


_ALLOWED: dict[str, tuple[Any, ...]] = {
    "op": OPERATORS,
    "ranks": tuple(SPATIAL_AXES),
    "modes": MODES,
    "padding_modes": PADDING_MODES,
    "align_corners": (False, True),
    "dtypes": FLOAT_DTYPES,
    "grid": tuple(GRIDS),
    "form": tuple(FORMS),
    "wrong": tuple(FAULTS),
}
"""What the entries of a row may be, or hold."""


def _kernel(row: Any, where: str) -> Kernel:
    if not isinstance(row, dict):
        raise ArgumentError(f"{where}: a row is written [[kernel]]")
    lists = {"opsets", "ranks", "modes", "padding_modes", "align_corners", "dtypes", "wrong", "channels"}
    types = {field.name: list if field.name in lists else str for field in fields(Kernel)}
    _check_keys(row, types, where)
    for name in ("op", "opsets", "source"):
        if name not in row:
            raise ArgumentError(f"{where}: {name} is missing")
    for name, value in row.items():
        if not value:
            raise ArgumentError(f"{where}: {name} is empty")
    for name, allowed in _ALLOWED.items():
        for value in row.get(name, []) if name in lists else [row[name]] if name in row else []:
            if value not in allowed or type(value) is not type(allowed[0]):
                raise ArgumentError(f"{where}: {name} has {value!r}; it may be {', '.join(map(_toml, allowed))}")
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    for name in ("opsets", "channels"):
        if name in values:
            values[name] = _range(values[name], f"{where}: {name}")
    first = {"GridSample": OLDEST_OPSET, "AffineGrid": RENAMED}[row["op"]]
    if values["opsets"][0] < first:
        raise ArgumentError(f"{where}: {row['op']} came with opset {first}, got opsets from {values['opsets'][0]}")
    if row["op"] == "AffineGrid" and row.get("form") == "canonical":
        raise ArgumentError(f"{where}: AffineGrid has no canonical form; it may be kept or expanded")
    return Kernel(**values)


def _toml(value: object) -> str:
    """A value as TOML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _range(values: tuple[Any, ...], where: str) -> tuple[int, int | None]:
    """A range that a list of one or two integers stands for."""
    if len(values) not in (1, 2) or not all(type(value) is int and value >= 0 for value in values):
        raise ArgumentError(f"{where} is one integer or two, from and to; got {list(values)}")
    first, last = values if len(values) == 2 else (values[0], None)
    if last is not None and last < first:
        raise ArgumentError(f"{where} ends before it begins: {list(values)}")
    return first, last


def _check_keys(content: Mapping[str, Any], types: Mapping[str, type], where: str) -> None:
    for name, value in content.items():
        if name not in types:
            raise ArgumentError(f"{where}: unknown entry {name!r}; there are {', '.join(types)}")
        if type(value) is not types[name]:
            raise ArgumentError(f"{where}: {name} must be {_TYPES[types[name]]}, got {value!r}")


_TYPES = {str: "a string", int: "an integer", list: "an array"}
