"""`fuse.flagged_store` and `fuse.flagged_load`: words that are zero while they are empty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.scheduler import Coroutine, Wait
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.lanes import element_indices, expand
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.types import vector_shape

WORD = np.dtype(np.uint32)


@suspending("fuse.flagged_store")
def _flagged_store(site: Site) -> Callable[[Frame], Coroutine]:
    """Stores words that become visible one by one, while other blocks run."""
    value, flagged_buffer, *starts = site.operands
    elements = element_indices(vector_shape(site.op.operands[0].type))

    def step(frame: Frame) -> Coroutine:
        values = frame.values
        access = Access(site, frame, values[flagged_buffer], elements(gather(values, starts)))
        words = np.maximum(~np.ascontiguousarray(values[value]).view(WORD), 1)
        where, active = _active(access, frame)
        yield None
        memory = access.memref.buffer.elements(WORD)
        if memory[where[active]].any():
            raise site.error("stores to a word that is not empty", frame)
        memory[where[active]] = np.broadcast_to(words, where.shape)[active]

    return step


@suspending("fuse.flagged_load")
def _flagged_load(site: Site) -> Callable[[Frame], Coroutine]:
    """Lets other blocks run until every word has arrived."""
    flagged_buffer, *indices = site.operands
    partials, rank = site.integer("partials") or 0, ir.MemRefType(site.op.operands[0].type).rank
    places = [indices[n : n + rank] for n in range(0, len(indices), rank)]
    elements = element_indices(vector_shape(site.op.results[0].type))

    def step(frame: Frame) -> Coroutine:
        values = frame.values
        starts = [gather(values, place) for place in places]
        each = [[first + number, *rest] for first, *rest in starts for number in range(partials)]
        accesses = [_active(Access(site, frame, values[flagged_buffer], elements(start)), frame) for start in each]
        memory = values[flagged_buffer].buffer.elements(WORD)

        def missing() -> int:
            return sum(int(np.count_nonzero(memory[where[active]] == 0)) for where, active in accesses)

        yield Wait(
            lambda: f"{site.name} at {site.location} ({missing()} words of {values[flagged_buffer].text} are empty)",
            lambda: missing() == 0,
        )
        for out, (where, active) in zip(site.results, accesses, strict=True):
            words = np.where(active, memory[np.where(active, where, 0)], np.uint32(0xFFFFFFFF))
            values[out] = (~words).view(np.float32)
            memory[where[active]] = 0

    return step


def _active(access: Access, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The element of the buffer that each thread accesses, and whether the thread is active."""
    shape = (frame.block.threads, *access.flat.shape[1:])
    mask = True if frame.mask is None else expand(frame.mask, len(shape))
    return np.broadcast_to(access.flat, shape), np.broadcast_to(mask, shape)
