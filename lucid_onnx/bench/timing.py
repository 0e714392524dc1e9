"""The measuring: every peer in one process, in turns.

onnxruntime's and PyTorch's threads go on spinning for a while after a call and disturb whatever is timed next.
So onnxruntime is told not to, every call is made after a pause in which the threads of the one before fall
asleep, and the order is drawn anew each round, so that no peer always follows the same other one.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from operator import index

import onnx
import onnxruntime as ort

from lucid_onnx.reference.schema import ArgumentError, DtypeError
from lucid_onnx.runtime import Session

THREADS = 2
"""Threads of every peer."""

REPEATS = 7
"""Rounds of each cell, by default and at the least."""

BUDGET = 0.6
"""Seconds in which a cell is measured for up to `MOST_REPEATS` times the rounds it must have."""

MOST_REPEATS = 4

PAUSE = 0.004
"""Seconds after which the threads of the call before sleep."""


def medians(calls: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median time of each call in milliseconds, the calls made in turns, in an order drawn anew each round.

    Examples
    --------
    >>> sorted(medians({"a": list, "b": dict}, 2))
    ['a', 'b']
    """
    order = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in calls}
    started = time.perf_counter()
    for done in range(MOST_REPEATS * repeats):
        if done >= repeats and time.perf_counter() - started > BUDGET:
            break
        for name in order.sample(list(calls), len(calls)):
            time.sleep(PAUSE)
            before = time.perf_counter()
            calls[name]()
            times[name].append(time.perf_counter() - before)
    return {name: 1e3 * statistics.median(each) for name, each in times.items()}


def as_repeats(repeats: int) -> int:
    """A number of rounds, checked.

    Raises
    ------
    ArgumentError, DtypeError
        It is below 1, or no integer.
    """
    try:
        rounds = index(repeats)
    except TypeError:
        raise DtypeError(f"bench: repeats must be an integer; got {repeats!r}") from None
    if rounds < 1:
        raise ArgumentError(f"bench: repeats must be at least 1; got {rounds}")
    return rounds


def open_session(model: onnx.ModelProto) -> Session:
    """A session on `THREADS` threads, which do not spin."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = THREADS
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return Session(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
