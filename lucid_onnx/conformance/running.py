"""Running the suite on a runtime."""

from __future__ import annotations

import functools
import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.known import Divergence, Known, known_to, read_divergences
from lucid_onnx.conformance.outcome import Outcome
from lucid_onnx.conformance.pool import Pool
from lucid_onnx.conformance.report import Report
from lucid_onnx.conformance.runtimes import check_runtime
from lucid_onnx.conformance.runtimes.base import Setting
from lucid_onnx.conformance.suite import cases
from lucid_onnx.conformance.worker import Job, Transform
from lucid_onnx.reference.schema import ArgumentError, DtypeError

TIME_LIMIT = 60.0
"""Seconds that a case may take, unless another limit is asked for."""

Progress = Callable[[Iterable[Any]], Iterable[Any]]


def run(
    runtime: str = "onnxruntime",
    providers: Sequence[str] | None = None,
    select: str | None = None,
    *,
    options: Mapping[str, str] | None = None,
    command: str = "",
    max_examples: int | None = None,
    jobs: int | None = None,
    repeat: int = 1,
    time_limit: float = TIME_LIMIT,
    transform: Transform | None = None,
    known: str | os.PathLike[str] | None = None,
    progress: Progress = iter,
) -> Report:
    """Run the suite on a runtime.

    Parameters
    ----------
    runtime : str
        "onnxruntime", "onnx.reference", "openvino", "torch", "tract" or "command".
    providers : sequence of str, optional
        Execution providers of onnxruntime, the preferred one first, each with options if need be, as in
        "CUDAExecutionProvider,device_id=1"; the device of openvino or torch.
    select : str, optional
        Which cases, as an expression: ``mode == "nearest" and rank == 5``. See `lucid_onnx.conformance.select`.
    options : mapping of str to str, optional
        Of an onnxruntime session, or properties of an openvino model.
    command : str
        The command line of the runtime "command": ``./my-runtime {model} {inputs} {outputs}``.
    max_examples : int, optional
        The most cases to run.
    jobs : int, optional
        Child processes; by default one for each processor.
    repeat : int
        How often each case is run; all runs must give the same bytes.
    time_limit : float
        Seconds that a case may take.
    transform : callable, optional
        Rewrites each model before it is run, as ``functools.partial(lo.lower, target="tensorrt")`` does. Nothing is
        then known to diverge. It must be a function of a module.
    known : path, optional
        A file of known divergences, which come before those that lucid-onnx knows.
    progress : callable, optional
        Is given the outcomes as they come, and returns an iterable of them.

    Returns
    -------
    Report

    Raises
    ------
    ArgumentError
        A `ValueError`: an unknown runtime, an expression that is none, a number that is out of range.
    UnsupportedError
        A `NotImplementedError`: the runtime is not installed, or does not have a provider or an option.

    Examples
    --------
    >>> report = run(select='nearest and ties and opset == 16 and float32 and symbolic', jobs=1)
    >>> report.runtime, report.ok, report.counts["wrong value"]
    ('onnxruntime', True, 1)
    """
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"conformance: jobs must be 1 or more; got {jobs}")
    if not 0 < time_limit < threading.TIMEOUT_MAX:
        raise ArgumentError(f"conformance: time_limit must be a number of seconds above 0; got {time_limit}")
    job = job_for(runtime, providers, options=options, command=command, repeat=repeat, transform=transform)
    if known is not None:
        read_divergences(known)  # what is wrong with it is said at once
    chosen = cases(select, max_examples)
    started = time.perf_counter()
    pool = Pool(job, time_limit, min(jobs or os.cpu_count() or 1, len(chosen)))
    try:
        ran = pool.first.runtime, pool.first.version, pool.first.provider
        found = {outcome.id: outcome for outcome in progress(_Outcomes(pool.run(_tasks(chosen)), len(chosen)))}
    finally:
        pool.close()
    concerned = Known(()) if transform is not None else known_to(*ran, known)
    outcomes = tuple(_foreseen(found[case.id], concerned.find(case)) for case in chosen)
    return Report(*ran, name_of(transform), time.perf_counter() - started, outcomes)


def job_for(
    runtime: str,
    providers: Sequence[str] | None = None,
    *,
    options: Mapping[str, str] | None = None,
    command: str = "",
    repeat: int = 1,
    transform: Transform | None = None,
) -> Job:
    """What a child process is to do. Parameters and errors are those of `run`."""
    check_runtime(runtime)
    if repeat < 1:
        raise ArgumentError(f"conformance: repeat must be 1 or more; got {repeat}")
    setting = Setting(tuple(providers or ()), dict(options or {}), command, repeat > 1)
    return Job(runtime, setting, _checked(transform), repeat)


def options_of(texts: Sequence[str]) -> dict[str, str]:
    """Options of a session that are written NAME=VALUE.

    Examples
    --------
    >>> options_of(["intra_op_num_threads=4"])
    {'intra_op_num_threads': '4'}
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ArgumentError(f"an option is written NAME=VALUE, as in intra_op_num_threads=4; got {text!r}")
        options[name] = value
    return options


def _tasks(chosen: Sequence[Case]) -> list[list[Case]]:
    """Cases that share models or what is expected, together; in each, those of one model one after the other."""
    return [list(group) for _, group in itertools.groupby(chosen, key=lambda case: case.task_key)]


def _foreseen(outcome: Outcome, divergence: Divergence | None) -> Outcome:
    """An outcome with what was to be expected."""
    if divergence is None or (divergence.partly and outcome.passed):
        return outcome
    return replace(outcome, expected=divergence.verdict, reason=divergence.reason)


class _Outcomes:
    """Outcomes as they come, whose number is known."""

    def __init__(self, outcomes: Iterator[Outcome], count: int) -> None:
        self._outcomes, self._count = outcomes, count

    def __iter__(self) -> Iterator[Outcome]:
        return self._outcomes

    def __len__(self) -> int:
        return self._count


def _checked(transform: Transform | None) -> Transform | None:
    """`transform`, if another process can import it."""
    function = transform
    while isinstance(function, functools.partial):
        function = function.func
    try:
        pickle.dumps(transform)
        importable = getattr(function, "__module__", None) != "__main__"
    except (pickle.PicklingError, AttributeError, TypeError):
        importable = False
    if transform is not None and not importable:
        raise DtypeError(
            "conformance: transform runs in another process; it must be a function of a module, not of a script"
        )
    return transform


def name_of(transform: Transform | None) -> str:
    """What a report calls a transform.

    Examples
    --------
    >>> name_of(functools.partial(len, target="portable"))
    "len(target='portable')"
    """
    if transform is None:
        return ""
    if isinstance(transform, functools.partial):
        given = [*map(repr, transform.args), *(f"{name}={value!r}" for name, value in transform.keywords.items())]
        return f"{name_of(transform.func)}({', '.join(given)})"
    return getattr(transform, "__name__", type(transform).__name__)
