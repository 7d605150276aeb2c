"""Warpgroup multiplication and its wait, tiles in stages of a ring, warp roles, and barriers of warpgroups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from mlir import ir

from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.dialect.warp_roles import consumer_groups_of
from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.roles import run_concurrently
from mlirfuse.interpreter.rules.fuse_async_copies import stage_elements, stage_key
from mlirfuse.interpreter.rules.fuse_mbarriers import active_threads, agreed, consumer_group_of, warpgroups
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.shadow import SEVERAL
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.precision import truncated_to_tf32

ROWS = 64  # rows of the product in one instruction of a warpgroup


@suspending("fuse.warpgroup_mma")
def _warpgroup_mma(site: Site) -> Callable[[Frame], Coroutine]:
    a, b, stage, *accumulators = site.operands
    majors = [ir.StringAttr(site.op.attributes[name]).value for name in ("a_major", "b_major")]

    def step(frame: Frame) -> Coroutine:
        rings, number = frame.block.rings, agreed(site, frame, stage)
        memrefs = [frame.values[a], frame.values[b]]
        stages = tuple(stage_key(site, frame, ring, number) for ring in memrefs)
        if problem := rings.start_product(consumer_group_of(frame), stages):
            raise site.error(problem, frame)
        left, right = (_operand(site, frame, ring, number, major) for ring, major in zip(memrefs, majors, strict=True))
        product = _product(left, right)
        before = [rings.value(array) for array in gather(frame.values, accumulators)]
        after = _add(site, frame, before, product)
        for slot, value in zip(site.results, after, strict=True):
            frame.values[slot] = rings.defer(value)
        yield None

    return step


@suspending("fuse.warpgroup_wait")
def _warpgroup_wait(site: Site) -> Callable[[Frame], Coroutine]:
    """Completes all products but the last `pending`, and makes their results available."""
    pending = site.integer("pending") or 0

    def step(frame: Frame) -> Coroutine:
        rings, consumer_group = frame.block.rings, consumer_group_of(frame)
        rings.wait_products(consumer_group, pending)
        arrays = gather(frame.values, site.operands)
        for slot, array in zip(site.results, arrays, strict=True):
            frame.values[slot] = rings.completed_value(array)
        if not pending:
            rings.drop_placeholders(consumer_group)
        yield None

    return step


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two tiles along their last axes. Integers are multiplied as f64, which is exact for i8 and much
    faster: NumPy has a fast product of floats alone.
    """
    if left.dtype.kind == "f":
        return left @ right.T
    return (left.astype(np.float64) @ right.T.astype(np.float64)).astype(left.dtype)


def _operand(site: Site, frame: Frame, ring: MemRef, stage: int, major: str) -> np.ndarray:
    """A stage's data in the type of sums, with k as the last axis; data of f32 are truncated to tf32."""
    data = _stage_data(site, frame, ring, stage)
    tile = data.astype(np.int32 if data.dtype == np.int8 else np.float32)
    tile = truncated_to_tf32(tile) if ring.dtype == np.float32 else tile
    return tile if major == "k" else tile.T


def _stage_data(site: Site, frame: Frame, ring: MemRef, stage: int) -> np.ndarray:
    """The data of a stage; raises `InterpreterError` if the stage was not filled."""
    elements = stage_elements(ring, stage)
    shadow = ring.buffer.shadow
    if shadow is not None:
        violation = shadow.read(elements.ravel(), ring.dtype.itemsize, SEVERAL, frame.block)
        if violation is not None:
            raise site.error(f"stage {stage} of {ring.text}: {violation.kind} {violation.earlier}".rstrip(), frame)
    return ring.buffer.elements(ring.dtype)[elements]


def _add(site: Site, frame: Frame, accumulators: Sequence[np.ndarray], product: np.ndarray) -> list[np.ndarray]:
    """The accumulators after the product: one tile, or the pairs of each thread."""
    block = frame.block
    if block.threads == 1:
        return [accumulator + product.reshape(accumulator.shape[1:]) for accumulator in accumulators]
    threads, result = active_threads(frame), []
    places = _places(site, frame, len(accumulators), *product.shape)
    for accumulator, (row, column) in zip(accumulators, places, strict=True):
        total = np.array(np.broadcast_to(accumulator, (block.threads, 2)))
        total[threads] += product[row[:, None], column[:, None] + np.arange(2)]
        result.append(total)
    return result


def _places(site: Site, frame: Frame, count: int, rows: int, columns: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields rows and first columns by active thread, for each of a thread's pairs (PTX ISA, wgmma, fragments of D)."""
    tiles = count * 4 // columns
    groups = warpgroups(site, frame, rows // (ROWS * tiles))
    threads = active_threads(frame)
    group, warp, lane = threads // WARPGROUP % groups, threads % WARPGROUP // WARP, threads % WARP
    for i in range(count):
        tile, rest = divmod(i, columns // 4)
        column, half = divmod(rest, 2)
        row = (tile * groups + group) * ROWS + warp * 16 + half * 8 + lane // 4
        yield row, 8 * column + 2 * (lane % 4)


@suspending("fuse.stage_tile")
def _stage_tile(site: Site) -> Callable[[Frame], Coroutine]:
    ring, stage, *values = site.operands
    offset, transposed = site.integer("offset") or 0, is_transposed(site.op)

    def step(frame: Frame) -> Coroutine:
        memref, number, block = frame.values[ring], agreed(site, frame, stage), frame.block
        if problem := block.rings.stage(stage_key(site, frame, memref, number), block.clock):
            raise site.error(problem, frame)
        elements = stage_elements(memref, number)
        elements = elements.T if transposed else elements
        parts, data = gather(frame.values, values), memref.buffer.elements(memref.dtype)
        if block.threads == 1:
            width = elements.shape[1]
            data[elements] = parts[0].reshape(elements.shape[0], -1)[:, offset : offset + width]
        else:
            threads = active_threads(frame)
            for part, (row, column) in zip(parts, _places(site, frame, len(parts), *elements.shape), strict=True):
                pairs = np.broadcast_to(part, (block.threads, 2))[threads]
                data[elements[row[:, None], column[:, None] + np.arange(2)]] = pairs
        if memref.buffer.shadow is not None:
            memref.buffer.shadow.mark_written(elements.ravel(), memref.dtype.itemsize)
        yield None

    return step


@suspending("fuse.stage_columns")
def _stage_columns(site: Site) -> Callable[[Frame], Coroutine]:
    ring, stage, column, *values = site.operands
    transposed, width = is_transposed(site.op), site.integer("columns") or 0

    def step(frame: Frame) -> Coroutine:
        memref, number, first = frame.values[ring], agreed(site, frame, stage), agreed(site, frame, column)
        if problem := frame.block.rings.stage(stage_key(site, frame, memref, number), frame.block.clock):
            raise site.error(problem, frame)
        elements = stage_elements(memref, number)
        elements = elements.T if transposed else elements
        if first % width or not 0 <= first <= elements.shape[1] - width:
            raise site.error(f"{width} columns from {first} on are not in a stage of {memref.text}", frame)
        part, threads = elements[:, first : first + width], active_threads(frame)
        data, parts = memref.buffer.elements(memref.dtype), gather(frame.values, values)
        for value, (row, place) in zip(parts, _places(site, frame, len(parts), *part.shape), strict=True):
            pairs = np.broadcast_to(value, (frame.block.threads, 2))[threads]
            data[part[row[:, None], place[:, None] + np.arange(2)]] = pairs
        if memref.buffer.shadow is not None:
            memref.buffer.shadow.mark_written(part.ravel(), memref.dtype.itemsize)
        yield None

    return step


@suspending("fuse.staged_tile")
def _staged_tile(site: Site) -> Callable[[Frame], Coroutine]:
    ring, stage = site.operands
    offsets, transposed = site.ints("offsets"), is_transposed(site.op)
    column, columns = site.integer("first") or 0, site.integer("columns")
    window = slice(column, None if columns is None else column + columns)

    def step(frame: Frame) -> Coroutine:
        memref, first, block = frame.values[ring], agreed(site, frame, stage), frame.block
        parts = []
        for number in range(first, first + len(offsets)):
            if block.rings.is_loading(stage_key(site, frame, memref, number)):
                raise site.error("an asynchronous load into the stage is in flight, without a wait for it", frame)
            data = _stage_data(site, frame, memref, number)
            parts.append((data.T if transposed else data)[:, window])
        if block.threads == 1:
            shape = ir.VectorType(site.op.results[0].type).shape
            tile = np.empty(shape[-2:], memref.dtype)
            for offset, part in zip(offsets, parts, strict=True):
                tile[:, offset : offset + part.shape[1]] = part
            frame.values[site.results[0]] = tile.reshape(1, *shape)
        else:
            places = _places(site, frame, len(site.results), *parts[0].shape)
            threads = active_threads(frame)
            for slot, (row, column) in zip(site.results, places, strict=True):
                pairs = np.zeros((block.threads, 2), memref.dtype)
                pairs[threads] = parts[0][row[:, None], column[:, None] + np.arange(2)]
                frame.values[slot] = pairs
        yield None

    return step


@suspending("fuse.warp_roles")
def _warp_roles(site: Site) -> Callable[[Frame], Coroutine]:
    """At the tile level: runs the consumers' region for each consumer group, and the producer's, concurrently.

    Each region runs as one logical thread.
    """
    consumers, producer = site.region(0), site.region(1)

    def step(frame: Frame) -> Coroutine:
        consumer_groups = [frame.for_consumer_group(number) for number in range(consumer_groups_of(site.op))]
        for consumer_group in consumer_groups:
            for slot in consumers.arguments:
                consumer_group.values[slot] = np.array([consumer_group.consumer_group])
        roles = [*((consumers, consumer_group) for consumer_group in consumer_groups), (producer, frame.masked(None))]
        yield from run_concurrently(roles, frame.block.index)

    return step


@rule("fuse.elect_one")
def _elect_one(site: Site) -> Callable[[Frame], None]:
    (out,) = site.results

    def step(frame: Frame) -> None:
        threads = active_threads(frame)
        warps, counts = np.unique(threads // WARP, return_counts=True)
        if (counts != WARP).any() and frame.block.threads >= WARP:
            raise site.error("not all threads of the warp execute the op", frame)
        chosen = np.zeros(frame.block.threads, bool)
        chosen[warps * WARP] = True
        frame.values[out] = chosen

    return step


@rule("fuse.set_registers")
def _set_registers(site: Site) -> Callable[[Frame], None]:
    """Has no effect, as registers are not modelled; checks that whole warpgroups execute the op."""

    def step(frame: Frame) -> None:
        warpgroups(site, frame, len(active_threads(frame)) // WARPGROUP)

    return step


@suspending("fuse.group_barrier")
def _group_barrier(site: Site) -> Callable[[Frame], Coroutine]:
    """Orders the accesses of the whole block, which is exact if other warpgroups share no memory with the group."""
    expected = site.integer("warpgroups") or 0

    def step(frame: Frame) -> Coroutine:
        warpgroups(site, frame, expected)
        frame.block.advance()
        yield None

    return step
