"""Functions of the CUDA driver that CuPy does not wrap, called in the library itself: that needs no further package."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from mlirfuse.errors import RuntimeLaunchError

_CAPTURING, _MODE_RELAXED = 1, 2  # CUstreamCaptureStatus, CUstreamCaptureMode


class _LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig`."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def library() -> ctypes.CDLL:
    """The driver; raises `RuntimeLaunchError` where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeLaunchError(f"the CUDA driver is not there: {error}") from error


def function(name: str) -> Any:
    """A function of the driver, which returns a `CUresult`; raises `RuntimeLaunchError` where it has none."""
    try:
        return getattr(library(), name)
    except AttributeError as error:
        raise RuntimeLaunchError(f"the CUDA driver has no {name}", hint="update it") from error


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the driver; raises `RuntimeLaunchError` where it fails."""
    status = function(name)(*arguments)
    if status:
        raise RuntimeLaunchError(f"{name} fails (CUresult {status})")


def capture_id(stream: int) -> int | None:
    """Which graph capture a stream is part of, a number of its own in this process; None for a stream that runs."""
    status, number = ctypes.c_int(), ctypes.c_uint64()
    call(
        "cuStreamGetCaptureInfo_v2",
        ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), None, None, None,
    )  # fmt: skip
    return number.value if status.value == _CAPTURING else None


def stream_id(stream: int) -> int:
    """A number that no other stream of this process has had: a pointer may be that of a stream which is gone."""
    number = ctypes.c_uint64()
    call("cuStreamGetId", ctypes.c_void_p(stream), ctypes.byref(number))
    return number.value


@contextmanager
def relaxed_capture() -> Iterator[None]:
    """Lets this thread allocate and wait while a graph is being captured, by this thread or by another."""
    mode = ctypes.c_int(_MODE_RELAXED)
    call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        yield
    finally:
        call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


def max_active_clusters(kernel: int, threads: int, cluster: int, shared_bytes: int) -> int:
    """How many clusters of a kernel the current device holds at once."""
    config = _LaunchConfig((cluster, 1, 1), (threads, 1, 1), shared_bytes, None, None, 0)
    count = ctypes.c_int()
    call("cuOccupancyMaxActiveClusters", ctypes.byref(count), ctypes.c_void_p(kernel), ctypes.byref(config))
    return count.value
