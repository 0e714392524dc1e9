"""The child process: it runs cases on a runtime and may crash or hang without harm.

It reads pickled messages from its standard input and answers on its standard output. What the runtime prints goes to
standard error, which the parent keeps for a crash's last words.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import onnx

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.judging import Expected, decide, expect
from lucid_onnx.conformance.outcome import CRASHED, NONDETERMINISTIC, REFUSED, WRONG_PLACEMENT, Outcome
from lucid_onnx.conformance.runtimes import open_runtime
from lucid_onnx.conformance.runtimes.base import Crashed, Misplaced, Refused, Run, Runtime, Setting
from lucid_onnx.reference.schema import Array, LucidError, UnsupportedError

Transform = Callable[[onnx.ModelProto], Any]
"""Takes a model and returns another, alone or first in a tuple."""


@dataclass(frozen=True)
class Job:
    """What a worker is for: a runtime, and how cases are run on it."""

    runtime: str
    setting: Setting
    transform: Transform | None
    repeat: int


def main() -> None:
    """Serve the parent until it closes its end."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    job: Job = pickle.load(questions)
    try:
        runtime = open_runtime(job.runtime, job.setting)
        if job.transform is not None and not runtime.runs_models:
            raise UnsupportedError(
                f"conformance: {runtime.name} has the operators and runs no model that could be rewritten"
            )
    except Exception as error:
        _send(answers, error if isinstance(error, LucidError) else RuntimeError(f"{type(error).__name__}: {error}"))
        return
    _send(answers, (runtime.name, runtime.version, runtime.provider))
    judge = _Judge(runtime, job)
    while True:
        try:
            cases: Sequence[Case] = pickle.load(questions)
        except EOFError:
            return
        for case in cases:
            for message in judge.run(case):
                _send(answers, message)


def _send(stream: BinaryIO, message: object) -> None:
    pickle.dump(message, stream)
    stream.flush()


class _Judge:
    """Runs cases one after the other, and keeps what the next ones may share."""

    def __init__(self, runtime: Runtime, job: Job) -> None:
        self._model = _Model(runtime, job)
        self._repeat = job.repeat
        self._task: Any = None
        self._expected: dict[Any, list[Expected]] = {}

    def run(self, case: Case) -> Iterator[Outcome | None]:
        """The outcome of a case; before it a None, the sign that it is the runtime's turn now."""
        inputs = case.inputs()
        if case.task_key != self._task:
            self._task, self._expected = case.task_key, {}
        if case.data_key not in self._expected:
            self._expected[case.data_key] = expect(case, inputs)
        words = self._model.prepare(case)
        yield None
        if words:
            yield Outcome(case.id, REFUSED, words=words)
        else:
            yield _outcome(case, self._model, inputs, self._expected[case.data_key], self._repeat)


class _Model:
    """The model of the case at hand, which other cases may share, built and loaded once."""

    def __init__(self, runtime: Runtime, job: Job) -> None:
        self._runtime, self._transform = runtime, job.transform
        self._key: Any = None
        self._words = ""
        self._proto = onnx.ModelProto()
        self._run: Run | None = None
        self._refused: Exception | None = None

    def prepare(self, case: Case) -> str:
        """Build the model of a case, and return what the transform said if it refused."""
        if case.model_key != self._key:
            self._key, self._words, self._run, self._refused = case.model_key, "", None, None
            self._proto = case.model()
            if self._transform is not None:
                try:
                    made = self._transform(self._proto)
                    self._proto = made[0] if isinstance(made, tuple) else made
                except Exception as error:  # of whatever the user hands over
                    self._words = f"{type(error).__name__}: {error}"
        return self._words

    def __call__(self, case: Case, inputs: Mapping[str, Array]) -> Sequence[Array]:
        """Run it; the runtime loads it at the first call."""
        if self._refused is not None:
            raise self._refused
        if self._run is None:
            try:
                self._run = self._runtime.load(self._proto, case)
            except Exception as error:
                self._refused = error
                raise
        return self._run({value.name: inputs[value.name] for value in self._proto.graph.input})


def _outcome(
    case: Case, model: _Model, inputs: Mapping[str, Array], expected: Sequence[Expected], repeat: int
) -> Outcome:
    """Run a case and judge what came."""
    started = time.perf_counter()
    try:
        results = model(case, inputs)
        seconds = time.perf_counter() - started
        for again in range(2, repeat + 1):
            difference = _difference(results, model(case, inputs), expected, again)
            if difference:
                return Outcome(case.id, NONDETERMINISTIC, seconds, difference)
    except Refused as refusal:
        return Outcome(case.id, REFUSED, time.perf_counter() - started, str(refusal))
    except Misplaced as misplaced:
        return Outcome(case.id, WRONG_PLACEMENT, time.perf_counter() - started, str(misplaced))
    except Crashed as crash:
        return Outcome(case.id, CRASHED, time.perf_counter() - started, str(crash))
    verdict, words, worst = decide(expected, results)
    undecided = sum(int(one.undecided.sum()) for one in expected)
    return Outcome(case.id, verdict, seconds, words, worst, undecided)


def _difference(first: Sequence[Array], other: Sequence[Array], expected: Sequence[Expected], number: int) -> str:
    """What differs between the bytes of two runs, if anything does."""
    for want, a, b in zip(expected, first, other, strict=False):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"run {number} gives {want.name} another shape or dtype than run 1"
        if a.tobytes() != b.tobytes():
            count = int((_bytes_of(a) != _bytes_of(b)).any(axis=-1).sum())
            return f"run {number} differs from run 1 in {count} of the {a.size} values of {want.name}"
    return ""


def _bytes_of(array: Array) -> Array:
    """The bytes of each value, (size, bytes)."""
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize)
