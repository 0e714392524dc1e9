"""What an adapter is: a runtime that loads a model and runs it on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.reference.schema import Array

Run: TypeAlias = Callable[[Mapping[str, Array]], Sequence[Array]]
"""Takes the inputs of a model by name and returns its outputs in order, as arrays of their own memory."""


class Refused(Exception):  # noqa: N818 - a verdict, not an error of ours
    """The runtime will not load a model, or not run it; the message is what it said."""


class Crashed(Exception):  # noqa: N818 - a verdict, not an error of ours
    """A runtime that is a program of its own was killed; the message says by what."""


class Misplaced(Exception):  # noqa: N818 - a verdict, not an error of ours
    """A node ran elsewhere than asked for; the message names it."""


@dataclass(frozen=True)
class Setting:
    """What a user asks of a runtime.

    Parameters
    ----------
    providers : tuple of str
        Execution providers or devices, the preferred one first; none for the runtime's own choice.
    options : mapping of str to str
        Of the session.
    command : str
        The command line of a runtime that is a program.
    repeated : bool
        Whether results are run more than once to be compared: then threads are left as the runtime has them.
    """

    providers: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    repeated: bool = False


class Runtime(Protocol):
    """A runtime, as the suite sees it. An adapter's constructor takes a `Setting`.

    Attributes
    ----------
    name, version : str
        As a report has them.
    provider : str
        The execution provider or device that runs the nodes.
    runs_models : bool
        False for one that has the operators themselves, so that there is no model to rewrite.
    """

    name: str
    version: str
    provider: str
    runs_models: bool

    def load(self, model: onnx.ModelProto, case: Case) -> Run:
        """A model, ready to run.

        Parameters
        ----------
        model : onnx.ModelProto
            The model.
        case : Case
            The first of the cases that are run with it. Only an adapter that has operators, and no models, looks at it.

        Raises
        ------
        Refused
            The runtime does not take the model. The `Run` raises it, too, where the runtime fails on its inputs.
        Misplaced
            From the `Run`: a node ran elsewhere than asked for.
        Crashed
            From the `Run`: a runtime that is a program of its own was killed.
        """
