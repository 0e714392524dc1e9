"""Child processes that run cases: one that crashes or hangs costs its case only."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from lucid_onnx.conformance.case import Case
from lucid_onnx.conformance.outcome import CRASHED, TIMED_OUT, Outcome
from lucid_onnx.conformance.runtimes.checks import MOST_WORDS, killed_by
from lucid_onnx.conformance.worker import Job
from lucid_onnx.reference.schema import LucidError, RunError

START_LIMIT = 120.0
"""Seconds that a runtime may take to be imported."""

_SERVE = "from lucid_onnx.conformance.worker import main; main()"


class Worker:
    """A child process with a runtime in it.

    Parameters
    ----------
    job : Job
        What it runs.
    time_limit : float
        Seconds that a case may take.

    Raises
    ------
    LucidError
        What the runtime's adapter raised: it is not installed, or does not have what was asked for.
    RunError
        The process ended before it was ready.
    """

    def __init__(self, job: Job, time_limit: float) -> None:
        self._job, self._time_limit = job, time_limit
        self._start()

    def _start(self) -> None:
        path = os.pathsep.join(filter(None, sys.path))
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"} if self._job.repeat == 1 else {}
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._folder = tempfile.TemporaryDirectory(prefix="lucid-onnx-", ignore_cleanup_errors=True)
        # What a killed process leaves of temporary files goes with this folder.
        temporary = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder.name)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env={**one_thread, **os.environ, "PYTHONPATH": path, **temporary},
            start_new_session=True,
        )
        self._timed_out = False
        self._send(self._job)
        try:
            answer = self._receive(START_LIMIT)
        except EOFError:
            raise RunError(f"conformance: {self._job.runtime} {self._end()} as it was imported") from None
        if isinstance(answer, Exception):
            self.close()
            if isinstance(answer, LucidError):
                raise answer
            raise RunError(f"conformance: {self._job.runtime} cannot be opened: {answer}")
        self.runtime, self.version, self.provider = answer

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """The outcomes of cases, in their order."""
        waiting = deque(cases)
        while waiting:
            if self._process.poll() is not None:
                self._start()
            try:
                self._send(list(waiting))
                while waiting:
                    self._receive(START_LIMIT)  # our own part, which builds and perhaps rewrites the model
                    outcome = self._receive(self._time_limit)
                    yield outcome
                    waiting.popleft()
            except (EOFError, BrokenPipeError):
                verdict, words = (TIMED_OUT, f"after {self._time_limit:g} s") if self._timed_out else (CRASHED, "")
                ended = self._end()
                yield Outcome(waiting.popleft().id, verdict, words=words or ended)

    def close(self) -> None:
        """End the process and whatever it has started."""
        if self._process.poll() is None:
            self._kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._words):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        self._folder.cleanup()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the answer that does not come tells
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()

    def _receive(self, limit: float) -> Any:
        """The next answer; EOFError if the process ends, on its own or because it took longer than `limit`."""
        assert self._process.stdout is not None
        watch = threading.Timer(limit, self._give_up)
        watch.daemon = True
        watch.start()
        try:
            return pickle.load(self._process.stdout)
        except pickle.UnpicklingError:
            raise EOFError from None
        finally:
            watch.cancel()

    def _give_up(self) -> None:
        self._timed_out = True
        self._kill()

    def _kill(self) -> None:
        """Kill the process with its children, where the system knows groups of processes."""
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _end(self) -> str:
        """How the process ended, with its last words."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        status = self._process.poll()
        self._words.seek(0)
        last = last_words(self._words.read()[-20000:].decode(errors="replace"))
        self.close()
        ended = killed_by(-status) if status is not None and status < 0 else f"ended with status {status}"
        return f"{ended}: {last}" if last else ended


def last_words(printed: str) -> str:
    r"""What a process said before it ended, in a line; of a panic in Rust the cause, without the stack.

    Examples
    --------
    >>> last_words("loading\nthread 'main' (7) panicked at a.rs:3:\nno such axis\n  0: 0xabc - main\naborting.\n")
    'panicked: no such axis'
    >>> last_words("loading\nout of memory\n")
    'loading out of memory'
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    panic = next((number for number, line in enumerate(lines) if "panicked at" in line), None)
    if panic is not None and panic + 1 < len(lines):
        return f"panicked: {lines[panic + 1]}"[:MOST_WORDS]
    return " ".join(lines[-3:])[:MOST_WORDS]


class Pool:
    """Several workers that share the cases.

    Parameters
    ----------
    job, time_limit
        As those of a `Worker`.
    size : int
        How many of them.
    """

    def __init__(self, job: Job, time_limit: float, size: int) -> None:
        self._job, self._time_limit, self._size = job, time_limit, size
        self.first = Worker(job, time_limit)
        """The worker that is there from the start, and says what the runtime is."""
        self._workers = [self.first]

    def run(self, tasks: Iterable[Sequence[Case]]) -> Iterator[Outcome]:
        """The outcomes of tasks of cases, as they come; what is wrong with a worker itself is raised."""
        waiting = deque(tasks)
        found: queue.SimpleQueue[Outcome | Exception | None] = queue.SimpleQueue()

        def serve(worker: Worker | None) -> None:
            try:
                if worker is None:
                    worker = Worker(self._job, self._time_limit)
                    self._workers.append(worker)
                while waiting:
                    with suppress(IndexError):  # another has taken the last one
                        for outcome in worker.run(waiting.popleft()):
                            found.put(outcome)
            except Exception as error:
                found.put(error)
            finally:
                found.put(None)

        served = [self.first, *[None] * (min(self._size, len(waiting)) - 1)]
        for worker in served:
            threading.Thread(target=serve, args=(worker,), daemon=True).start()
        working = len(served)
        try:
            while working:
                outcome = found.get()
                if isinstance(outcome, Exception):
                    raise outcome
                if outcome is None:
                    working -= 1
                else:
                    yield outcome
        finally:
            waiting.clear()

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.close()
