"""Memory that kernels communicate through: semaphores and scratch, one arena a stream and one a graph capture.

Kernels of one stream run one after the other, so they may share memory; kernels of different streams, or of a graph
that may be replayed beside anything, may not. Semaphores are zeroed once, when they are allocated: every kernel leaves
them zero. Memory is never given back, because a kernel in flight, or a graph, may still use it; an arena that must grow
at least doubles, so that what is left behind is no more than what is used. The arena of a capture is used again once
its graph is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from mlirfuse.analysis.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime import driver
from mlirfuse.runtime.cuda import cupy
from mlirfuse.runtime.memory_plan import MemoryPlan

CHECK = "MLIRFUSE_CHECK_WORKSPACE"
"""Environment variable: 1 looks after each launch whether the kernel left its semaphores zero; each call then waits.

It is read when a launch plan is made.
"""

_SMALLEST = {SEMAPHORES: 4096, SCRATCH: 1 << 16}
"""Bytes of a new arena."""

_PER_THREAD_STREAM = 2  # cudaStreamPerThread, which is another stream in every thread
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_DEVICE_TO_HOST = 2  # cudaMemcpyDeviceToHost

_ARENAS: dict[object, Arena] = {}
_CAPTURES: dict[tuple[int, int, int], tuple[Arena, driver.GraphEnd]] = {}
_CAPTURES_LOCK = Lock()


@dataclass(frozen=True)
class _Block:
    pointer: int = 0
    nbytes: int = 0


class Arena:
    """The workspace of one stream, or of one stream's part of a capture.

    Args:
        stream: the stream's pointer.
        stream_id: which stream that is; None for a capture.

    Attributes:
        lock: held from `pointers` until the launches are on the stream, so that no other call's come in between.
        stream_id: which stream uses it, or None.
    """

    def __init__(self, stream: int, *, stream_id: int | None = None):
        self.lock = Lock()
        self.stream_id = stream_id
        self._stream = stream
        self._dirty = False
        self._blocks = {SEMAPHORES: _Block(), SCRATCH: _Block()}

    def pointers(self, plan: MemoryPlan) -> list[int]:
        """The address of each place of a plan; the arena's device must be current.

        Raises:
            RuntimeLaunchError: there is not enough memory.
        """
        if self._dirty:
            self._clean()
        for kind in (SEMAPHORES, SCRATCH):
            needed, has = plan.nbytes(kind), self._blocks[kind].nbytes
            if needed > has:
                self._blocks[kind] = _allocate(max(needed, 2 * has, _SMALLEST[kind]), zeroed=kind == SEMAPHORES)
        return [self._blocks[place.kind].pointer + place.offset for place in plan.places]

    def mark_dirty(self) -> None:
        """Says that a launch failed, after which nobody knows what the semaphores are."""
        self._dirty = True

    def _clean(self) -> None:
        semaphores = self._blocks[SEMAPHORES]
        if self.stream_id is None:  # a memset would become a part of the graph
            self._blocks[SEMAPHORES] = _Block()
        elif semaphores.nbytes:
            cupy().cuda.runtime.memsetAsync(semaphores.pointer, 0, semaphores.nbytes, self._stream)
        self._dirty = False


def arena(device: int, stream: int) -> Arena:
    """The arena of a stream of a device, which must be current, or of the capture that the stream is part of.

    Raises:
        RuntimeLaunchError: the driver refuses.
    """
    runtime = cupy().cuda.runtime
    if runtime.streamIsCapturing(stream):
        return _arena_of_capture(device, stream)
    identity = driver.stream_id(stream)
    key = (device, stream, identity if stream == _PER_THREAD_STREAM else None)
    found = _ARENAS.get(key) or _ARENAS.setdefault(key, Arena(stream, stream_id=identity))
    if found.stream_id != identity:
        # The stream that had this pointer is gone, and its last kernels may still run.
        with driver.relaxed_capture():
            runtime.deviceSynchronize()
        found.stream_id = identity
    return found


def _arena_of_capture(device: int, stream: int) -> Arena:
    """Of each stream of a capture its own: they are branches of the graph, which run beside each other."""
    capture = driver.capture(stream)
    key = (device, stream, capture.id)
    with _CAPTURES_LOCK:
        if key not in _CAPTURES:
            ended = next((k for k, (_, end) in _CAPTURES.items() if k[0] == device and end.is_over()), None)
            reused = Arena(stream) if ended is None else _CAPTURES.pop(ended)[0]
            _CAPTURES[key] = (reused, driver.GraphEnd(capture.graph))
        return _CAPTURES[key][0]


def with_workspace(
    submit: Callable[[Sequence[Any], int], None], plan: MemoryPlan, device: int
) -> Callable[[Sequence[Any], int], None]:
    """Adds the addresses of a plan's places to the words of a call, and sees to it that a failure is cleaned up."""

    def submit_with_workspace(words: Sequence[Any], stream: int) -> None:
        memory = arena(device, stream)
        with memory.lock:
            try:
                submit([*words, *memory.pointers(plan)], stream)
            except BaseException:
                memory.mark_dirty()
                raise

    return submit_with_workspace


def checks_workspace() -> bool:
    """Whether launches are to be checked."""
    return os.environ.get(CHECK, "0") not in ("", "0")


def require_zero(kernel: str, argument: int, pointer: int, nbytes: int, stream: int) -> None:
    """Waits for a stream, and raises `RuntimeLaunchError` for a semaphore that is not 0.

    A stream that is being captured runs nothing yet: there is nothing to check.
    """
    runtime = cupy().cuda.runtime
    if runtime.streamIsCapturing(stream):
        return
    values = np.empty(nbytes // 4, np.uint32)
    runtime.memcpyAsync(values.ctypes.data, pointer, nbytes, _DEVICE_TO_HOST, stream)
    runtime.streamSynchronize(stream)
    if values.any():
        slot = int(np.flatnonzero(values)[0])
        raise RuntimeLaunchError(
            f"the kernel ended and left semaphore {slot} of argument {argument} at {values[slot]}",
            where=kernel,
            hint="`mlirfuse run` executes its IR with more checks",
        )


def _allocate(nbytes: int, *, zeroed: bool) -> _Block:
    """New memory of the current device, straight from the driver: a pool's might still be in use by its last owner."""
    runtime = cupy().cuda.runtime
    with driver.relaxed_capture():
        try:
            pointer = runtime.malloc(nbytes)
        except runtime.CUDARuntimeError as error:
            raise RuntimeLaunchError(f"there are no {nbytes} bytes for a workspace: {error}") from error
        if zeroed:
            # On a stream of its own: the caller's may be capturing, and would zero in every replay.
            stream = runtime.streamCreateWithFlags(_NON_BLOCKING)
            runtime.memsetAsync(pointer, 0, nbytes, stream)
            runtime.streamSynchronize(stream)
            runtime.streamDestroy(stream)
    return _Block(pointer, nbytes)
