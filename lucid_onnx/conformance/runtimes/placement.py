"""Where the nodes of an onnxruntime session really ran, as its profile says."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from lucid_onnx.conformance.runtimes.base import Misplaced

FLOATS = ("float", "double", "float16", "bfloat16")
"""Names that a profile has for floating-point types."""

OPERATORS = ("GridSample", "AffineGrid")
"""Nodes that are never mere arithmetic on shapes."""

SMALL = 16
"""The most values of an integer tensor that may pass for a shape: onnxruntime itself leaves those to the CPU."""

SHOWN = 3
"""Nodes that a message names."""

_TIMED = "_kernel_time"


class Placement:
    """Where the nodes of one session ran.

    Parameters
    ----------
    provider : str
        The execution provider that they are to run on.

    Notes
    -----
    The profile is written to a temporary folder, which is removed when the profile has been read, and at the latest
    when nobody refers to the `Placement` any more.
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._folder = tempfile.mkdtemp(prefix="lucid-onnx-")
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._words: str | None = None

    def watch(self, options: ort.SessionOptions) -> None:
        """Have a session of these options write a profile."""
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(self._folder, "profile"))

    def check(self, session: ort.InferenceSession) -> None:
        """Raise unless the nodes of a session, which has run, were in the right place.

        Raises
        ------
        Misplaced
            Names the nodes and where they ran.
        """
        # Nodes are placed when a session is made, so its first run tells of all.
        if self._words is None:
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
            self._remove()
            self._words = misplaced(events, self._provider)
        if self._words:
            raise Misplaced(self._words)


def misplaced(events: Iterable[Mapping[str, Any]], provider: str) -> str:
    """What ran elsewhere, in words; empty if nothing did.

    Parameters
    ----------
    events : iterable of dict
        A profile that onnxruntime wrote.
    provider : str
        The execution provider that the nodes are to run on.

    Examples
    --------
    >>> about = {"provider": "CPUExecutionProvider", "op_name": "Add"}
    >>> shape = {"cat": "Node", "name": "sizes_kernel_time", "args": {**about, "output_type_shape": [{"int64": [4]}]}}
    >>> grid = {"cat": "Node", "name": "shift_kernel_time", "args": {**about, "output_type_shape": [{"float": [2, 3]}]}}
    >>> misplaced([shape, grid], "CUDAExecutionProvider")
    'Add shift ran on CPUExecutionProvider'
    """
    nodes = [
        f"{event['args']['op_name']} {event['name'].removesuffix(_TIMED)} ran on {event['args']['provider']}"
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith(_TIMED) and _strayed(event["args"], provider)
    ]
    more = [f"and {len(nodes) - SHOWN} more nodes"] if len(nodes) > SHOWN else []
    return ", ".join([*nodes[:SHOWN], *more])


def _strayed(about: Mapping[str, Any], provider: str) -> bool:
    """Whether a node ran elsewhere and does more than arithmetic on shapes."""
    if about["provider"] == provider:
        return False
    return about["op_name"] in OPERATORS or any(
        math.prod(shape) > (1 if element in FLOATS else SMALL)
        for tensor in about.get("output_type_shape", [])
        for element, shape in tensor.items()
    )
