"""Cases whose inputs are written down: public bug reports, and inputs at which runtimes are known to differ."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from lucid_onnx.conformance.case import WrittenCase
from lucid_onnx.reference.schema import Array, float_dtype

FILES = ("public_reports.json", "divergence_rows.json")
"""Where they are written down."""

OPS = {"grid_sample": "GridSample", "affine_grid": "AffineGrid"}


@dataclass(frozen=True)
class PinnedCase(WrittenCase):
    """A case whose inputs are written down.

    Parameters
    ----------
    name : str
        Of the entry.
    source, note : str
        Where it is from, and what there is to say.

    Examples
    --------
    >>> case = next(case for case in pinned_cases() if case.name == "infinite-pixel-under-an-outside-tap")
    >>> case.id, case.inputs()["X"].tolist()
    ('report-infinite-pixel-under-an-outside-tap', [[[[1.0, inf]]]])
    """

    name: str = ""
    source: str = ""
    note: str = ""

    @property
    def id(self) -> str:
        """The name of the case, which never changes."""
        return f"report-{self.name}" + ("-backward" if self.op.endswith("Grad") else "")

    @property
    def probes(self) -> str:
        """What the case probes, in words."""
        return self.note or f"{self.name.replace('-', ' ')} ({self.source})"

    @property
    def ordinary(self) -> bool:
        """False: most are about coordinates that are not finite, or far."""
        return False

    def inputs(self) -> dict[str, Array]:
        """Every input of the operator by name."""
        entry, dtype = _entries()[self.name], float_dtype(self.dtype, "conformance", "dtype")
        if self.op == "AffineGrid":
            return {"theta": _array(entry["theta"], dtype), "size": np.array(entry["size"])}
        x, grid = _array(entry["x"], dtype), _array(entry["grid"], dtype)
        if self.op == "GridSample":
            return {"X": x, "grid": grid}
        return {"dY": np.ones((*x.shape[:2], *grid.shape[1:-1]), dtype), "X": x, "grid": grid}


def pinned_cases() -> Iterator[PinnedCase]:
    """Every such case; those whose gradients are written down, too, once as a gradient."""
    for name, entry in _entries().items():
        op = OPS[entry["op"]]
        rank = len(entry["size"]) if op == "AffineGrid" else np.ndim(entry["x"])
        how: Any = (rank, entry.get("mode", ""), entry.get("padding_mode", ""), entry["align_corners"])
        about: Any = (entry["dtype"], 20, "symbolic", "report", name, entry.get("source", ""), entry.get("note", ""))
        yield PinnedCase(op, *how, *about)
        if "grad_out" in entry:
            yield PinnedCase(f"{op}Grad", *how, *about)


@functools.cache
def _entries() -> dict[str, dict[str, Any]]:
    folder = files("lucid_onnx.conformance")
    contents = [json.loads((folder / name).read_text(encoding="utf-8")) for name in FILES]
    return {entry["name"]: entry for content in contents for entry in content["values"]}


def _array(nested: Any, dtype: np.dtype[Any]) -> Array:
    """The strings nan, inf and -inf stand for the values; float() reads them."""
    array: Array = np.vectorize(float)(np.array(nested, dtype=object)).astype(dtype)
    return array
