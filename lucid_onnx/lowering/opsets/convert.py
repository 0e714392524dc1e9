"""A model brought to another version of ONNX's default domain."""

from __future__ import annotations

from collections.abc import Collection

import onnx
import onnx_ir as ir

from lucid_onnx.lowering.opsets.obstacles import Obstacle, check_target
from lucid_onnx.lowering.opsets.plans import carry_out, plan_nodes
from lucid_onnx.lowering.opsets.steps import name_of
from lucid_onnx.reference.schema import UnsupportedError


def first_obstacle(
    model: ir.Model, opset: int, ours: Collection[str] = ("GridSample", "AffineGrid")
) -> Obstacle | None:
    """The first node that cannot follow to `opset`, and why; None if all can.

    Parameters
    ----------
    model : onnx_ir.Model
        Stays as it is.
    opset : int
        Version of the default domain.
    ours : collection of str
        Operators that the caller rewrites, which are skipped.

    Raises
    ------
    UnsupportedError
        Models cannot be converted to `opset` at all.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> model = ir.from_onnx_text('''<ir_version: 9, opset_import: ["": 19]>
    ... wrapped (float[4] x, int64[2] n) => (float[M] y) { [around] y = Pad <mode = "wrap"> (x, n) }''')
    >>> first_obstacle(model, 20)
    >>> first_obstacle(model, 16).reason
    'at opset 19 it got the mode wrap'
    """
    check_target(opset)
    return next((plan for plan in plan_nodes(model, opset, ours) if isinstance(plan, Obstacle)), None)


def convert_opset(model: ir.Model, opset: int, ours: Collection[str] = ("GridSample", "AffineGrid")) -> list[str]:
    """Bring `model`, in place, to another version of the default domain; the names of the nodes that changed.

    Its graph, subgraphs and model-local functions are converted, each function from the version that it imports.
    All else stays: names, order, doc strings, metadata, shapes, and weights, which are not read. Its IR version
    rises where `opset` needs it.

    Parameters
    ----------
    model : onnx_ir.Model
        Unchanged where an error is raised.
    opset : int
        Version of the default domain.
    ours : collection of str
        Operators that the caller rewrites, which are skipped.

    Raises
    ------
    UnsupportedError
        A node cannot follow, or models cannot be converted to `opset` at all.

    Examples
    --------
    >>> import onnx_ir as ir
    >>> model = ir.from_onnx_text('''<ir_version: 8, opset_import: ["": 18]>
    ... means (float[2, 3] x) => (float[2, 1] y) <int64[1] axes = {1}> { [mean] y = ReduceMean (x, axes) }''')
    >>> convert_opset(model, 16)
    ['mean']
    >>> model.graph[0].attributes["axes"].as_ints(), model.opset_imports
    ((1,), {'': 16})
    """
    check_target(opset)
    feasible = []
    for plan in plan_nodes(model, opset, ours):
        if isinstance(plan, Obstacle):
            raise UnsupportedError(f"convert_opset: {plan}")
        feasible.append(plan)
    changed = [name_of(plan.node) for plan in feasible if plan.dropped or plan.steps]
    carry_out(feasible, model, opset)
    needed = onnx.helper.find_min_ir_version_for([onnx.helper.make_opsetid("", opset)])
    model.ir_version = max(model.ir_version, needed)
    return changed
