"""The ONNX project's own backend cases of GridSample and AffineGrid, as cases of the suite.

They are a cross-check: a case is judged by the reference, as every other is, and beside that `differences` compares
the outputs that ONNX states with the reference's.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from lucid_onnx.conformance.case import WrittenCase
from lucid_onnx.conformance.judging import decide, expect
from lucid_onnx.conformance.outcome import PASS
from lucid_onnx.reference.schema import ONNX_MODES, Array

INPUTS = {"GridSample": ("X", "grid"), "AffineGrid": ("theta", "size")}
"""Names that a `Case` has for the inputs of an operator, in their order."""

MODULES = {"gridsample": "test_gridsample", "affinegrid": "test_affine_grid"}
"""Modules of `onnx.backend.test.case.node` that hold the cases, and how the names of these begin."""

ONNX_CASES = "onnx-"
"""How the ids of the cases begin."""

EXPANDED = "_expanded"
"""What follows the name of a case whose model is the operator's function body instead of the operator."""

REASONS = {
    "test_gridsample_bicubic": "its outputs are rounded to four decimals, and so rounded the reference's are the same"
}
"""Why a case states other outputs than the reference's."""


@dataclass(frozen=True)
class OnnxCase(WrittenCase):
    """A backend case of the ONNX project, with inputs and outputs that are written down there.

    Parameters
    ----------
    op, rank, mode, padding_mode, align_corners, dtype, opset, shapes, family
        As in `Case`; `shapes` is "static" and `family` "onnx". The size of an AffineGrid is an input here.
    name : str
        As ONNX has it.

    Examples
    --------
    >>> case = onnx_cases()[0]
    >>> case.id
    'onnx-test_gridsample'
    >>> {name: array.shape for name, array in case.inputs().items()}
    {'X': (1, 1, 4, 4), 'grid': (1, 6, 6, 2)}
    """

    name: str

    @property
    def id(self) -> str:
        """The name of the case, which never changes."""
        return f"{ONNX_CASES}{self.name}"

    @property
    def probes(self) -> str:
        """What the case probes, in words."""
        return f"ONNX's own backend case {self.name}"

    @property
    def ordinary(self) -> bool:
        """True: ONNX has no case with coordinates that are not finite, or far."""
        return True

    def inputs(self) -> dict[str, Array]:
        """Every input of the operator by name."""
        arrays, _ = _collected()[self.name].data_sets[0]
        return {name: np.array(array) for name, array in zip(INPUTS[self.op], arrays, strict=True)}

    def stated(self) -> list[Array]:
        """The outputs that ONNX states."""
        _, arrays = _collected()[self.name].data_sets[0]
        return [np.array(array) for array in arrays]

    def model(self) -> onnx.ModelProto:
        """ONNX's model, with inputs named as those of the operator are."""
        model = onnx.ModelProto()
        model.CopyFrom(_collected()[self.name].model)
        names = {value.name: name for value, name in zip(model.graph.input, INPUTS[self.op], strict=True)}
        for value in model.graph.input:
            value.name = names[value.name]
        # Only models of one node differ in names, so there are no subgraphs to look into.
        for node in model.graph.node:
            node.input[:] = [names.get(name, name) for name in node.input]
        return model


def onnx_cases() -> list[OnnxCase]:
    """Every backend case that the installed onnx has of GridSample and AffineGrid."""
    return list(map(_case, _collected()))


def differences() -> dict[str, str]:
    """Cases whose stated outputs are not the reference's to within the tolerance of their dtype, and why.

    Returns
    -------
    dict of str to str
        By ONNX's name of the case. A case that `REASONS` does not know has the worst value for a reason.

    Examples
    --------
    >>> for name, reason in differences().items():
    ...     print(f"{name}: {reason}")
    test_gridsample_bicubic: its outputs are rounded to four decimals, and so rounded the reference's are the same
    """
    found = {}
    for case in onnx_cases():
        verdict, words, worst = decide(expect(case, case.inputs()), case.stated())
        if verdict != PASS:
            found[case.name] = REASONS.get(case.name, f"not explained: {words or worst}")
    return found


def agreement() -> str:
    """How the reference and ONNX's own cases agree, in a sentence.

    Examples
    --------
    >>> agreement().partition(":")[0]
    "ONNX's own 26 cases"
    """
    found = [f"{name} ({reason})" for name, reason in differences().items()]
    but = f" but {', '.join(found)}" if found else ""
    return f"ONNX's own {len(_collected())} cases: the reference agrees with all{but}"


def _case(name: str) -> OnnxCase:
    test, plain = _collected()[name], _collected()[name.partition(EXPANDED)[0]]
    (node,) = plain.model.graph.node
    (output,) = test.data_sets[0][1]
    opset = next(entry.version for entry in test.model.opset_import if entry.domain == "")
    defaults = onnx.defs.get_schema(node.op_type, opset).attributes.values()
    attributes = [*(attribute.default_value for attribute in defaults), *node.attribute]
    how = {attribute.name: helper.get_attribute_value(attribute) for attribute in attributes}
    mode = how.get("mode", b"").decode()
    return OnnxCase(
        op=node.op_type,
        rank=output.ndim,
        mode=ONNX_MODES.get(mode, mode),
        padding_mode=how.get("padding_mode", b"").decode(),
        align_corners=bool(how["align_corners"]),
        dtype=output.dtype.name,
        opset=opset,
        shapes="static",
        family="onnx",
        name=name,
    )


@functools.cache
def _collected() -> dict[str, Any]:
    """ONNX's test cases by name, each an ``onnx.backend.test.case.test_case.TestCase``.

    To import a module of cases is to collect them. `collect_testcases` imports those of every operator, and is slow.
    """
    from onnx.backend.test.case import node

    # The import seeds NumPy's own generator, which is the caller's.
    state = np.random.get_state()  # noqa: NPY002
    for module in MODULES:
        importlib.import_module(f"{node.__name__}.{module}")
    np.random.set_state(state)  # noqa: NPY002
    return {test.name: test for test in node._NodeTestCases if test.name.startswith(tuple(MODULES.values()))}
