"""Memory that a run takes, measured in a process of its own.

A process knows the most memory that it ever held, not what one call took. So a fresh one loads model and inputs
and nothing else, and what its high-water mark rises by while the model runs is what the run takes: the result
and everything in between, not the inputs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx

from lucid_onnx.reference.schema import Array, RunError, UnsupportedError

# What the child prints: bytes by which the mark rose, and bytes of the result. It imports as little as it can,
# since memory that was freed before the run would hide what the run takes. On Linux getrusage is of no use: its
# mark is inherited from the process that starts the child.
_CHILD = """
import resource, sys
import numpy as np, onnxruntime as ort
def mark():
    try:
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model, inputs, threads = sys.argv[1:]
feed = {name: np.load(f"{inputs}/{name}.npy") for name in ("X", "grid")}
options = ort.SessionOptions()
options.log_severity_level = 4
options.intra_op_num_threads = int(threads)
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
before = mark()
(result,) = session.run(None, feed)
print(mark() - before, result.nbytes)
"""


def check_memory() -> None:
    """Raise unless the system tells how much memory a process held."""
    try:
        import resource  # noqa: F401
    except ImportError:
        raise UnsupportedError(f"bench: Python does not tell the memory of a process on {sys.platform}") from None


def grown(model: onnx.ModelProto, feed: Mapping[str, Array], threads: int) -> int:
    """Bytes that one run of a model on X and grid takes; at least those of its result.

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
        words = [sys.executable, "-P", "-c", _CHILD, str(path), folder, str(threads)]
        child = subprocess.run(words, capture_output=True, text=True, check=False)
    if child.returncode:
        said = child.stderr.strip().splitlines()
        why = said[-1] if said else f"it ended with status {child.returncode}"
        raise RunError(f"bench: the process that measures memory failed: {why}")
    rose, result = (int(number) for number in child.stdout.split())
    # Pages that were free already hide a little of what a small run takes.
    return max(rose, result)
