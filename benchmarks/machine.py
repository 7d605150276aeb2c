"""What a benchmark runs on: whether there is a GPU, and its driver, versions, commit and date."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata

import mlirfuse as mf
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import cuda

PACKAGES = (
    "torch",
    "triton",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "quack-kernels",
    "liger-kernel",
    "xtc-mlir-python-bindings",
)


def missing() -> str | None:
    """Starts CUDA, for first calls that are timed; says what there is not, or None."""
    os.environ.setdefault("CUDA_CACHE_DISABLE", "1")  # else a second run's first calls find their kernels assembled
    try:
        cuda.cupy()
        import torch
    except (RuntimeLaunchError, ImportError) as error:
        return f"this benchmark needs a GPU, CuPy and PyTorch: {error}"
    torch.cuda.init()
    return None


def machine() -> dict[str, str]:
    """GPU, driver, versions and date."""
    import torch

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    found = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "gpu": torch.cuda.get_device_name(),
        "driver": _output(query),
        "commit": _output(["git", "rev-parse", "--short", "HEAD"]),
        "python": sys.version.split()[0],
        "mlirfuse": mf.__version__,
        "cuda": str(torch.version.cuda),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _output(command: list[str]) -> str:
    """First line that a command prints, or `unknown`."""
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return lines[0].strip() if lines else "unknown"
