"""`fuse.async_load`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.machine import Frame
from mlirfuse.interpreter.memory import MemRef
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rings import AsyncLoad, StageKey
from mlirfuse.interpreter.rules.fuse_mbarriers import agreed, barrier_of, one_thread
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
        tile = _tile(frame.values[source], start, dims, target.shape[1:])
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


def _tile(source: MemRef, start: list[int], dims: list[int], shape: tuple[int, int]) -> np.ndarray:
    """The tile of a memref that begins at `start` and runs along `dims`; zero where out of bounds."""
    flat, inside = np.full(shape, source.offset, np.int64), np.full(shape, True)
    for d, (first, extent, stride) in enumerate(zip(start, source.shape, source.strides, strict=True)):
        index = np.array([[first]], np.int64)
        if d in dims:
            axis = dims.index(d)
            index = (first + np.arange(shape[axis])).reshape((-1, 1) if axis == 0 else (1, -1))
        inside = inside & (index >= 0) & (index < extent)
        flat = flat + index * stride
    tile = np.zeros(shape, source.dtype)
    tile[inside] = source.buffer.elements(source.dtype)[flat[inside]]
    return tile
