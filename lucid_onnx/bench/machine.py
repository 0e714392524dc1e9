"""The machine that was measured on."""

from __future__ import annotations

import contextlib
import os
import platform
from importlib import metadata
from pathlib import Path


def machine() -> dict[str, str]:
    """Processor, system, and versions of what was measured.

    Examples
    --------
    >>> list(machine())[:3]
    ['processor', 'cores', 'system']
    """
    found = {"processor": _processor(), "cores": str(os.cpu_count()), "system": platform.platform()}
    for package in ("onnxruntime", "torch", "numpy", "onnx-ad"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _processor() -> str:
    """Name of the processor, which Python itself does not tell on Linux."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
