"""The schedules that keep rows in registers, and column tiles.

A softmax over the first dimension reads a column, which no warp reads alone without wasting most of each sector. Where
blocks hold narrow column tiles whole, memory is read once, and a sector's columns belong to one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.registers import MOST_ELEMENTS, registers_per_thread
from mlirfuse.schedule.model.residency import SHARED_RESERVE, allocated, registers_left, resident_blocks
from mlirfuse.schedule.model.shared_memory import exchange_bytes
from mlirfuse.schedule.orders.candidates import flat_schedules
from mlirfuse.schedule.predict.counts.space import element_bytes
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.layouts import (
    HALF_WARPS,
    MOST_HELD,
    Split,
    flat_bytes,
    has_costly_ends,
    row_schedule,
    spread_row,
    staged_bytes,
    unaligned_vector,
)
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import LINE, SECTOR, Target

FINER_VECTOR = 8
"""Elements of a vector that may be halved, and whose rows may be over half a warp, where rows then fill their threads:
rows that whole warps of whole vectors would pad."""

MOST_FINE = 40
"""Elements a thread of such rows, at most: with more registers run short, and padding is as fast."""

LONG_ROW, LONG_UNALIGNED_ROW = 12 * 1024, 8 * 1024
"""Bytes read of a row from which on registers are short, so that threads work depth-first; and of unaligned rows, whose
loads are under way early in either order."""

FEW_REGISTERS = 56
"""Registers that a thread needs for what it is computing: spilling beyond the rest of them saves none."""

FEW_SPARE = 3
"""Registers that an estimate leaves, up to which those of addresses are given up across the reductions."""

MORE_ROWS = (2, 4)
"""Rows of a thread, where a warp's lanes have a vector of one each, or of several: what all rows share is loaded and
computed once for all, and more loads are under way."""

FEWEST_LINES = 16
"""Cache lines of a row from which on shifting it to lines pays."""

MOST_FRAGMENTS = 32
"""Fragments a thread may hold of a persistent row: beyond it the unrolled code outgrows the instruction cache. Those of
flat tiles are single elements, each of less code."""

FEWEST_ELEMENTS = 16
"""Elements of a thread below which a tile has too few loads under way for its exchanges."""

COLUMN_WAYS = ((2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (8, 8), (16, 8), (32, 8))
"""Warps of a block and blocks of a cluster that has a tile of columns."""

COLUMN_VECTORS = (1, 2)
"""Parts of the widest access that threads of such a tile have, of 4 bytes or more: threads with fewer columns merge
fewer results, in more accesses."""


def row_candidates(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Persistent schedules with every split of a row over a cluster, warps and repeats that fits the registers."""
    for order in _orders(problem):
        for schedule in _spread(_row_of(problem), order, target):
            yield from fitted(schedule, problem, target)


def flat_rows(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Persistent rows of odd lengths in tiles that are runs of memory, as many as registers and shared memory hold."""
    for schedule in flat_schedules(problem):
        yield from fitted(schedule, problem, target)


def _orders(problem: Problem) -> tuple[str, ...]:
    """In which order threads may work: short rows depth-first only once the assembler has found registers short, and
    where what lives across a reduction is wider than what is read, so that breadth-first all of it is made at once.
    """
    long = LONG_UNALIGNED_ROW if unaligned_vector(problem) else LONG_ROW
    if problem.row_elements * problem.read_bytes > long:
        return ("depth",)
    widened = problem.live_bytes > problem.read_bytes
    return ("breadth", "depth") if widened and problem.register_scale > 1 else ("breadth",)


def _row_of(problem: Problem) -> Problem:
    """What the splits of a row depend on, of a problem: kernels that passes compare have much of it in common."""
    return Problem(
        problem.extents,
        problem.reduced,
        problem.vector_dim,
        problem.vector,
        problem.full_bytes,
        problem.read_bytes if problem.unaligned_vector else 0,
        column_bytes=problem.column_bytes if problem.unaligned_vector else 0,
        unaligned_vector=problem.unaligned_vector,
        line=problem.line,
        transposed=problem.transposed,
        arrays=tuple(problem.tables),
    )


@lru_cache(maxsize=32)
def _spread(problem: Problem, order: str, target: Target) -> tuple[Schedule, ...]:
    """A row that is split in all these ways, whatever registers its elements take."""
    found, cluster = list[Schedule](), 1
    while cluster <= target.max_cluster:
        seen: set[tuple[int, ...]] = set()
        for warps in range(1, target.max_threads_per_block // WARP + 1):
            for split in _splits(problem, warps, cluster):
                fill = spread_row(problem, split)
                if fill is None:
                    continue
                each = (split.vector, split.lanes, split.line, split.rows, split.along, *fill.repeats)
                if each in seen:  # more warps that have as much each only idle more
                    continue
                seen.add(each)
                schedule = row_schedule(problem, split, fill, order, target.max_threads_per_block)
                if check_schedule(schedule, problem.extents, problem.reduced, target):
                    continue
                fine = split.lanes < WARP or split.vector < problem.vector
                if not fine or _divides(schedule.layout, problem):
                    found.append(schedule)
        cluster *= 2
    return tuple(found)


def _splits(problem: Problem, warps: int, cluster: int) -> Iterator[Split]:
    """Ways to split a row over warps and blocks that are worth a try."""
    unaligned = unaligned_vector(problem)
    vector = unaligned or problem.vector
    yield Split(warps, cluster, vector)
    for rows in _neighbouring_rows(problem):
        yield Split(warps, cluster, vector, lanes=WARP // rows)
    if warps == cluster == 1 and not unaligned and problem.row_elements <= WARP * vector:
        for along in (*_sharing(problem), -1):
            for rows in MORE_ROWS:
                yield Split(warps, cluster, vector, rows=rows, along=along)
    if problem.line and problem.row_elements >= FEWEST_LINES * problem.line:
        yield Split(warps, cluster, vector, line=problem.line)
    if unaligned or cluster > 1 or problem.vector < FINER_VECTOR:
        return
    yield Split(warps, cluster, vector // 2)
    if warps in HALF_WARPS:
        yield Split(warps, cluster, vector, lanes=WARP // 2)
        yield Split(warps, cluster, vector // 2, lanes=WARP // 2)


def _sharing(problem: Problem) -> Iterator[int]:
    """Which of the dimensions that are not reduced, but for the last one, have rows with a table in common."""
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    return (number for number, d in enumerate(outer[:-1]) if d in problem.sharing_dims)


def _neighbouring_rows(problem: Problem) -> Iterator[int]:
    """Rows that the lanes of a warp have each an element of, so that arrays which are contiguous along the rows'
    numbers, such as a transposed result, are accessed in whole sectors.
    """
    transposed = problem.transposed
    outer = [d for d in range(problem.rank) if d not in problem.reduced]
    if transposed is None or not outer or transposed.dim != outer[-1]:
        return
    rows = max(2, SECTOR // transposed.narrowest)
    while rows <= WARP:
        yield rows
        rows *= 2


def _divides(layout: BlockedLayout, problem: Problem) -> bool:
    """Whether a layout finer than whole vectors over whole warps leaves no padding, in few elements a thread."""
    fits = all(layout.extents[d] == problem.extents[d] for d in problem.reduced)
    return fits and layout.elements_per_thread <= MOST_FINE


def fitted(schedule: Schedule, problem: Problem, target: Target) -> Iterator[Schedule]:
    """The schedule with as few fragments spilled to shared memory as each number of resident blocks needs."""
    layout = schedule.layout
    fragments, width = prod(layout.repeats), max(layout.vector)
    # Less than a register is not worth an access of shared memory.
    spills = schedule.order == "depth" and width * problem.live_bytes >= REGISTER_BYTES
    # Fragments that several loads make are spilled to shared memory in program order, which loses more than shifted
    # rows gain.
    spills = spills and not (layout.is_shifted_to_lines and problem.early_column_bytes)
    most = fragments - 1 if spills else 0
    slot = layout.threads * width * problem.shared_spill_bytes
    staged = flat_bytes(problem, layout) if schedule.flat else staged_bytes(problem, layout)
    # Each reduction has an exchange of its own between warps, and between blocks.
    exchange = max(SHARED_RESERVE, sum(n for part in problem.reductions for n in exchange_bytes(part, layout)))
    most_held = MOST_HELD if has_costly_ends(layout) else MOST_ELEMENTS
    most_fragments = MOST_ELEMENTS if schedule.flat else MOST_FRAGMENTS
    reached = 0
    for shared_spill in range(most + 1 if fragments <= most_fragments else 0):
        shared = shared_spill * slot + staged + exchange
        needed = registers_per_thread(problem, layout, schedule.order, shared_spill)
        registers = allocated(needed)
        blocks = min(resident_blocks(layout.threads, registers, target), target.shared_per_sm // shared)
        held = layout.elements_per_thread - shared_spill * width
        if shared > target.shared_per_block or held > most_held or blocks <= reached:
            continue
        if shared_spill and registers <= FEW_REGISTERS:
            break
        reached = blocks
        # ptxas must know how many blocks are meant to be resident: alone, it saves registers where loads should
        # overlap, and spends them where another block would fit.
        spare = registers_left(layout.threads, blocks, target) - needed
        yield replace(
            schedule,
            blocks_per_sm=blocks,
            shared_spill=shared_spill,
            in_order=_keeps_order(problem, layout, shared_spill),
            rematerialize_addresses=_is_short(schedule, shared_spill, spare),
        )


def _is_short(schedule: Schedule, shared_spill: int, spare: int) -> bool:
    """Whether a kernel has no registers for addresses that wait for the reductions; `spare` are left by the estimate.

    Where part of a row is spilled to shared memory, registers are full by choice: ptxas keeps what the first and the
    last addresses share, and spills just that. Breadth-first only the places of unaligned rows are too many. In
    unaligned rows that are worked on depth-first other values would spill.
    """
    tight = spare <= FEW_SPARE
    if any(schedule.layout.anywhere) and not schedule.layout.is_shifted_to_lines:
        return schedule.layout.is_shifted and schedule.order == "breadth" and tight
    return shared_spill > 0 or (schedule.order == "depth" and tight)


def _keeps_order(problem: Problem, layout: BlockedLayout, shared_spill: int) -> bool:
    """Whether fragments that are spilled to shared memory are loaded and stored in program order.

    The order pays where fragments are computed from several loads, so that ptxas, left alone, is short of registers.
    Elsewhere it keeps loads from being under way early.
    """
    return bool(shared_spill and problem.early_column_bytes) and not any(layout.anywhere)


def column_tile_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """Column tiles in registers; none where no cluster holds one, or nothing is needed again."""
    if problem.vector_dim in problem.reduced or not problem.live_bytes:
        return
    if any(problem.extents[d] is None for d in problem.reduced):
        return
    narrowest = min((a.bytes for a in problem.arrays if problem.vector_dim in a.dims), default=element_bytes(problem))
    widths = [w for part in COLUMN_VECTORS if (w := problem.vector // part) * narrowest >= REGISTER_BYTES]
    # Rows of a tile are two sectors of the narrowest array or more, as device memory has them together.
    for vector, nbytes in product(widths or (problem.vector,), (2 * SECTOR, LINE)):
        across = max(1, nbytes // narrowest // vector)
        for warps, cluster in COLUMN_WAYS:
            split = Split(warps, cluster, vector, across=across)
            fill = spread_row(problem, split)
            if cluster > target.max_cluster or fill is None:
                continue
            schedule = row_schedule(problem, split, fill, "depth", target.max_threads_per_block)
            # Half of the elements may be spilled to shared memory.
            if FEWEST_ELEMENTS <= schedule.layout.elements_per_thread <= 2 * MOST_ELEMENTS:
                yield from fitted(schedule, problem, target)
