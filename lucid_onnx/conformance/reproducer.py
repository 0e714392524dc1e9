"""Reproducers: short programs that show what a runtime gives for a case beside what is right."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import onnx

from lucid_onnx.conformance.calling import call
from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.nodes import node_model
from lucid_onnx.conformance.outcome import (
    NONDETERMINISTIC,
    REFUSED,
    WRONG_FORM,
    WRONG_PLACEMENT,
    WRONG_VALUE,
    Outcome,
    Worst,
)
from lucid_onnx.conformance.report import Report
from lucid_onnx.conformance.snippets import assignment, between_casts, model_expression
from lucid_onnx.operators.model import OPERATORS
from lucid_onnx.reference.schema import Array

RUNS = 20
"""How often a program runs what gave different results."""

NEAR = 100
"""onnx.reference, for one, refuses coordinates that it cannot make whole numbers of."""


def reproducer(case: Case, outcome: Outcome, report: Report) -> str:
    r"""A program that shows an outcome, and needs only onnx, NumPy and the runtime.

    Parameters
    ----------
    case : Case
        The case.
    outcome : Outcome
        What came of it, which is no pass.
    report : Report
        The report that it is of, which says what ran the case.

    Returns
    -------
    str
        A wrong value of GridSample is reduced to one channel of one image, and one point.

    Examples
    --------
    >>> case = Case("GridSample", 4, "nearest", "reflection", False, "float32", 20, "symbolic", "ties")
    >>> worst = Worst("Y", (0, 0, 0, 0), (0.0, 0.0), 0.5, 0.25, 0.0)
    >>> report = Report("onnxruntime", "1.32.0", "CPUExecutionProvider", "", 0.0, ())
    >>> print(*reproducer(case, Outcome(case.id, "wrong value", worst=worst), report).splitlines()[-3:], sep="\n")
    got = session.run(None, feed)
    print(f"got  {float(got[0][0, 0, 0, 0]):.9g}")
    print("want 0.25")
    """
    inputs, worst = _reduced(case, outcome)
    how = call(case, report, outcome.verdict)
    lines: list[str] = []
    if how.module == "np":
        # NumPy has no bfloat16, and most runtimes no way to take and return one; what is refused is to stay as it is.
        widen = case.dtype == "bfloat16" and outcome.verdict in (WRONG_VALUE, NONDETERMINISTIC)
        expression, names = _model(case, inputs, widen)
        inputs = {name: _widened(inputs[name]) if widen else inputs[name] for name in names}
        lines = [f"model = {expression}", *_transformed(report.transform)]
    lines += [assignment(name, array, how.module) for name, array in inputs.items()]
    if how.module == "np":
        lines.append(f"feed = {{{', '.join(f'{name!r}: {name}' for name in inputs)}}}")
    lines += [how.prepare] if how.prepare else []
    lines += _shown(case, replace(outcome, worst=worst), how.run)
    program = "\n".join(lines)
    return "\n".join([f"# {case.id}: {outcome.verdict}", *_imports(program, how.imports), "", program])


def fits(case: Case, outcome: Outcome) -> bool:
    """Whether an outcome may be of a case as it is, and not as another version of the suite has it.

    Examples
    --------
    >>> case = Case("GridSample", 4, "nearest", "zeros", False, "float32", 20, "symbolic", "inside")
    >>> worst = Worst("Y", (0, 0, 0, 99), (0.5, 0.5), 1.0, 2.0, 0.0)
    >>> fits(case, Outcome(case.id, "wrong value", worst=worst))
    False
    """
    worst = outcome.worst
    if worst is None or worst.coordinate is None or case.op != "GridSample":
        return True
    x, grid = case.inputs()["X"], case.inputs()["grid"]
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if len(worst.index) != len(shape) or any(k >= size for k, size in zip(worst.index, shape, strict=True)):
        return False
    n, _, *point = worst.index
    return np.array_equal(grid[(n, *point)].astype(np.float64), worst.coordinate, equal_nan=True)


def _reduced(case: Case, outcome: Outcome) -> tuple[Mapping[str, Array], Worst | None]:
    """Inputs that are enough for an outcome, and the worst value of what comes of them."""
    inputs, worst = case.inputs(), outcome.worst
    if outcome.verdict in (REFUSED, WRONG_FORM) and all(map(_near, inputs.values())):
        return {name: _filled(name, array) for name, array in inputs.items()}, None
    # One map is no smaller case than several: onnxruntime has a fault of its own for AffineGrid with a batch of one.
    if worst is None or case.family == "onnx" or case.op != "GridSample":
        return inputs, worst
    n, c, *point = worst.index
    x = inputs["X"][n : n + 1, c : c + 1]
    grid = inputs["grid"][(n, *point)].reshape(1, *(1 for _ in point), -1)
    return {"X": x, "grid": grid}, replace(worst, index=(0,) * len(worst.index))


def _near(array: Array) -> bool:
    """Whether values are small, so that no runtime refuses them for what they are."""
    return bool((np.abs(array.astype(np.float64)) <= NEAR).all())


def _filled(name: str, array: Array) -> Array:
    """Zeros for coordinates, and ones for all else but sizes, which stay."""
    if array.dtype.kind in "iu":
        return array
    return np.full_like(array, 0 if name in ("grid", "theta") else 1)


def _model(case: Case, inputs: Mapping[str, Array], widen: bool) -> tuple[str, tuple[str, ...]]:
    """An expression for the model of a case, for inputs that may be smaller than its own, and the inputs it takes."""
    if case.shapes == "symbolic" or all(array.shape == inputs[name].shape for name, array in case.inputs().items()):
        return _own_model(case, widen)
    how = (case.rank, case.mode, case.padding_mode, case.align_corners, case.dtype, case.opset)
    return _written(node_model(case.op, *how, inputs), widen)


@functools.lru_cache(maxsize=256)
def _own_model(case: Case, widen: bool) -> tuple[str, tuple[str, ...]]:
    """The same for its own inputs. Reports side by side ask for it again, and building a gradient takes a while."""
    return _written(case.model(), widen)


def _written(model: onnx.ModelProto, widen: bool) -> tuple[str, tuple[str, ...]]:
    return model_expression(between_casts(model) if widen else model), tuple(value.name for value in model.graph.input)


def _widened(array: Array) -> Array:
    return array if array.dtype.kind in "iu" else array.astype(np.float32)


def _transformed(transform: str) -> list[str]:
    """Lines that rewrite the model as the suite did, if it did and they are ours."""
    if not transform:
        return []
    ours = re.fullmatch(r"lower\((.*)\)", transform)
    if ours is None:
        return [f"# Here the suite rewrote the model with {transform}."]
    return ["from lucid_onnx import lower", f"model, _ = lower(model, {ours[1]})"]


def _shown(case: Case, outcome: Outcome, run: str) -> Iterator[str]:
    """Lines that run the model, and print what comes beside what is right."""
    worst, digits = outcome.worst, 17 if case.dtype == "float64" else 9
    if outcome.verdict == NONDETERMINISTIC:
        yield f"runs = {{repr([output.tolist() for output in {run}]) for _ in range({RUNS})}}"
        yield f'print("got ", len(runs), "different results in {RUNS} runs")'
        yield 'print("want 1")'
        return
    yield f"got = {run}"
    if worst is not None:
        _, outputs, _ = OPERATORS[case.op]
        value = f"got[{outputs.index(worst.output)}][{', '.join(map(str, worst.index))}]"
        within = f" within {worst.bound:.2g}" if worst.bound else ""
        yield f'print(f"got  {{float({value}):.{digits}g}}")'
        yield f'print("want {worst.want:.{digits}g}{within}")'
    elif outcome.verdict == WRONG_PLACEMENT:
        yield "print(*got, sep='\\n')"
    else:
        yield 'print("got ", [(str(output.dtype), tuple(output.shape)) for output in got])'
        if outcome.verdict == WRONG_FORM:
            yield f"print({'want ' + outcome.words.partition('want ')[2]!r})"


def _imports(program: str, of_the_runtime: str) -> Iterator[str]:
    """Lines that import what a program uses."""
    numbers = [name for name in ("inf", "nan") if re.search(rf"[\[ -]{name}[,\]]", program)]
    if numbers:
        yield f"from math import {', '.join(numbers)}"
    yield from (f"import {name}" for name in ("base64", "lzma", "ml_dtypes") if f"{name}." in program)
    yield from (line for name, line in (("np", "import numpy as np"), ("onnx", "import onnx")) if f"{name}." in program)
    yield of_the_runtime
