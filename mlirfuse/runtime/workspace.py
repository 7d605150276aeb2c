"""Memory that kernels communicate through: semaphores and scratch, one arena a stream and one a graph capture.

Kernels of one stream run one after the other, so they may share memory; kernels of different streams, or of a graph
that may be replayed at any time, may not. Semaphores are zeroed once, when they are allocated: every kernel leaves them
zero. An arena that must grow waits for its stream, and frees its memory; the arena of a capture keeps the memory that
the graph already uses. When the graph is gone, another capture reuses its arena.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from mlirfuse.analysis.memory.workspaces import SCRATCH, SEMAPHORES
from mlirfuse.errors import RuntimeLaunchError
from mlirfuse.runtime.device import driver
from mlirfuse.runtime.device.cuda import cupy
from mlirfuse.runtime.memory_plan import MemoryPlan

CHECK = "MLIRFUSE_CHECK_WORKSPACE"
"""Environment variable: 1 checks after each launch that the kernel left its semaphores zero; each call then waits.

It is read when a launch plan is made.
"""

_SMALLEST = {SEMAPHORES: 4096, SCRATCH: 1 << 16}
"""Bytes of a new arena."""

_HEADROOM = 8
"""Arenas are allocated larger by this fraction, so that slowly growing shapes seldom make them grow."""

_LASTING_STREAMS = (0, 1)  # the legacy default stream and cudaStreamLegacy, which are never destroyed
_PER_THREAD_STREAM = 2  # cudaStreamPerThread, which is another stream in every thread
_NON_BLOCKING = 1  # cudaStreamNonBlocking
_DEVICE_TO_HOST = 2  # cudaMemcpyDeviceToHost

_ARENAS: dict[object, Arena] = {}
_CAPTURES: dict[tuple[int, int, int], tuple[Arena, driver.GraphEnd]] = {}
_LOCK = Lock()


@dataclass(frozen=True)
class _Block:
    pointer: int = 0
    nbytes: int = 0


class Arena:
    """The workspace of one stream, or of one stream's part of a capture.

    Args:
        stream: the stream's pointer.
        stream_id: the stream's unique number; None for a capture.

    Attributes:
        lock: held from `pointers` until the launches are on the stream, so that no other call launches in between.
        stream_id: which stream uses it, or None.
    """

    def __init__(self, stream: int, *, stream_id: int | None = None):
        self.lock = Lock()
        self.stream_id = stream_id
        self._stream = stream
        self._dirty = False
        self._blocks = {SEMAPHORES: _Block(), SCRATCH: _Block()}
        self._used_by_graph: list[_Block] = []

    def pointers(self, plan: MemoryPlan) -> list[int]:
        """The address of each place of a plan; the arena's device must be current.

        Raises:
            RuntimeLaunchError: there is not enough memory.
        """
        if self._dirty:
            self._clean()
        for kind, needed in plan.nbytes.items():
            if needed > self._blocks[kind].nbytes:
                self._retire(kind)
                size = max(needed + needed // _HEADROOM, _SMALLEST[kind])
                self._blocks[kind] = _allocate(size, zeroed=kind == SEMAPHORES)
        return [self._blocks[place.kind].pointer + place.offset for place in plan.places]

    def mark_dirty(self) -> None:
        """Records that a launch failed, after which the values of the semaphores are unknown."""
        self._dirty = True

    def close(self) -> None:
        """Frees all memory. The last kernels of the stream may still run: `cudaFree` waits for them.

        Synchronising the device in another way would invalidate the captures of other streams.
        """
        _free([block for block in self._blocks.values() if block.nbytes])
        self._blocks = {SEMAPHORES: _Block(), SCRATCH: _Block()}

    def forget_graph(self) -> None:
        """Frees memory that only a destroyed graph used."""
        _free(self._used_by_graph)
        self._used_by_graph = []

    def _retire(self, kind: str) -> None:
        """Frees the memory of a kind: now, or where a graph uses it, when the graph is gone."""
        block, self._blocks[kind] = self._blocks[kind], _Block()
        if not block.nbytes:
            return
        if self.stream_id is None:
            self._used_by_graph.append(block)
            return
        with driver.relaxed_capture():
            cupy().cuda.runtime.streamSynchronize(self._stream)
        _free([block])

    def _clean(self) -> None:
        semaphores = self._blocks[SEMAPHORES]
        if self.stream_id is None:  # a memset would become a part of the graph
            self._retire(SEMAPHORES)
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
    identity = stream if stream in _LASTING_STREAMS else driver.stream_id(stream)
    key = (device, stream, identity if stream == _PER_THREAD_STREAM else None)
    found = _ARENAS.get(key) or _ARENAS.setdefault(key, Arena(stream, stream_id=identity))
    return found if found.stream_id == identity else _replace(key, found, Arena(stream, stream_id=identity))


def _replace(key: object, old: Arena, new: Arena) -> Arena:
    """Replaces the arena of a destroyed stream whose pointer a new stream has."""
    with _LOCK:
        if _ARENAS[key] is old:
            _ARENAS[key] = new
            old.close()
        return _ARENAS[key]


def _arena_of_capture(device: int, stream: int) -> Arena:
    """The arena of one stream of a capture; the streams are branches of the graph and run concurrently."""
    capture = driver.capture(stream)
    key = (device, stream, capture.id)
    with _LOCK:
        if key not in _CAPTURES:
            ended = next((k for k, (_, end) in _CAPTURES.items() if k[0] == device and end.is_over()), None)
            given = Arena(stream) if ended is None else _CAPTURES.pop(ended)[0]
            given.forget_graph()
            _CAPTURES[key] = (given, driver.GraphEnd(capture.graph))
        return _CAPTURES[key][0]


def with_workspace(
    submit: Callable[[Sequence[Any], int], None], plan: MemoryPlan, device: int
) -> Callable[[Sequence[Any], int], None]:
    """Adds the addresses of a plan's places to the words of a call, and marks the arena dirty when a launch fails."""

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


def _free(blocks: Sequence[_Block]) -> None:
    with driver.relaxed_capture():
        for block in blocks:
            cupy().cuda.runtime.free(block.pointer)


def _allocate(nbytes: int, *, zeroed: bool) -> _Block:
    """New memory of the current device from the driver; memory of a pool might still be in use by its last owner."""
    runtime = cupy().cuda.runtime
    with driver.relaxed_capture():
        try:
            pointer = runtime.malloc(nbytes)
        except runtime.CUDARuntimeError as error:
            raise RuntimeLaunchError(
                f"cannot allocate a workspace of {nbytes} bytes: {error}",
                hint="free memory of the device, also what the pools of CuPy and PyTorch keep",
            ) from error
        if zeroed:
            # On a separate stream: the caller's stream may be capturing, and the graph would zero in every replay.
            stream = runtime.streamCreateWithFlags(_NON_BLOCKING)
            runtime.memsetAsync(pointer, 0, nbytes, stream)
            runtime.streamSynchronize(stream)
            runtime.streamDestroy(stream)
    return _Block(pointer, nbytes)
