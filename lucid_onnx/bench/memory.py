"""Memory that a run takes, measured in a process of its own.

A process knows the most memory that it ever held, not what one call took. So a fresh one loads model and inputs
and nothing else, and what its high-water mark rises by while the model runs is what the run takes: the results
and everything in between, not the inputs.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx

from lucid_onnx.reference.schema import Array, RunError, UnsupportedError

# What the children share: the mark, and how it is set back to what is held now, so that memory which was held and
# freed before does not hide what the run takes. Where it cannot be set back, it matters that a child imports little.
# On Linux getrusage is of no use: its mark is inherited from the process that starts the child.
_MARK = """
import contextlib, resource, sys
def mark():
    try:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def start():
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")
    return mark()
"""

# A child prints the bytes by which the mark rose, and the bytes of the results.
_SESSION = (
    _MARK
    + """
import pathlib, numpy as np, onnxruntime as ort
model, inputs, threads = sys.argv[1:]
feed = {path.stem: np.load(path) for path in pathlib.Path(inputs).glob("*.npy")}
options = ort.SessionOptions()
options.log_severity_level = 4
options.intra_op_num_threads = int(threads)
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
before = start()
results = session.run(None, feed)
print(mark() - before, sum(result.nbytes for result in results))
"""
)

_CALL = (
    _MARK
    + """
import pickle, torch
made, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
with open(made, "rb") as file:
    call = pickle.load(file)()
before = start()
results = call()
print(mark() - before, sum(result.nbytes for result in results))
"""
)


def check_memory() -> None:
    """Raise unless the system tells how much memory a process held."""
    try:
        import resource  # noqa: F401
    except ImportError:
        raise UnsupportedError(f"bench: Python does not tell the memory of a process on {sys.platform}") from None


def grown(model: onnx.ModelProto, feed: Mapping[str, Array], threads: int) -> int:
    """Bytes that one run of a model takes; at least those of its results.

    Raises
    ------
    RunError
        The process ended before its time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        for name, array in feed.items():
            np.save(Path(folder, f"{name}.npy"), array)
        return _rise(_SESSION, str(path), folder, str(threads))


def grown_calling(make: Callable[[], Callable[[], object] | None], threads: int) -> int:
    """Bytes that the call takes which `make`, a function that can be pickled, makes in another process.

    What the call returns is a sequence of PyTorch's tensors. Raises as `grown` does.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "make.pickle")
        path.write_bytes(pickle.dumps(make))
        return _rise(_CALL, str(path), str(threads))


def _rise(program: str, *words: str) -> int:
    child = subprocess.run([sys.executable, "-P", "-c", program, *words], capture_output=True, text=True, check=False)
    if child.returncode:
        said = child.stderr.strip().splitlines()
        why = said[-1] if said else f"it ended with status {child.returncode}"
        raise RunError(f"bench: the process that measures memory failed: {why}")
    rose, results = (int(number) for number in child.stdout.split())
    # Pages that were free already hide a little of what a small run takes.
    return max(rose, results)
