"""`gpu.barrier`, `nvvm.barrier`, `nvvm.bar.warp.sync`, `gpu.shuffle`, dynamic shared memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.lanes import over_lanes
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import allocate
from mlirfuse.interpreter.state.types import element_dtype, keyword
from mlirfuse.schedule.layout import WARP
from mlirfuse.target import target_of

# Alignment of the dynamic shared array in LLVM's NVPTX backend, bytes, unless an access needs more.
DYNAMIC_SHARED_ALIGNMENT = 16


def require_converged(site: Site, frame: Frame) -> None:
    """Raises `InterpreterError` unless every thread of the block is active."""
    if frame.mask is not None and not frame.mask.all():
        missing = np.flatnonzero(~frame.mask)
        raise site.error(
            f"barrier in divergent flow: {len(missing)} of {frame.block.threads} threads do not execute the op",
            frame,
            int(missing[0]),
        )


@suspending("gpu.barrier")
def _barrier(site: Site) -> Callable[[Frame], Coroutine]:
    """Orders the block's earlier accesses before its later ones; other blocks may run in between."""

    def step(frame: Frame) -> Coroutine:
        require_converged(site, frame)
        frame.block.advance()
        yield None

    return step


@suspending("nvvm.barrier")
def _numbered_barrier(site: Site) -> Callable[[Frame], Coroutine]:
    """Orders the accesses of the whole block, which is exact if threads of different barriers share no memory.

    So all barriers of a block must have the same threads: those of one number would wait for each other otherwise.
    """
    number, count = site.operands

    def step(frame: Frame) -> Coroutine:
        require_converged(site, frame)
        threads = frame.block.threads
        barriers = over_lanes(frame.values[number], threads)
        _, counts = np.unique(barriers, return_counts=True)
        expected = int(over_lanes(frame.values[count], threads)[0])
        if (counts != expected).any() or expected % WARP:
            raise site.error(
                f"{counts.tolist()} threads take part in barriers of {expected} threads, which must be whole warps",
                frame,
            )
        first = frame.block.barriers
        if first is not None and not np.array_equal(first, barriers):
            thread = int(np.flatnonzero(first != barriers)[0])
            raise site.error(
                f"a thread waits at barrier {barriers[thread]} after one at barrier {first[thread]}: the barriers of a "
                f"block must have the same threads everywhere",
                frame,
                thread,
            )
        frame.block.barriers = barriers
        frame.block.advance()
        yield None

    return step


@suspending("nvvm.bar.warp.sync")
def _warp_barrier(site: Site) -> Callable[[Frame], Coroutine]:
    """Orders the accesses of each warp's threads among each other, and none of different warps."""

    def step(frame: Frame) -> Coroutine:
        active = frame.mask
        if active is not None and not active.all():
            for start in range(0, frame.block.threads, WARP):
                warp = active[start : start + WARP]
                if warp.any() and not warp.all():
                    lane = start + int(np.argmin(warp))
                    raise site.error("barrier of a warp in divergent flow: not all its threads execute it", frame, lane)
        frame.block.meet_warps(active)
        yield None

    return step


@rule("gpu.shuffle")
def _shuffle(site: Site) -> Callable[[Frame], None]:
    """`shfl.sync`: a thread whose source is outside of its segment of `width` gets its own value and false."""
    mode = keyword(site.op.attributes["mode"])
    (value, offset, width), (out, valid) = site.operands, site.results

    def step(frame: Frame) -> None:
        values, threads = frame.values, frame.block.threads
        by, size = values[offset], values[width]
        if len(by) == len(size) == 1:
            source, inside = _same_sources(mode, threads, int(by[0]), int(size[0]))
        else:
            source, inside = _sources(mode, threads, by.astype(np.int64), size.astype(np.int64))
        _require_partners(site, frame, source)
        values[out] = over_lanes(values[value], threads)[np.minimum(source, threads - 1)]
        values[valid] = inside

    return step


def _sources(mode: str, threads: int, by: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The thread whose value each thread of a shuffle gets, and whether it is in the thread's segment of `size`."""
    lanes = np.arange(threads)
    first = lanes - lanes % size
    source = {
        "xor": lambda: lanes ^ by,
        "up": lambda: lanes - by,
        "down": lambda: lanes + by,
        "idx": lambda: first + by % size,
    }[mode]()
    inside = (source >= first) & (source < first + size)
    return np.where(inside, source, lanes), inside


@lru_cache(maxsize=1024)
def _same_sources(mode: str, threads: int, by: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """`_sources` where all threads have the same operands: constants, which each block and each step meets again."""
    source, inside = _sources(mode, threads, np.array([by]), np.array([size]))
    source.flags.writeable = inside.flags.writeable = False
    return source, inside


def _require_partners(site: Site, frame: Frame, source: np.ndarray) -> None:
    """Checks that all threads of a warp execute a shuffle, or none, and that each source thread exists."""
    block, missing = frame.block, source >= frame.block.threads
    active = frame.mask
    if active is not None and not active.all():
        for start in range(0, block.threads, WARP):
            warp = active[start : start + WARP]
            if warp.any() and not warp.all():
                raise site.error(
                    "shuffle in divergent flow: not all threads of the warp execute the op",
                    frame,
                    start + int(np.argmin(warp)),
                )
    missing = missing if active is None else active & missing
    if np.count_nonzero(missing):
        lane = int(np.argmax(missing))
        raise site.error(f"shuffle reads thread {source[lane]}, which does not exist", frame, lane)


@rule("gpu.dynamic_shared_memory")
def _dynamic_shared_memory(site: Site) -> Callable[[Frame], None]:
    """Allocates the most bytes that a launch may have, because the IR does not contain the number of a launch."""
    dtype, out = element_dtype(site.op.results[0].type), site.results[0]
    nbytes = target_of(None).shared_per_block

    def step(frame: Frame) -> None:
        block = frame.block
        frame.values[out] = block.shared(
            "dynamic",
            lambda: allocate("dynamic", "shared", (nbytes,), dtype, DYNAMIC_SHARED_ALIGNMENT, checks=block.checks),
        )

    return step
