"""`fuse.semaphore_arrive`, `fuse.semaphore_wait` and `fuse.resident_blocks`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.dialect.semaphore_arrive import RELAXED
from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.scheduler import Coroutine, Wait
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef


@suspending("fuse.semaphore_arrive")
def _arrive(site: Site) -> Callable[[Frame], Coroutine]:
    """An atomic step by one thread; with acquire-release semantics unless it is relaxed."""
    relaxed = site.attribute(RELAXED) is not None
    out = site.results[0]

    def step(frame: Frame) -> Coroutine:
        yield None  # other blocks may arrive first
        thread, counter, element, limit = _operands(site, frame)
        block, published = frame.block, counter.buffer.published
        if not relaxed:
            if element in published:
                block.acquire_by(thread, published[element])
            released = block.release_by(thread)
            if element in published:
                published[element].join(released)
            else:
                published[element] = released
        values = counter.buffer.elements(np.dtype(np.uint32))
        old = int(values[element])
        values[element] = 0 if old >= limit else old + 1
        frame.values[out] = np.array([old], np.uint32).view(np.int32)

    return step


@suspending("fuse.semaphore_wait")
def _wait(site: Site) -> Callable[[Frame], Coroutine]:
    """Lets other blocks run until the counter is high enough; acquires the arrivals."""

    def step(frame: Frame) -> Coroutine:
        thread, counter, element, count = _operands(site, frame)
        values, name = counter.buffer.elements(np.dtype(np.uint32)), f"{counter.text}[{element}]"
        yield Wait(
            lambda: f"{site.name} at {site.location} ({name} is {values[element]}, it waits for {count})",
            lambda: bool(values[element] >= count),
        )
        if element in counter.buffer.published:
            frame.block.acquire_by(thread, counter.buffer.published[element])

    return step


@rule("fuse.resident_blocks")
def _resident_blocks(site: Site) -> Callable[[Frame], None]:
    """In a tile program a block is an iteration of the loop."""
    blocks = (site.integer("per_sm") or 0) * site.compiler.interpreter.options.sms
    out = site.results[0]

    def step(frame: Frame) -> None:
        frame.values[out] = np.array([blocks], np.int64)

    return step


def _operands(site: Site, frame: Frame) -> tuple[int, MemRef, int, int]:
    """(thread, semaphores, element of their buffer, number) of the only thread that executes a semaphore op."""
    block = frame.block
    active = np.ones(block.threads, bool) if frame.mask is None else frame.mask
    if np.count_nonzero(active) != 1:
        raise site.error(f"{np.count_nonzero(active)} threads of the block reach it, one may", frame)
    thread = int(np.argmax(active))
    memref, slot, number = gather(frame.values, site.operands)
    flat = Access(site, frame, memref, [slot]).flat
    element = int(flat[min(thread, len(flat) - 1)])
    return thread, memref, element, int(number.view(np.uint32)[min(thread, len(number) - 1)])
