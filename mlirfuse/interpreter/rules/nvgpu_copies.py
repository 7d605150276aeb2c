"""Copies in the background: `fuse.copy_tile` of a block, `nvgpu.device_async_copy` of a thread, and their groups.

Whoever reads the target before its group was waited for finds what was there before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.access import Access, lanewise
from mlirfuse.interpreter.lanes import expand
from mlirfuse.interpreter.machine import Frame
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site, gather

Step = Callable[[Frame], None]


@rule("fuse.copy_tile")
def _copy_tile(site: Site) -> Step:
    source, slot, *starts = site.operands
    axes, clipped = site.ints("axes"), site.ints("clipped")

    def step(frame: Frame) -> None:
        memref, target = frame.values[source], frame.values[slot]
        rank = len(target.shape)
        places = [np.arange(n).reshape([1] * (1 + d) + [n] + [1] * (rank - 1 - d)) for d, n in enumerate(target.shape)]
        indices = [expand(start, 1 + rank) for start in gather(frame.values, starts)]
        active = None
        for d, axis in enumerate(axes):
            indices[axis] = indices[axis] + places[d]
            if d in clipped:
                inside = indices[axis] < lanewise(memref.shape[axis], 1 + rank)
                active = inside if active is None else active & inside
        data = Access(site, frame, memref, indices, active).load()
        write = Access(site, frame, target, places)
        frame.block.copies.open.append(lambda: write.store(data))

    return step


@rule("nvgpu.device_async_copy")
def _device_async_copy(site: Site) -> Step:
    """Copies `dstElements` neighbours; of these only the first `srcElements` are read, the others become zero."""
    (target,), to, (source,), start, count = site.segments()
    width = site.integer("dstElements")
    assert width is not None
    along = np.arange(width)[None]

    def step(frame: Frame) -> None:
        values = frame.values
        read = None if not count else along < expand(values[count[0]], 2)
        loads = Access(site, frame, values[source], _row(gather(values, start), along), read)
        nbytes = width * values[source].dtype.itemsize
        if read is None:
            loads.require_aligned(nbytes)
        data = loads.load()
        write = Access(site, frame, values[target], _row(gather(values, to), along))
        write.require_aligned(nbytes)
        frame.block.copies.open.append(lambda: write.store(data))

    return step


def _row(starts: list[np.ndarray], along: np.ndarray) -> list[np.ndarray]:
    """Indices of elements that lie side by side in the last dimension."""
    indices = [expand(start, 2) for start in starts]
    return [*indices[:-1], indices[-1] + along]


@rule("nvgpu.device_async_create_group")
def _create_group(site: Site) -> Step:
    out = site.results[0]

    def step(frame: Frame) -> None:
        frame.block.copies.close()
        frame.values[out] = np.zeros(1, np.int32)  # a token: only the order of groups means something

    return step


@rule("nvgpu.device_async_wait")
def _wait(site: Site) -> Step:
    but = site.integer("numGroups") or 0

    def step(frame: Frame) -> None:
        frame.block.copies.wait(but)

    return step
