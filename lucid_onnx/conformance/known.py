"""Known divergences: cases that a runtime is known to fail, with the reason and the versions."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.outcome import PASS, VERDICTS
from lucid_onnx.conformance.select import selector
from lucid_onnx.conformance.suite import cases
from lucid_onnx.files import check_readable
from lucid_onnx.reference.schema import ArgumentError

SHIPPED = files("lucid_onnx.conformance") / "known_divergences.toml"
"""The divergences that were measured."""


@dataclass(frozen=True)
class Divergence:
    """Cases that a runtime is known to fail.

    Parameters
    ----------
    runtime : str
        Name of the runtime.
    versions : str
        The versions, as pip has them: ">=1.24,<2".
    select : str
        The cases, as an expression.
    verdict : str
        What comes of them.
    reason : str
        Why, in a sentence.
    provider : str
        The execution provider, if others do not share it.
    partly : bool
        Whether some of the cases may pass, by chance: where it is a matter of rounding, say.
    """

    runtime: str
    versions: str
    select: str
    verdict: str
    reason: str
    provider: str = ""
    partly: bool = False

    def concerns(self, runtime: str, version: str, provider: str) -> bool:
        """Whether it is one of this runtime, in this version."""
        if runtime != self.runtime or self.provider not in ("", provider):
            return False
        try:
            return Version(version) in SpecifierSet(self.versions, prereleases=True)
        except InvalidVersion:  # a version that is no number is that of a build of one's own
            return False


class Known:
    """The divergences of one runtime in one version.

    Parameters
    ----------
    divergences : iterable of Divergence
        In the order in which they are asked.
    """

    def __init__(self, divergences: Iterable[Divergence]) -> None:
        self._entries = [(selector(entry.select), entry) for entry in divergences]

    def find(self, case: Case) -> Divergence | None:
        """The first divergence that covers a case."""
        return next((entry for covers, entry in self._entries if covers(case)), None)


def known_to(runtime: str, version: str, provider: str, path: str | os.PathLike[str] | None = None) -> Known:
    """What is known of a runtime, from a file of one's own first."""
    entries = ([] if path is None else read_divergences(path)) + read_divergences()
    return Known(entry for entry in entries if entry.concerns(runtime, version, provider))


def read_divergences(path: str | os.PathLike[str] | None = None) -> list[Divergence]:
    """The divergences that a TOML file lists, by default those that were measured.

    Raises
    ------
    ArgumentError
        No such file, or an entry that does not fit; it says which one.
    """
    if path is None:
        text, name = SHIPPED.read_text(encoding="utf-8"), SHIPPED.name
    else:
        check_readable(path)
        text, name = Path(path).read_text(encoding="utf-8", errors="replace"), os.fspath(path)
    try:
        entries = tomllib.loads(text).get("divergence", [])
    except tomllib.TOMLDecodeError as error:
        raise ArgumentError(f"{name}: {error}") from None
    if not isinstance(entries, list):
        raise ArgumentError(f"{name}: divergences are tables, each under [[divergence]]")
    found = [_checked(entry, f"{name}, divergence {number}") for number, entry in enumerate(entries, start=1)]
    if path is not None:
        # What cannot be compared shows when it is, so it is tried before hours of running rather than after.
        for entry in found:
            any(map(selector(entry.select), cases()))
    return found


def _checked(entry: Any, where: str) -> Divergence:
    names = {field.name for field in fields(Divergence)}
    required = names - {"provider", "partly"}
    if not isinstance(entry, dict) or not required <= set(entry) <= names:
        raise ArgumentError(f"{where}: it must have {', '.join(sorted(required))}; it may have provider, partly")
    if not all(isinstance(value, bool if name == "partly" else str) for name, value in entry.items()):
        raise ArgumentError(f"{where}: every value is a text, but for partly, which is true or false")
    divergence = Divergence(**entry)
    if divergence.verdict not in VERDICTS or divergence.verdict == PASS:
        raise ArgumentError(f"{where}: verdict is one of {', '.join(VERDICTS[1:])}; got {divergence.verdict!r}")
    try:
        SpecifierSet(divergence.versions)
    except InvalidSpecifier:
        raise ArgumentError(
            f"{where}: versions are written as pip has them, >=1.24,<2; got {divergence.versions!r}"
        ) from None
    try:
        selector(divergence.select)
    except ArgumentError as error:
        raise ArgumentError(f"{where}: {error}") from None
    return divergence
