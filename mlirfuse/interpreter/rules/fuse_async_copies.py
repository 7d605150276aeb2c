"""`fuse.async_load`, `fuse.async_store` and its wait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.dialect.async_load import TF32, peers_of, rows_of
from mlirfuse.interpreter.access import require_waited
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rules.fuse_mbarriers import (
    active_threads,
    agreed,
    barrier_of,
    consumer_group_of,
    one_thread,
    peer_blocks,
    peer_memref,
)
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.rings import AsyncLoad, StageKey
from mlirfuse.support.precision import to_tf32


def stage_key(site: Site, frame: Frame, ring: MemRef, stage: int) -> StageKey:
    """The identity of a stage; raises `InterpreterError` for a stage number out of range."""
    if not 0 <= stage < ring.shape[0]:
        raise site.error(f"stage {stage} is outside of the ring, which has {ring.shape[0]} stages", frame)
    return id(ring.buffer), int(stage_elements(ring, stage)[0, 0]) * ring.dtype.itemsize


def stage_elements(ring: MemRef, stage: int) -> np.ndarray:
    """Numbers of a stage's elements in its buffer, shaped as its tile; the swizzle is not modelled."""
    _, rows, columns = map(int, ring.shape)
    first = int(ring.offset) + stage * rows * columns
    return np.arange(first, first + rows * columns).reshape(rows, columns)


@suspending("fuse.async_load")
def _async_load(site: Site) -> Callable[[Frame], Coroutine]:
    source, ring, stage, barriers, *indices = site.operands
    dims, peers, copied = site.ints("dims"), peers_of(site.op), rows_of(site.op)

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        require_waited(site, frame, frame.values[source])
        own, number = frame.values[ring], agreed(site, frame, stage)
        blocks = peer_blocks(site, frame, peers)
        start = [agreed(site, frame, index) for index in indices]
        flat, inside = _tile_elements(frame.values[source], start, dims, own.shape[1:])
        part = slice(None)
        if len(blocks) > 1:
            rows = own.shape[1] // peers
            part = slice(frame.block.rank * rows, (frame.block.rank + 1) * rows)
        tile = _read(frame.values[source], flat[part], inside[part])
        if TF32 in site.op.attributes:
            tile = to_tf32(tile, ties="even")
        # These rows of the stage become undefined.
        tile[copied:] = np.iinfo(tile.dtype).max if tile.dtype.kind == "i" else np.nan
        for block in blocks:
            target = peer_memref(site, frame, own, block)
            key, elements = stage_key(site, frame, target, number), stage_elements(target, number)[part]
            load = _land_in(target, key, elements, tile, copied)
            barrier = barrier_of(site, frame, barriers, stage, block)
            if problem := block.rings.load(barrier, load, shared=len(blocks) > 1):
                raise site.error(problem, frame)
        yield None

    return step


def _read(source: MemRef, flat: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Elements of a memref; zero where they are out of bounds."""
    tile = np.zeros(inside.shape, source.dtype)
    tile[inside] = source.buffer.elements(source.dtype)[flat[inside]]
    return tile


def _land_in(target: MemRef, key: StageKey, elements: np.ndarray, tile: np.ndarray, copied: int) -> AsyncLoad:
    """The load of a tile into elements of a ring; only the bytes of the first `copied` rows are counted."""

    def land() -> None:
        target.buffer.elements(target.dtype)[elements] = tile
        if target.buffer.shadow is not None:
            target.buffer.shadow.mark_written(elements.ravel(), target.dtype.itemsize)

    return AsyncLoad(key, tile[:copied].size * target.dtype.itemsize, land)


@suspending("fuse.async_store")
def _async_store(site: Site) -> Callable[[Frame], Coroutine]:
    """Copies the data at once, and counts the stage as read until the wait."""
    target, ring, stage, *indices = site.operands
    dims = site.ints("dims")

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        source, number, block = frame.values[ring], agreed(site, frame, stage), frame.block
        if problem := block.rings.start_store(
            consumer_group_of(frame), stage_key(site, frame, source, number), block.clock
        ):
            raise site.error(problem, frame)
        memref = frame.values[target]
        require_waited(site, frame, memref)
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
        frame.block.rings.wait_stores(consumer_group_of(frame), pending)
        yield None

    return step


def _tile_elements(
    memref: MemRef, start: list[int], dims: list[int], shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Element numbers of a memref's tile, and whether each is in bounds; the tile begins at `start`, along `dims`."""
    flat, inside = np.full(shape, memref.offset, np.int64), np.full(shape, True)
    for d, (first, extent, stride) in enumerate(zip(start, memref.shape, memref.strides, strict=True)):
        index = np.array([[first]], np.int64)
        if d in dims:
            axis = dims.index(d)
            index = (first + np.arange(shape[axis])).reshape((-1, 1) if axis == 0 else (1, -1))
        inside = inside & (index >= 0) & (index < extent)
        flat = flat + index * stride
    return flat, inside
