"""`fuse.async_load`, `fuse.async_store` and its wait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.machine import Frame
from mlirfuse.interpreter.memory import MemRef
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rings import AsyncLoad, StageKey
from mlirfuse.interpreter.rules.fuse_mbarriers import active_threads, agreed, barrier_of, one_thread
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site


def stage_key(site: Site, frame: Frame, ring: MemRef, stage: int) -> StageKey:
    """The identity of a stage; raises `InterpreterError` for one that the ring does not have."""
    if not 0 <= stage < ring.shape[0]:
        raise site.error(f"stage {stage} of a ring of {ring.shape[0]}", frame)
    return id(ring.buffer), stage


def stage_elements(ring: MemRef, stage: int) -> np.ndarray:
    """Numbers of a stage's elements in its buffer, shaped as its tile; the swizzle is not modelled."""
    _, rows, columns = map(int, ring.shape)
    first = int(ring.offset) + stage * rows * columns
    return np.arange(first, first + rows * columns).reshape(rows, columns)


@suspending("fuse.async_load")
def _async_load(site: Site) -> Callable[[Frame], Coroutine]:
    source, ring, stage, barriers, *indices = site.operands
    dims = site.ints("dims")

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        target, number = frame.values[ring], agreed(site, frame, stage)
        key = stage_key(site, frame, target, number)
        start = [agreed(site, frame, index) for index in indices]
        origin = frame.values[source]
        flat, inside = _tile_elements(origin, start, dims, target.shape[1:])
        tile = np.zeros(inside.shape, origin.dtype)
        tile[inside] = origin.buffer.elements(origin.dtype)[flat[inside]]
        elements = stage_elements(target, number).ravel()

        def land() -> None:
            target.buffer.elements(target.dtype)[elements] = tile.ravel()
            if target.buffer.shadow is not None:
                target.buffer.shadow.mark_written(elements, target.dtype.itemsize)

        load = AsyncLoad(key, tile.size * target.dtype.itemsize, land)
        if problem := frame.block.rings.load(barrier_of(site, frame, barriers, stage), load):
            raise site.error(problem, frame)
        yield None

    return step


@suspending("fuse.async_store")
def _async_store(site: Site) -> Callable[[Frame], Coroutine]:
    """The data leave at once; the stage counts as being read until the wait."""
    target, ring, stage, *indices = site.operands
    dims = site.ints("dims")

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        source, number, block = frame.values[ring], agreed(site, frame, stage), frame.block
        if problem := block.rings.start_store(stage_key(site, frame, source, number), block.clock):
            raise site.error(problem, frame)
        memref = frame.values[target]
        flat, inside = _tile_elements(memref, [agreed(site, frame, i) for i in indices], dims, source.shape[1:])
        elements, size = flat[inside], memref.dtype.itemsize
        if memref.buffer.shadow is not None and elements.size:
            thread = int(active_threads(frame)[0])
            violation = memref.buffer.shadow.write(elements, size, thread, block)
            if violation is not None:
                raise site.error(f"{memref.text}: {violation.kind} with a {violation.earlier}", frame)
        tile = source.buffer.elements(source.dtype)[stage_elements(source, number)]
        memref.buffer.elements(memref.dtype)[elements] = tile[inside]
        yield None

    return step


@suspending("fuse.async_store_wait")
def _async_store_wait(site: Site) -> Callable[[Frame], Coroutine]:
    pending = site.integer("pending") or 0

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        frame.block.rings.wait_stores(pending)
        yield None

    return step


def _tile_elements(
    memref: MemRef, start: list[int], dims: list[int], shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Element numbers of the tile of a memref that begins at `start` and runs along `dims`, and which are in bounds."""
    flat, inside = np.full(shape, memref.offset, np.int64), np.full(shape, True)
    for d, (first, extent, stride) in enumerate(zip(start, memref.shape, memref.strides, strict=True)):
        index = np.array([[first]], np.int64)
        if d in dims:
            axis = dims.index(d)
            index = (first + np.arange(shape[axis])).reshape((-1, 1) if axis == 0 else (1, -1))
        inside = inside & (index >= 0) & (index < extent)
        flat = flat + index * stride
    return flat, inside
