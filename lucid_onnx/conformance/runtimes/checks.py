"""What adapters check of a setting, and how they shorten what a runtime said."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lucid_onnx.conformance.runtimes.base import Refused, Setting
from lucid_onnx.reference.schema import UnsupportedError

MOST_WORDS = 300
"""Characters of a message that are kept."""


def import_package(name: str) -> Any:
    """A package, imported.

    Raises
    ------
    UnsupportedError
        It is not installed, or cannot be imported.

    Examples
    --------
    >>> import_package("no_such_package")
    Traceback (most recent call last):
    lucid_onnx.reference.schema.UnsupportedError: conformance: no_such_package is not installed; \
pip install no_such_package
    """
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == name
        why = f"is not installed; pip install {name}" if absent else f"cannot be imported: {first_line(error)}"
        raise UnsupportedError(f"conformance: {name} {why}") from error


def check_setting(
    runtime: str, setting: Setting, providers: float = 0, options: bool = False, command: bool = False
) -> None:
    """Raise if a setting asks for more than a runtime has.

    Parameters
    ----------
    runtime : str
        Its name.
    setting : Setting
        What is asked for.
    providers : float
        The most providers or devices that it takes.
    options, command : bool
        Whether it takes options, and whether it is a command.

    Raises
    ------
    UnsupportedError
        Names what the runtime does not take.

    Examples
    --------
    >>> check_setting("tract", Setting(providers=("GPU",)))
    Traceback (most recent call last):
    lucid_onnx.reference.schema.UnsupportedError: conformance: tract takes no provider; got 'GPU'
    """
    if len(setting.providers) > providers:
        takes = "no provider" if providers == 0 else "one device"
        raise UnsupportedError(f"conformance: {runtime} takes {takes}; got {_listed(setting.providers)}")
    if setting.options and not options:
        raise UnsupportedError(f"conformance: {runtime} takes no options; got {_listed(setting.options)}")
    if setting.command and not command:
        raise UnsupportedError(f"conformance: only the runtime 'command' is a command; got {setting.command!r}")


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))


@contextmanager
def refusing(words: Callable[[Exception], str]) -> Iterator[None]:
    """Whatever a runtime raises in the block is its refusal, in the words that `words` finds in it.

    Examples
    --------
    >>> with refusing(first_line):
    ...     raise ValueError("it is wrong")
    Traceback (most recent call last):
    lucid_onnx.conformance.runtimes.base.Refused: it is wrong
    """
    try:
        yield
    except Exception as error:  # runtimes' exceptions share no narrower base
        raise Refused(shortened(words(error))) from error


def first_line(error: object) -> str:
    r"""The first line of a message, or the type of an error that has none.

    Examples
    --------
    >>> first_line(ValueError("it is wrong\nbecause it is not right")), first_line(ValueError())
    ('it is wrong', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def shortened(words: str) -> str:
    r"""Words with single spaces between them, cut where they get too long.

    Examples
    --------
    >>> shortened("one\n  two"), len(shortened("long " * 1000))
    ('one two', 300)
    """
    words = " ".join(words.split())
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"


def killed_by(number: int) -> str:
    """That a process was killed by a signal, by its name if it has one.

    Examples
    --------
    >>> killed_by(11), killed_by(40)
    ('was killed by SIGSEGV', 'was killed by signal 40')
    """
    try:
        return f"was killed by {signal.Signals(number).name}"
    except ValueError:
        return f"was killed by signal {number}"
