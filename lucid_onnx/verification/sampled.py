"""The samplings of the original, judged by the reference on the values that the lowered model has there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from lucid_onnx.conformance.tolerance import Verdict, as_computed, image_limits, image_range, judge, undecided
from lucid_onnx.lowering.nodes import Sampling, constant_of, is_sampling, label, read, scopes, walk
from lucid_onnx.lowering.precision import HALF, VALUES
from lucid_onnx.reference import affine_grid, grid_sample_nd
from lucid_onnx.reference.schema import FLOAT_DTYPES, Array, LucidError, UnsupportedError, compute_dtype
from lucid_onnx.verification.report import NodeRow

Values = Mapping[str, Array]


@dataclass(frozen=True)
class Site:
    """A sampling of the main graph: its node, and what it does."""

    node: ir.Node
    sampling: Sampling

    @property
    def name(self) -> str:
        """What a row calls it."""
        return self.node.name or self.node.outputs[0].name or self.node.op_type


def find_sites(model: ir.Model, notes: list[str]) -> list[Site]:
    """The samplings of the main graph of a typed model; `notes` gets what is said of others."""
    sites = []
    for node in filter(is_sampling, model.graph):
        try:
            sites.append(Site(node, read(node)))
        except LucidError as error:
            notes.append(f"{error}; it is judged by the outputs only")
    everywhere = sum(is_sampling(node) for scope in scopes(model) for node in walk(scope))
    hidden = everywhere - sum(map(is_sampling, model.graph))
    if hidden:
        notes.append(f"samplings in subgraphs or functions are judged by the outputs only: {hidden}")
    return sites


def exposed_names(sites: list[Site], names: set[str]) -> list[str]:
    """Values that `judge_site` reads, of a model that has values of these names."""
    wanted: dict[str | None, None] = {}
    for site in sites:
        values = [value for value in (*site.node.inputs, *site.node.outputs) if value is not None]
        wanted.update({value.name: None for value in values})
        grid = site.node.inputs[1]
        if grid is not None:
            wanted[_seen_name(grid, names)] = None
            wanted.update({value.name: None for value in _affine_inputs(grid)})
    return [name for name in wanted if name]


def judge_site(site: Site, values: Values, inputs: str) -> NodeRow:
    """Judge the result of a sampling.

    Parameters
    ----------
    site : Site
        The sampling.
    values : mapping of str to Array
        Values of the model that was run; of them those of `exposed_names`, if it has them.
    inputs : str
        What the row says of the inputs.

    Raises
    ------
    UnsupportedError
        A value that is needed has no name in the model that was run, or an image of integers is interpolated.
    """
    got = values.get(site.node.outputs[0].name or "")
    if got is None:
        raise UnsupportedError(f"{label(site.node)}: its result has no name of its own in the lowered model")
    what = f"{site.node.op_type} {site.sampling}"
    try:
        verdict = _judge_grid(site, got, values) if site.sampling.op == "AffineGrid" else _judge_y(site, got, values)
    except UnsupportedError:
        raise
    except LucidError:  # it has a shape that the reference does not give
        return NodeRow(site.name, what, inputs, 0.0, 0.0, 0, got.size, False)
    allowed = 0.0 if site.sampling.mode == "nearest" else verdict.max_allowed  # what is chosen is the same, or wrong
    figures = (verdict.max_error, allowed, verdict.set_aside, verdict.mismatches)
    return NodeRow(site.name, what, inputs, *figures, verdict.ok)


def _judge_grid(site: Site, got: Array, values: Values) -> Verdict:
    theta, size = site.node.inputs[:2]
    maps = _needed(site, theta, values)
    sizes = _value(size, values)
    # The lowered model may have no need of the size itself.
    wanted = (maps.shape[0], 1, *got.shape[1:-1]) if sizes is None else sizes.tolist()
    corners = site.sampling.align_corners
    scale = image_range(np.abs(maps).sum(-1))
    return judge(got, lambda dtype: affine_grid(maps.astype(dtype), wanted, corners), maps.dtype, scale)


def _judge_y(site: Site, got: Array, values: Values) -> Verdict:
    sampling = site.sampling
    x = _needed(site, site.node.inputs[0], values)
    is_float = x.dtype.name in FLOAT_DTYPES
    if not is_float and sampling.mode != "nearest":
        raise UnsupportedError(f"{label(site.node)}: interpolated integers are judged by the outputs only")
    grid_in = _grid(site, got, values)
    grid = grid_in(np.dtype(np.float32))
    how = (sampling.mode, sampling.padding_mode, sampling.align_corners)
    meeting = compute_dtype(x.dtype, grid.dtype).name
    sizes = x.shape[2:]
    doubtful = undecided(as_computed(grid, sizes, sampling.align_corners, meeting), sizes, *how, meeting)

    def compute(dtype: np.dtype[Any]) -> Array:
        if dtype == np.float64:
            seen = as_computed(grid_in(dtype), sizes, sampling.align_corners, meeting)
        else:
            seen = grid.astype(np.float32) if grid.dtype == np.float64 else grid
        with np.errstate(over="ignore"):
            return grid_sample_nd(x.astype(dtype), seen, *how)

    limits = None if sampling.mode == "bicubic" else image_limits(x)
    working = x.dtype if is_float else np.dtype(np.float64)
    return judge(got, compute, working, image_range(x), doubtful[:, None], sampling.mode == "nearest", limits)


def _grid(site: Site, got: Array, values: Values) -> Callable[[np.dtype[Any]], Array]:
    """The grid that the lowered model samples at, from a dtype to compute it in, where it must be computed.

    It must where it has no name of its own there because it is folded, or stays in float32 behind an AffineGrid:
    then it is the reference's.
    """
    grid = site.node.inputs[1]
    assert grid is not None
    seen = values.get(_seen_name(grid, set(values)))
    inputs = _affine_inputs(grid)
    if seen is None and not inputs:
        seen = _value(grid, values)
    if seen is not None and not (inputs and grid.dtype in HALF):
        array = seen
        return lambda dtype: array
    theta = _value(inputs[0], values) if inputs else None
    if theta is None or site.sampling.mode == "nearest":
        # Nearest shows every last bit of the grid, which is not known here.
        raise UnsupportedError(
            f"{label(site.node)}: its grid {grid.name!r} has no name in the lowered model; "
            "it is judged by the outputs only"
        )
    maps, producer = theta, grid.producer()
    assert producer is not None
    corners = read(producer).align_corners
    size = (maps.shape[0], 1, *got.shape[2:])
    return lambda dtype: affine_grid(maps.astype(np.promote_types(dtype, np.float32)), size, corners)


def _seen_name(grid: ir.Value, names: set[str]) -> str:
    """Name of the values that the lowered model samples at: a grid of half precision is raised to float32."""
    producer = grid.producer()
    if grid.dtype in HALF and producer is not None and producer.domain == "":
        if producer.op_type == "Cast" and producer.inputs[0] is not None:
            return producer.inputs[0].name or ""
        twin = f"{grid.name}_float32/{producer.op_type}_output"
        if producer.op_type in VALUES and twin in names:
            return twin
    return grid.name or ""


def _affine_inputs(grid: ir.Value) -> list[ir.Value]:
    """The theta of the AffineGrid that a grid comes from, if it comes from one."""
    producer = grid.producer()
    if producer is None or not is_sampling(producer) or producer.op_type != "AffineGrid":
        return []
    theta = producer.inputs[0]
    return [] if theta is None else [theta]


def _value(value: ir.Value | None, values: Values) -> Array | None:
    """An array, from a run or from the original's constants."""
    if value is None:
        return None
    known = values.get(value.name or "")
    if known is not None:
        return known
    constant = value.const_value if value.is_initializer() else constant_of(value)
    return None if constant is None else constant.numpy()


def _needed(site: Site, value: ir.Value | None, values: Values) -> Array:
    array = _value(value, values)
    if array is None:
        name = None if value is None else value.name
        raise UnsupportedError(
            f"{label(site.node)}: its input {name!r} has no name in the lowered model; it is judged by the outputs only"
        )
    return array


def judged(sites: list[Site], values: Values, inputs: str, notes: list[str]) -> Iterator[NodeRow]:
    """Rows of all sites that can be judged; `notes` gets why others cannot, once."""
    for site in sites:
        try:
            yield judge_site(site, values, inputs)
        except UnsupportedError as error:
            if str(error) not in notes:
                notes.append(str(error))
