"""Sectors, cache lines and instructions of accesses, counted from the addresses of a warp, and what caches keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import BANK, BANKS_BYTES, STORED_RUNS_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.parts.array_access import ArrayAccess, bytes_of, follows, split_sectors
from mlirfuse.schedule.predict.counts.space import tiles, wastes
from mlirfuse.schedule.predict.work import Device, Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

WORKING_SET = 0.7
"""Share of a cache that what is read again may take."""

LOST = 0.5
"""Share of what a block reads again that the L1 has lost even where it had room: what streams through displaces it."""

PART_READS = 0.15
"""What the L2 takes more for each line beyond the fewest that an access of a warp to a window touches
(`benchmarks/results/depthwise_candidates-h200.json`)."""

SPLIT_SECTOR, SPLIT_KEPT = 448, 0.5
"""Bytes of device memory that a sector takes as long as which is written in two parts at different times, as it is read
for each; and the share of the L2 behind which the first part is gone (`benchmarks/results/grid_orders-h200.json`)."""


@dataclass(frozen=True)
class Traffic:
    """What the accesses to one array, or to several, move and take.

    Attributes:
        read: bytes of sectors that SMs read from the L2.
        written: bytes of sectors that they write.
        l1: bytes of the lines that warps touch, one instruction at a time.
        shared: bytes of accesses to shared memory, likewise.
        instructions: of warps, that access memory.
    """

    read: float = 0.0
    written: float = 0.0
    l1: float = 0.0
    shared: float = 0.0
    instructions: float = 0.0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read + other.read,
            self.written + other.written,
            self.l1 + other.l1,
            self.shared + other.shared,
            self.instructions + other.instructions,
        )


def traffic(schedule: Schedule, arrays: Sequence[ArrayAccess], extents: tuple[int, ...], device: Device) -> Traffic:
    """The accesses of a whole grid, one block a tile.

    Of arrays that are broadcast, such as weights, an SM's blocks read the same elements: from its L1, where all of
    these fit.
    """
    blocks = tiles(extents, schedule.tile, range(len(extents)))
    sms = min(blocks, device.machine.sms)
    read = written = l1 = shared = instructions = again = 0.0
    operands = 0.0
    for array in arrays:
        layout = layout_of(schedule, array)
        moved = _of_block(array, layout, schedule.layout, schedule.tile, schedule.flat, extents, blocks)
        own, of_blocks = _bytes(array, extents) * array.inside, moved.read * array.inside
        if not array.written and of_blocks > own * sms:
            again += of_blocks - own * sms
            operands += own
            of_blocks = own * sms
        read += of_blocks
        written += moved.written
        l1 += moved.l1 * array.inside
        shared += moved.shared
        instructions += moved.instructions
    read += again * missing(operands, device.target.shared_per_sm)
    return Traffic(read, written, l1, shared, instructions)


@lru_cache(maxsize=1024)
def _bytes(array: ArrayAccess, extents: tuple[int, ...]) -> int:
    """Bytes that a space reads or writes of an array."""
    return array.bytes * array.elements(extents)


def add_strided(
    work: Work,
    schedule: Schedule,
    problem: Problem,
    extents: tuple[int, ...],
    reads: float = 1.0,
    passes: float = 1.0,
) -> float:
    """Adds what accesses to arrays of the whole space take more that are not contiguous along the layout's vectors than
    others take, as which they were counted.

    Args:
        work: what it is added to.
        schedule: whose layout reaches all elements once, in one tile or in chunks.
        problem: the kernel.
        extents: of the iteration space.
        reads: times that what is read comes from the L2.
        passes: times that it is read.

    Returns:
        Accesses of all threads, beyond those of whole vectors.
    """
    blocks = tiles(extents, schedule.tile, range(len(extents))) * schedule.layout.cluster
    elements, instructions = prod(extents), 0.0
    _, _, lines = wastes(schedule, problem, extents)
    whole = elements / max(schedule.layout.vector) / WARP
    # Of views of joined arrays threads read elements inside of their parts alone.
    inside = min(1.0, problem.full_bytes / max(1, sum(array.bytes for array in problem.whole_arrays)))
    for array in strided_arrays(problem):
        layout, own = schedule.layout, elements * array.bytes
        moved = _of_block(array, layout, layout, schedule.tile, schedule.flat, extents, blocks)
        if not array.written:
            work.l2_read += max(0.0, moved.read / schedule.layout.cluster - own) * inside * reads
        work.l2_written += max(0.0, moved.written - own)
        work.l1 += (moved.l1 - own * lines) * inside * (1.0 if array.written else passes)
        instructions += max(0.0, moved.instructions - whole)
    return instructions * WARP * passes


def add_tables(work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], device: Device) -> None:
    """Adds what SMs read from the L2 of arrays that some rows share, which each block reads once.

    Others write what rows become meanwhile, as while halos of stencils are read (`Work.l2_again`).
    """
    moved = traffic(schedule, problem.tables, extents, device)
    first = min(moved.read, sum(_bytes(table, extents) for table in problem.tables))
    work.l2_read += first
    work.l2_again += moved.read - first


@lru_cache(maxsize=64)
def strided_arrays(problem: Problem) -> list[ArrayAccess]:
    """The arrays of the whole space whose neighbours in memory are not those along the layout's vectors."""
    whole, arrays = problem.whole, problem.whole_arrays
    return [array for array in arrays if next((d for d in array.order if d in whole), None) != problem.vector_dim]


def layout_of(schedule: Schedule, array: ArrayAccess) -> BlockedLayout:
    """The layout in which a schedule accesses an array."""
    staged = schedule.transposed
    varies = {d for d, side in enumerate(schedule.tile) if side > 1}
    if schedule.flat and array.is_contiguous and varies <= set(array.dims):
        return _run_layout(schedule.layout, WIDEST_ACCESS // array.bytes)
    return staged.layout if staged is not None and staged.takes(array.order, schedule.tile) else schedule.layout


def _run_layout(layout: BlockedLayout, vector: int) -> BlockedLayout:
    """How a block's threads move as many elements of one run of memory as a layout has."""
    ones, warps = (1,) * (layout.rank - 1), layout.threads // WARP
    repeats = -(-prod(layout.extents) // (vector * layout.threads))
    factors = ((*ones, n) for n in (vector, WARP, warps, repeats, 1))
    return BlockedLayout(*factors)


@lru_cache(maxsize=4096)  # windows are many equal arrays, and loops with several second stages have one layout
def _of_block(
    array: ArrayAccess,
    layout: BlockedLayout,
    tiled: BlockedLayout,
    tile: tuple[int, ...],
    flat: bool,
    extents: tuple[int, ...],
    blocks: int,
) -> Traffic:
    """One array's share, which is accessed in a layout, by blocks whose tiles have the same or another one."""
    steps = array.steps(extents)
    is_flat = flat and layout != tiled
    width = max(layout.vector) if is_flat else thread_access(array, layout, extents)
    lanes = tuple(
        (layout.lanes[d], steps.get(d, 0) * layout.step(d) * array.bytes)
        for d in reversed(range(layout.rank))
        if layout.lanes[d] > 1
    )
    sectors, lines = touched(lanes, width * array.bytes)
    held = held_elements(array, layout)
    warps = layout.threads // WARP
    each = held / width * warps * blocks
    covered = array.elements(tile) * blocks * array.bytes
    run = array.run(tile, extents) * array.bytes
    inside = prod(min(extents[d], tile[d]) / tile[d] for d in array.dims)
    shared = 0.0
    if layout != tiled:
        apart = tile[-1] * array.bytes if is_flat else 0
        shared = _through_shared(layout, tiled, array, apart) * warps * blocks
    # Elements of flat tiles are accessed one by one on the other side of shared memory.
    issued = each + (held_elements(array, tiled) * warps * blocks if is_flat else 0)
    if array.written:
        run = width if is_flat else _run(array, layout, extents)
        # Pieces of vectors that reach past the end of rows are stored under conditions, not one right after the other.
        straddles = any(extents[d] % layout.vector[d] for d in array.dims)
        if run > width and not straddles and _is_exchanged(lanes, run * array.bytes, layout.threads):
            moved = each * width * array.bytes * WARP
            issued = 2 * issued + moved / (WARP * WIDEST_ACCESS)
            return Traffic(written=moved * inside, l1=moved, shared=shared + 2 * moved, instructions=issued)
        # Parts of a sector that different instructions write go to the L2 one by one.
        return Traffic(
            written=each * sectors * SECTOR * inside, l1=each * lines * LINE, shared=shared, instructions=issued
        )
    # The L1 has the rest of a sector for later instructions of the block: what is left is the ends of runs.
    waste = (-(-run // SECTOR) * SECTOR + (0 if run % SECTOR == 0 else SECTOR / 2)) / run
    inner = array.order[0] if array.order else None
    slides = any(steps[d] == 1 for _, d in array.pairs)
    if (
        inner is not None and steps[inner] > array.density(inner) and not slides
    ):  # a row's elements lie apart, several in a sector
        count = min(tile[inner], extents[inner])
        waste = (SECTOR / 2 + ((count - 1) * steps[inner] + 1) * array.bytes) / (count * array.bytes)
    waste = max(1.0, min(waste, SECTOR / array.bytes))
    if array.windows:
        waste *= 1.0 + PART_READS * max(0.0, lines * LINE / (WARP * width * array.bytes) - 1.0)
    return Traffic(read=covered * inside * waste, l1=each * lines * LINE, shared=shared, instructions=issued)


def _is_exchanged(lanes: tuple[tuple[int, int], ...], run: int, threads: int) -> bool:
    """Whether threads' runs, of so many bytes, lie lane beside lane: warps store whole lines, through shared memory."""
    return lanes == ((WARP, run),) and threads * run <= STORED_RUNS_BYTES


@lru_cache(maxsize=4096)  # as many predictions and proposals ask for the same
def held_elements(array: ArrayAccess, layout: BlockedLayout) -> int:
    """Elements that a thread accesses: of windows, those of neighbouring elements of the space together; of several
    views, those of each.
    """
    pieces = [1 if layout.is_alone([d]) else layout.fragments(d) // layout.neighbours(d) for d in range(layout.rank)]
    sides = [layout.fragments(d) // pieces[d] * layout.vector[d] for d in range(layout.rank)]
    along = (*array.dims, *(slide for _, slide in array.pairs))
    return array.times * array.elements(sides) * prod(pieces[d] for d in along)


def held_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of a thread for all that it reads in a step, as narrow as it is read; of windows together."""
    return sum(array.bytes * held_elements(array, layout) for array in problem.reads)


@lru_cache(maxsize=4096)
def thread_access(array: ArrayAccess, layout: BlockedLayout, extents: tuple[int, ...]) -> int:
    """Elements of one access to what a thread has side by side in memory."""
    run = _run(array, layout, extents)
    aligned = gcd(WIDEST_ACCESS, array.alignment)
    for stride in array.strides:
        if stride is not None and stride >= run:
            aligned = gcd(aligned, stride * array.bytes)
    return max(1, gcd(aligned, run * array.bytes) // array.bytes)


def _run(array: ArrayAccess, layout: BlockedLayout, extents: Sequence[int]) -> int:
    """Elements that a thread accesses side by side in memory: a vector, or what it has of whole dimensions, or a run
    that it reads of an array without windows.
    """
    run, steps = 1, array.steps(extents)
    for d in array.order:
        if steps[d] != run * array.density(d):
            break
        alone = layout.lanes[d] * layout.warps[d] * layout.blocks[d] == 1
        if not alone or layout.extents[d] != extents[d]:
            return run * array.density(d) * (layout.vector[d] if array.written or array.windows else layout.step(d))
        run *= array.together(d, extents[d])
    return run


@lru_cache(maxsize=4096)
def touched(lanes: tuple[tuple[int, int], ...], width: int) -> tuple[int, int]:
    """Sectors and lines of one access of a warp.

    Args:
        lanes: how many lie along each dimension, and bytes from one to the next.
        width: bytes of a lane's access.
    """
    addresses = [0]
    for count, step in lanes:
        addresses = [address + lane * step for lane in range(count) for address in addresses]
    sectors = {part for a in addresses for part in range(a // SECTOR, (a + width - 1) // SECTOR + 1)}
    return len(sectors), len({sector * SECTOR // LINE for sector in sectors})


def _through_shared(one: BlockedLayout, other: BlockedLayout, array: ArrayAccess, apart: int) -> float:
    """Bytes of a warp's accesses to shared memory between two layouts, of which one has vectors along its rows; in the
    other one lanes are so many bytes apart, if they are in rows that are not padded.
    """
    inner = max(d for d, extent in enumerate(one.extents) if extent > 1)
    total = 0.0
    for layout, conflicts in ((one, 1), (other, bank_conflicts(apart))):
        held = layout.held(array.dims)
        width = layout.vector[inner]
        total += held / width * max(conflicts * LINE, width * array.bytes * WARP)
    return total


@lru_cache(maxsize=256)
def bank_conflicts(apart: int) -> int:
    """Words of the bank of shared memory that a warp asks most of, whose lanes are so many bytes apart."""
    words = {lane * apart // BANK for lane in range(WARP)}
    return max(Counter(word % (BANKS_BYTES // BANK) for word in words).values())


def columns_traffic(work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], device: Device) -> None:
    """Adds it to the work of a kernel whose tiles each read these operands once."""
    rows = prod(
        [extents[d] / min(schedule.tile[d], extents[d]) for d in range(len(extents)) if d not in problem.reduced]
    )
    operands = problem.row_elements * problem.column_bytes
    every = rows * operands
    first = min(every, operands * min(work.blocks, device.machine.sms))
    missed = missing(operands / work.cluster, device.target.shared_per_sm)
    work.l2_read += first + (every - first) * missed
    work.l1 += every


def split_bytes(schedule: Schedule, problem: Problem, extents: tuple[int, ...], device: Device) -> float:
    """What writing sectors part by part takes of device memory more, in bytes: where so much else moves from one block
    to its neighbour's that the L2 has let go of the first part.
    """
    order, total = schedule.grid_order or tuple(range(problem.rank)), 0.0
    for array in problem.writes:
        if (split := split_sectors(array, schedule.tile, extents)) is not None:
            dim, count = split
            between = tiles(extents, schedule.tile, follows(order, dim)) - 1
            moved = between * bytes_of(problem.arrays, schedule.tile)
            total += SPLIT_SECTOR * count * min(1.0, moved / (SPLIT_KEPT * device.machine.l2_bytes))
    return total


def missing(nbytes: float, cache: float) -> float:
    """Share of reads that miss a cache, where so many bytes are read in turn, again and again.

    Args:
        nbytes: that are read.
        cache: bytes of the cache; of an SM's L1, which shares its memory with shared memory, that memory's.
    """
    return min(1.0, max(0.0, nbytes / (WORKING_SET * cache) - 1.0))
