"""The cases of the suite: the product of operators, settings and families, and what public reports say.

A setting is a dtype, an opset and a kind of shapes. GridSample meets every family in each dtype, each opset and both
kinds of shapes, and telling families in all other settings; AffineGrid meets all in all. Their gradients are graphs of
standard operators: they meet every family in one setting, and each other setting once with every mode and padding.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.draws import seed_of
from lucid_onnx.conformance.families import FAMILIES
from lucid_onnx.conformance.onnx_cases import onnx_cases
from lucid_onnx.conformance.pinned import pinned_cases
from lucid_onnx.conformance.select import selector
from lucid_onnx.reference.schema import MODES, PADDING_MODES, ArgumentError

DTYPES = ("float32", "float64", "float16", "bfloat16")
OPSETS = (16, 20, 22)
SHAPES = ("symbolic", "static")

WHOLE = (
    *(("float32", opset, "symbolic") for opset in OPSETS),
    ("float32", 20, "static"),
    ("float64", 20, "symbolic"),
    ("float16", 20, "symbolic"),
    ("bfloat16", 22, "symbolic"),
)
"""Settings in which GridSample meets every family: every dtype, every opset and both kinds of shapes do."""

ALONE = ("nan", "plus-infinity", "minus-infinity", "overflow")
"""Families that tell apart what "non-finite" mixes; in one setting."""

PLAIN = ("float32", 20, "symbolic")
"""The setting that meets every family."""

TELLING = ("outside", "ties", "non-finite")
"""Families of the other settings."""


def cases(select: str | None = None, max_examples: int | None = None) -> list[Case]:
    """The cases of the suite, always in the same order.

    Parameters
    ----------
    select : str, optional
        An expression, as in `lucid_onnx.conformance.select`.
    max_examples : int, optional
        The most cases to return: some of every kind, the same ones each time.

    Raises
    ------
    ArgumentError
        An expression that is none, or that no case satisfies, or a number below 1.

    Examples
    --------
    >>> len(cases('op == "GridSample" and mode == "nearest" and dtype == "float32" and opset == 16'))
    114
    """
    chosen = list(_all())
    if select is not None:
        chosen = list(filter(selector(select), chosen))
        if not chosen:
            raise ArgumentError(f"no case satisfies {select!r}; `lucid-onnx conformance --list` shows all of them")
    if max_examples is None:
        return chosen
    if max_examples < 1:
        raise ArgumentError(f"max_examples must be 1 or more; got {max_examples}")
    kept = set(sorted(chosen, key=lambda case: seed_of(case.id))[:max_examples])
    return [case for case in chosen if case in kept]


@functools.cache
def by_id() -> Mapping[str, Case]:
    """Every case by its id."""
    return MappingProxyType({case.id: case for case in _all()})


@functools.cache
def _all() -> tuple[Case, ...]:
    return tuple(_product())


def _product() -> Iterator[Case]:
    settings = [*itertools.product(DTYPES, OPSETS, SHAPES)]
    sampled = [*itertools.product((4, 5), MODES, PADDING_MODES, (False, True))]
    mapped = [(rank, "", "", corners) for rank, corners in itertools.product((4, 5), (False, True))]
    for op, variants in (("GridSample", sampled), ("AffineGrid", mapped)):
        for variant, setting in itertools.product(variants, settings):
            if _exists(op, variant[0], setting):
                whole = setting in WHOLE or op == "AffineGrid"
                yield from _of(op, variant, setting, tuple(FAMILIES) if whole else TELLING)
    for op, variants in (("GridSampleGrad", sampled), ("AffineGridGrad", mapped)):
        for place, variant in enumerate(variants):
            for number, setting in enumerate(settings):
                if setting == PLAIN:
                    yield from _of(op, variant, setting, tuple(FAMILIES))
                elif place % 4 == number % 4:
                    # Over all modes and paddings, every rank and align_corners has its turn.
                    yield from _of(op, variant, setting, ("outside", "non-finite"))
    yield from pinned_cases()
    yield from onnx_cases()


def _of(
    op: str, variant: tuple[int, str, str, bool], setting: tuple[str, int, str], families: Sequence[str]
) -> Iterator[Case]:
    for family in families:
        if _applies(op, family) and (setting == PLAIN or family not in ALONE):
            yield Case(op, *variant, *setting, family)


def _exists(op: str, rank: int, setting: tuple[str, int, str]) -> bool:
    """Whether ONNX has the operator for that rank in that setting."""
    dtype, opset, _ = setting
    if op == "AffineGrid":
        return opset >= 20
    return (rank == 4 or opset >= 20) and (dtype != "bfloat16" or opset >= 22)


def _applies(op: str, family: str) -> bool:
    """Whether a family says something of an operator."""
    about = FAMILIES[family]
    if op == "AffineGridGrad":  # a sum over the lattice, whose order decides where it overflows
        return about.affine and about.ordinary and about.points == "spread"
    return about.affine or op != "AffineGrid"
