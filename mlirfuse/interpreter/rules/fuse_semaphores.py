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
    """Increments atomically, by one thread, with acquire-release semantics unless the op is relaxed."""
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
    """Lets other blocks run until the counter has reached the value, and acquires what the arrivals released."""

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
    """The number of resident blocks; a block of a tile program is an iteration of its loop over blocks."""
    blocks = (site.integer("per_sm") or 0) * site.compiler.interpreter.options.sms
    out = site.results[0]

    def step(frame: Frame) -> None:
        frame.values[out] = np.array([blocks], np.int64)

    return step


def _operands(site: Site, frame: Frame) -> tuple[int, MemRef, int, int]:
    """(thread, semaphores, element number in their buffer, limit or count) of a semaphore op.

    Raises `InterpreterError` unless exactly one thread executes the op.
    """
    block = frame.block
    active = np.ones(block.threads, bool) if frame.mask is None else frame.mask
    if np.count_nonzero(active) != 1:
        raise site.error(f"executed by {np.count_nonzero(active)} threads of the block, not by one", frame)
    thread = int(np.argmax(active))
    memref, slot, number = gather(frame.values, site.operands)
    flat = Access(site, frame, memref, [slot]).flat
    element = int(flat[min(thread, len(flat) - 1)])
    return thread, memref, element, int(number.view(np.uint32)[min(thread, len(number) - 1)])
