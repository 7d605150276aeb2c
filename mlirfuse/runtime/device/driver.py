"""Functions of the CUDA driver that CuPy does not wrap, called through `ctypes`, which needs no further package."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from mlirfuse.errors import RuntimeLaunchError

_CAPTURING, _MODE_RELAXED = 1, 2  # CUstreamCaptureStatus, CUstreamCaptureMode
_NO_DESTRUCTOR_SYNC, _MOVE_REFERENCE = 1, 1  # CUuserObject_flags, CUuserObjectRetain_flags
_COOPERATIVE, _PROGRAMMATIC = 2, 6  # CUlaunchAttributeID: ... and PROGRAMMATIC_STREAM_SERIALIZATION
_SEMAPHORE_BYTES = 64  # no sem_t is larger


class _LaunchAttribute(ctypes.Structure):
    """`CUlaunchAttribute` with a flag as its value, of which the driver may read 64 bytes."""

    _fields_ = (("id", ctypes.c_int), ("_pad", ctypes.c_int), ("flag", ctypes.c_int), ("_rest", ctypes.c_int * 15))


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
        raise RuntimeLaunchError(
            f"the CUDA driver cannot be loaded: {error}",
            hint="run on a machine with a GPU and its driver, or use target='interpret'",
        ) from error


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


@dataclass(frozen=True)
class Capture:
    """A graph capture.

    Attributes:
        id: a number that no other capture of this process has.
        graph: the `CUgraph` that is being made.
    """

    id: int
    graph: int


def capture(stream: int) -> Capture:
    """The capture that a stream is part of; raises `RuntimeLaunchError` where there is none, or it has failed."""
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    call(
        "cuStreamGetCaptureInfo_v2",
        ctypes.c_void_p(stream), ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None,
    )  # fmt: skip
    if status.value != _CAPTURING or graph.value is None:
        raise RuntimeLaunchError(
            "the capture of the stream has failed",
            hint="an earlier call on the stream is not allowed during capture: capture again without it",
        )
    return Capture(number.value, graph.value)


class GraphEnd:
    """Detects when a graph, and everything instantiated from it, is destroyed and has run for the last time.

    The driver then posts a semaphore of the C library. Python must not run on the driver's threads, which may outlive
    the interpreter; for that reason the semaphore is never freed.

    Args:
        graph: a `CUgraph` that is being captured.
    """

    def __init__(self, graph: int):
        libc = _libc()
        self._semaphore = ctypes.c_void_p(libc.malloc(_SEMAPHORE_BYTES))
        libc.sem_init(self._semaphore, 0, 0)
        owned, post = ctypes.c_void_p(), ctypes.cast(libc.sem_post, ctypes.c_void_p)
        call("cuUserObjectCreate", ctypes.byref(owned), self._semaphore, post, 1, _NO_DESTRUCTOR_SYNC)
        call("cuGraphRetainUserObject", ctypes.c_void_p(graph), owned, 1, _MOVE_REFERENCE)

    def is_over(self) -> bool:
        """Whether the graph is gone; True once."""
        return bool(_libc().sem_trywait(self._semaphore) == 0)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    return libc


def stream_id(stream: int) -> int:
    """A number unique to a stream in this process; a pointer may be reused after its stream is destroyed."""
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


def dependent_launcher(
    kernel: int,
    blocks: int,
    threads: int,
    shared_bytes: int,
    table: int,
    *,
    cooperative: bool,
    failure: Callable[[int], Exception],
) -> Callable[[int], None]:
    """A function that launches a kernel on a stream, where it may start before its predecessor there has ended.

    One thread at a time may call it. Values that do not change between calls are converted once, here.

    Args:
        kernel: a `CUfunction`, which executes `griddepcontrol.wait`.
        blocks: its grid.
        threads: a block's.
        shared_bytes: dynamic shared memory.
        table: the address of the parameters' addresses.
        cooperative: whether all blocks of the grid must be resident at once.
        failure: makes what the function raises where the driver refuses the launch, of its `CUresult`.
    """
    flags = [_PROGRAMMATIC, *([_COOPERATIVE] if cooperative else [])]
    attributes = (_LaunchAttribute * len(flags))(*(_LaunchAttribute(id=flag, flag=1) for flag in flags))
    config = _LaunchConfig(
        (blocks, 1, 1), (threads, 1, 1), shared_bytes, None, ctypes.addressof(attributes), len(attributes)
    )
    # Plain integers, as `ctypes` converts its own objects again in every call.
    handle, parameters = ctypes.c_void_p.from_param(kernel), ctypes.c_void_p.from_param(table)
    launch_kernel = partial(function("cuLaunchKernelEx"), ctypes.byref(config), handle, parameters, None)

    def launch(stream: int, _keep_alive: object = attributes) -> None:
        config.stream = stream
        status = launch_kernel()
        if status:
            raise failure(status)

    return launch


def max_active_clusters(kernel: int, threads: int, cluster: int, shared_bytes: int) -> int:
    """How many clusters of a kernel the current device holds at once."""
    config = _LaunchConfig((cluster, 1, 1), (threads, 1, 1), shared_bytes, None, None, 0)
    count = ctypes.c_int()
    call("cuOccupancyMaxActiveClusters", ctypes.byref(count), ctypes.c_void_p(kernel), ctypes.byref(config))
    return count.value
