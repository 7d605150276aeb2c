"""The optional packages for this machine, by its NVIDIA driver; `make demo` installs them."""

from __future__ import annotations

import ctypes
from functools import cache

NEWEST_EXTRA = 13
"""The CUDA major version of the newest extra in pyproject.toml; a newer driver runs it too."""

OLDEST_EXTRA = 12


@cache
def driver_cuda_version() -> int | None:
    """The CUDA version that the installed driver supports, as `cuDriverGetVersion` gives it: 12080 for CUDA 12.8.

    None where there is no NVIDIA driver. Neither CuPy nor a device is needed.
    """
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        version = ctypes.c_int(0)
        if library.cuDriverGetVersion(ctypes.byref(version)) == 0 and version.value > 0:
            return version.value
    return None


def cuda_extra(version: int | None) -> str | None:
    """The extra of mlirfuse for a driver of that CUDA version; None without a driver, or where it is too old."""
    if version is None or version // 1000 < OLDEST_EXTRA:
        return None
    return f"cuda{min(version // 1000, NEWEST_EXTRA)}"


def how_to_launch(version: int | None) -> str:
    """The advice for a user without CuPy, on a machine with a driver of that CUDA version, or without one."""
    extra = cuda_extra(version)
    if extra is not None:
        return f"this machine has an NVIDIA driver: pip install 'mlirfuse[{extra}]'"
    if version is not None:
        return (
            f"the driver supports CUDA {version // 1000}.{version % 1000 // 10}, and mlirfuse needs {OLDEST_EXTRA}.0 "
            "or later: install a newer driver, or use target='interpret'"
        )
    return "this machine has no NVIDIA driver: use target='interpret'"
