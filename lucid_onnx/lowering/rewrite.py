"""The rewriting of a model: for each node, ask the table, and do what it says.

1. Custom operators that a mapping names become GridSample or AffineGrid.
2. The opset is chosen: the one asked for; else that of the model, unless the target has kernels at another only.
3. The rest of the model follows to that opset.
4. Every AffineGrid and GridSample, in subgraphs and functions, too, is kept, spelled, guarded, expanded or folded.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx
import onnx_ir as ir

from lucid_onnx.files import ModelSource
from lucid_onnx.lowering.choose import choose_opset
from lucid_onnx.lowering.functions import specialize
from lucid_onnx.lowering.inference import infer, types_of_now
from lucid_onnx.lowering.mapping import lookalikes, replace_mapped
from lucid_onnx.lowering.nodes import is_sampling, read, scopes, walk
from lucid_onnx.lowering.opsets import convert_opset
from lucid_onnx.lowering.report import LoweringReport
from lucid_onnx.lowering.rewriter import Rewriter
from lucid_onnx.lowering.rows import Target
from lucid_onnx.lowering.tables import TargetSource, find_target
from lucid_onnx.model_files import read_model, to_proto
from lucid_onnx.operators.finishing import check_opset
from lucid_onnx.reference.schema import ArgumentError, as_flag


def lower(
    model: ModelSource,
    target: TargetSource = "onnxruntime-cpu",
    opset: int | None = None,
    assume_finite: bool = False,
    map: Mapping[str, str] | None = None,
) -> tuple[onnx.ModelProto, LoweringReport]:
    """Rewrite a model so that a runtime runs it, rightly and fast.

    Parameters
    ----------
    model : path, onnx.ModelProto or onnx_ir.Model
        Any ONNX model. What came is not changed.
    target : str, path or Target
        Name of a runtime, one of `TARGETS`; or a TOML table of one's own, which extends one.
    opset : int, optional
        Opset of the result, from 16 up; by default that of the model, unless the target needs another.
    assume_finite : bool
        Whether coordinates and pixels are known to be finite, and coordinates to be within some 1e4: guards
        against others are left out.
    map : mapping of str to str, optional
        Custom operators that stand for one of the two: ``{"GridSample3D": "GridSample"}``, with or without a
        domain (``"my.domain::GridSample3D"``). Their attributes may have PyTorch's integer codes.

    Returns
    -------
    model : onnx.ModelProto
        The rest of it is as it was: names, order, metadata, symbolic dimensions. External data is not read;
        the result refers to it.
    report : LoweringReport
        What was done with each node, and why.

    Raises
    ------
    ArgumentError
        No model, missing external data, an unknown target, a mapping that does not fit the model.
    UnsupportedError
        A node that cannot be lowered, or one that cannot follow to the opset.

    Examples
    --------
    >>> import onnx
    >>> model = onnx.parser.parse_model('''
    ...     <ir_version: 9, opset_import: ["" : 20]>
    ...     warp (float[N, 3, H, W] x, float[N, 8, 8, 2] grid) => (float[N, 3, 8, 8] y)
    ...     { [warp] y = GridSample <mode = "linear", padding_mode = "border"> (x, grid) }''')
    >>> lowered, report = lower(model, "tensorrt", assume_finite=True)
    >>> lowered.opset_import[0].version, lowered.graph.node[0].attribute[0].s
    (19, b'bilinear')
    >>> print(report)  # doctest: +ELLIPSIS
    tensorrt: 1 respelled (opset 20 to 19: the target has no kernel at opset 20)
      GridSample warp (4-D bilinear border align_corners=0 float32): respelled; a kernel that is right
      source: onnx-tensorrt docs/operators.md, onnxOpImporters.cpp; ...
      coordinates and pixels are assumed to be finite: no guards
    """
    rewritten = read_model(model, "lower")
    report = lower_ir(rewritten, target, opset, assume_finite, map)
    return to_proto(rewritten, "lower"), report


def lower_ir(
    model: ir.Model,
    target: TargetSource = "onnxruntime-cpu",
    opset: int | None = None,
    assume_finite: bool = False,
    map: Mapping[str, str] | None = None,
) -> LoweringReport:
    """`lower`, in place. After an error the model is in no order."""
    table = find_target(target)
    assume_finite = as_flag(assume_finite, "lower", "assume_finite")
    asked = None if opset is None else check_opset("lower", opset)
    versions = [scope.opset_imports[""] for scope in scopes(model) if "" in scope.opset_imports]
    if not versions:
        raise ArgumentError("lower: the model imports no version of ONNX's operators")
    before = model.graph.opset_imports.setdefault("", max(versions))
    report = LoweringReport(table.name, before, before, assume_finite)
    with types_of_now(model):
        report.mapped = replace_mapped(model, {} if map is None else map)
        report.unmapped = lookalikes(model)
        if any(is_sampling(node) for scope in scopes(model) for node in walk(scope)) or asked is not None:
            _rewrite(model, report, table, asked)
    return report


def _rewrite(model: ir.Model, report: LoweringReport, target: Target, asked: int | None) -> None:
    infer(model)
    report.dropped = specialize(model)
    nodes = [node for scope in scopes(model) for node in walk(scope) if is_sampling(node)]
    samplings = [read(node) for node in nodes]
    opset, report.opset_why = choose_opset(model, target, samplings, report.opset_before, asked)
    report.opset_after = opset
    if any(scope.opset_imports.get("", opset) != opset for scope in scopes(model)):
        report.converted = convert_opset(model, opset)
        infer(model)
    Rewriter(model, target, report).run()
