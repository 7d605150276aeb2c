"""Where the examples run: on the GPU with CuPy arrays, or without one in the interpreter with NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def on_gpu_or_interpreter() -> tuple[str | None, Callable[[Any], Any], Callable[[Any], Any]]:
    """The target for `mf.fuse`, a function that brings an array there, and one that brings it back."""
    try:
        import cupy

        cupy.cuda.runtime.getDeviceCount()
    except ImportError:
        return "interpret", np.asarray, np.asarray
    except cupy.cuda.runtime.CUDARuntimeError:  # CuPy without a GPU
        return "interpret", np.asarray, np.asarray
    return None, cupy.asarray, cupy.asnumpy
