"""Asynchronous copies: `fuse.copy_tile`, `fuse.copy_fragments`, `nvgpu.device_async_copy`, and their groups.

A copy takes effect when its group is waited for: an earlier read of the target gets the old contents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from mlirfuse.interpreter.access import Access, lanewise
from mlirfuse.interpreter.registry import rule
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.affine import plain_dims
from mlirfuse.interpreter.state.lanes import expand
from mlirfuse.interpreter.state.machine import Frame

Step = Callable[[Frame], None]


@rule("fuse.copy_tile")
def _copy_tile(site: Site) -> Step:
    source, slot, *starts = site.operands
    axes, clipped = site.ints("axes"), site.ints("clipped")

    def step(frame: Frame) -> None:
        memref, target = frame.values[source], frame.values[slot]
        rank = len(target.shape)
        offsets = _offsets(target.shape)
        indices = [expand(start, 1 + rank) for start in gather(frame.values, starts)]
        active = None
        for d, axis in enumerate(axes):
            indices[axis] = indices[axis] + offsets[d]
            if d in clipped:
                inside = indices[axis] < lanewise(memref.shape[axis], 1 + rank)
                active = inside if active is None else active & inside
        data = Access(site, frame, memref, indices, active).load()
        write = Access(site, frame, target, offsets)
        frame.block.copies.open.append(lambda: write.store(data))

    return step


@rule("fuse.copy_fragments")
def _copy_fragments(site: Site) -> Step:
    """In a tile program one logical thread copies for all threads, each of which reads only its own elements."""
    source, slot, *starts = site.operands
    tile = site.ints("tile")
    dims = plain_dims(ir.AffineMapAttr(site.op.attributes["permutation_map"]).value)
    clipped = [not ir.BoolAttr(b).value for b in ir.ArrayAttr(site.op.attributes["in_bounds"])]
    offsets = _offsets(tile)

    def step(frame: Frame) -> None:
        memref, target = frame.values[source], frame.values[slot]
        if any(n > extent for n, extent in zip(tile, target.shape, strict=True)):
            raise site.error(
                f"a slot of {target.shape} holds one block's part of {tuple(tile)}: run the gpu stage", frame
            )
        # Where the tile does not vary, every thread's copy is the same.
        to = _offsets([n if n > 1 else extent for n, extent in zip(tile, target.shape, strict=True)])
        indices = [expand(start, 1 + len(tile)) for start in gather(frame.values, starts)]
        active = np.ones((1,) * (1 + len(tile)), bool)
        for offset, dim, clip in zip(offsets, dims, clipped, strict=True):
            if dim is None:
                continue
            indices[dim] = indices[dim] + offset
            if clip:
                active = active & (indices[dim] < lanewise(memref.shape[dim], 1 + len(tile)))
        data = Access(site, frame, memref, indices, active).load(_undefined(memref.dtype))
        write = Access(site, frame, target, to)
        frame.block.copies.open.append(lambda: write.store(data))

    return step


def _offsets(extents: Sequence[Any]) -> list[np.ndarray]:
    """For each dimension an array of 0, 1, 2, ... along its axis, which follows the axis of threads."""
    rank = len(extents)
    return [np.arange(n).reshape([1] * (1 + d) + [n] + [1] * (rank - 1 - d)) for d, n in enumerate(extents)]


def _undefined(dtype: np.dtype) -> Any:
    """The value of an undefined element, chosen so that results that use the element are visibly wrong."""
    return np.iinfo(dtype).max if dtype.kind in "iu" else True if dtype.kind == "b" else np.nan


@rule("nvgpu.device_async_copy")
def _device_async_copy(site: Site) -> Step:
    """Copies `dstElements` neighbouring elements; only the first `srcElements` are read, the others become zero."""
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
    """Indices of neighbouring elements in the last dimension."""
    indices = [expand(start, 2) for start in starts]
    return [*indices[:-1], indices[-1] + along]


@rule("nvvm.cp.async.commit.group")
def _commit_group(site: Site) -> Step:
    def step(frame: Frame) -> None:
        frame.block.copies.close()

    return step


@rule("nvvm.cp.async.wait.group")
def _wait_group(site: Site) -> Step:
    pending = site.integer("n") or 0

    def step(frame: Frame) -> None:
        frame.block.copies.wait(pending)

    return step
