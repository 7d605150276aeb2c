"""The work of blocks that loop over what is reduced, once for every reduction, and keep it nowhere or on chip; of rows,
and of results of arrays of which none varies along the whole space, such as pairs of rows: those of a thread's register
tile share what it reads.
"""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.loops import steps_at_once
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.parts.array_access import ArrayAccess, bytes_of
from mlirfuse.schedule.predict.counts.accesses import (
    LOST,
    add_strided,
    columns_traffic,
    held_elements,
    missing,
    thread_access,
    traffic,
)
from mlirfuse.schedule.predict.counts.instructions import (
    ACCESS_INSTRUCTIONS,
    SPECIAL_INSTRUCTIONS,
    THREAD_INSTRUCTIONS,
    add_elements,
    add_exchanges,
    add_repeated,
    add_shared_elements,
    exchanges,
    own_waits,
)
from mlirfuse.schedule.predict.counts.space import (
    BASE_REGISTERS,
    accesses,
    arrays,
    element_bytes,
    held_registers,
    known_extents,
    tiles,
    wastes,
)
from mlirfuse.schedule.predict.counts.windows import moved_bytes, unevenness
from mlirfuse.schedule.predict.work import DEPENDENT_CYCLES, Device, Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def chunk_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """Rows in chunks: `multi_pass` reads each again for every further reduction, and for what is written after them."""
    layout, extents = schedule.layout, known_extents(problem)
    total = prod(extents)
    outer = [d for d in range(len(extents)) if d not in problem.reduced]
    clusters = tiles(extents, schedule.tile, outer)
    steps = tiles(extents, schedule.tile, problem.reduced)
    covered = clusters * steps * prod(layout.extents)
    each, width = element_bytes(problem), max(layout.vector)
    read, written = total * problem.read_bytes, total * (problem.full_bytes - problem.read_bytes)
    # Joint reductions, such as a mean with a variance, are taken apart where rows are read again.
    joint = sum(part.bytes > REGISTER_BYTES for part in problem.reductions)
    reductions = max(1, problem.dependent_reductions) + joint
    on_chip = schedule.persistence == "shared"
    costly = _has_costly_steps(problem)
    # Another pass for results that one which reduces writes, or that are as dear as that.
    like_another = problem.stores_early and (on_chip or costly)
    again = reductions - 1 + (problem.stores_last or like_another)
    row = prod([min(schedule.tile[d], extents[d]) for d in outer]) * problem.row_elements * problem.read_bytes
    carried = layout.held(outer)  # a partial result each
    reads, writes = arrays(problem)
    step = (problem.instructions + ACCESS_INSTRUCTIONS * accesses(reads, width)) * layout.elements_per_thread
    at_once = min(steps, steps_at_once(layout.elements_per_thread / width, step))
    loading = (at_once - 1) * layout.elements_per_thread * problem.read_bytes / REGISTER_BYTES
    needed = registers or held_registers(schedule, problem) + carried + round(loading)
    resident = device.resident(layout.threads, needed, row // layout.cluster if on_chip else 0)
    work = device.work(layout, clusters, resident)
    work.written = written
    # What is read again comes from where there is room for all rows in work.
    busy = min(work.blocks, resident * work.sms)
    on_sm = -(-busy // work.sms) * row / layout.cluster + problem.row_elements * problem.column_bytes / layout.cluster
    far = 0.0 if on_chip else max(LOST, missing(on_sm, device.target.shared_per_sm))
    farther = far * missing(busy / layout.cluster * row, device.machine.l2_bytes)
    work.read = read * (1 + again * farther)
    sectors, sectors_written, lines = wastes(schedule, problem, extents)
    work.l2_read = read * sectors * (1 + again * far)
    work.l2_written = written * sectors_written
    work.l1 = (read * (1 + again) + written) * lines
    if problem.column_bytes:
        columns_traffic(work, schedule, problem, extents, device)
    rounds = max(1.0, steps / at_once)
    more = (reductions - 1) * rounds + (again - reductions + 1) * (steps if costly else rounds)
    work.iterations = rounds
    work.rounds = rounds + more * farther
    work.l2_rounds = more * (far - farther)
    exchanged = exchanges(problem.reductions, layout, problem, apart=True)
    count = accesses((*reads, *writes, (each, problem.column_bytes)), width) + again * accesses(reads, width)
    count += add_strided(work, schedule, problem, extents, reads=1 + again * far, passes=1 + again) / covered
    add_elements(work, problem, covered, count)
    add_shared_elements(work, problem, layout, problem.reduced, steps)
    add_repeated(work, problem, covered, early=not like_another)
    add_exchanges(work, exchanged, work.blocks)
    work.waits = exchanged.waits + steps * own_waits(problem, layout)
    work.barriers = reductions * exchanged.meets
    work.cluster_barriers = reductions if exchanged.joins else 0
    return work


def _has_costly_steps(problem: Problem) -> bool:
    """Whether steps of a loop that stores take much that is not counted, about as much as another pass: checks of
    joined parts, and addresses in views of arrays where steps move along more than the rows of these
    (`benchmarks/results/survey_eighth-2026-12-01-h200.json`).
    """
    views = any(not array.is_contiguous for array in problem.reads if array.dims)
    return bool(problem.checks) or (views and problem.reduced != {problem.vector_dim})


def register_tile_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """Chunks of arrays of which none varies along the whole space: each meets all that a thread has of the others.

    Blocks read the arrays as often as there are tiles along the dimensions that these lack: from the L2, as far as it
    holds them, and from the L1 what other warps of the block have read. Every further pass does so again.
    """
    layout, extents = schedule.layout, known_extents(problem)
    outer = [d for d in range(len(extents)) if d not in problem.reduced]
    clusters = tiles(extents, schedule.tile, outer)
    steps = tiles(extents, schedule.tile, problem.reduced)
    carried = sum(part.bytes * layout.held(part.kept) for part in problem.reductions)
    looped, stays = in_steps(problem)
    held, kept = (
        sum(max(REGISTER_BYTES, a.bytes) * held_elements(a, layout) for a in each) for each in (looped, stays)
    )
    at_once = unrolled_steps(problem, layout, steps)
    needed = registers or round(BASE_REGISTERS + (carried + kept + held * at_once) / REGISTER_BYTES)
    work = device.work(layout, clusters, device.resident(layout.threads, needed))
    read, work.written = moved_bytes(problem, extents)
    one_step = tuple(schedule.tile[d] if d in problem.reduced else n for d, n in enumerate(extents))
    moved = traffic(schedule, looped, extents, device) + traffic(schedule, stays, one_step, device)
    passes = max(1, problem.dependent_reductions) + problem.stores_last
    work.l2_read = passes * max(read, moved.read)
    work.l2_written = work.written
    work.l1 = passes * moved.l1
    work.read = read + (work.l2_read - read) * missing(_slab(problem, extents), device.machine.l2_bytes)
    exchanged = exchanges(problem.reductions, layout, problem, apart=True)
    waits = add_pairs(work, problem, layout, steps, at_once)
    add_repeated(work, problem, clusters * steps * prod(layout.extents), early=True)
    add_exchanges(work, exchanged, work.blocks)
    work.iterations = max(1.0, steps / at_once)
    rounds = passes * work.iterations
    work.rounds = rounds * work.read / work.l2_read
    work.l2_rounds = rounds - work.rounds
    work.waits = exchanged.waits + passes * steps * waits
    work.barriers = passes * exchanged.meets
    work.cluster_barriers = passes if exchanged.joins else 0
    return work


def _slab(problem: Problem, extents: tuple[int, ...]) -> int:
    """Bytes that blocks read again and again: all arrays, for one place along the dimensions that all of them have."""
    arrays = [a for a in problem.reads if a.dims]
    common = frozenset(range(problem.rank)).intersection(*(a.dims for a in arrays)) - problem.reduced
    sides = [1 if d in common else extent for d, extent in enumerate(extents)]
    return bytes_of(arrays, sides)


def in_steps(problem: Problem) -> tuple[list[ArrayAccess], list[ArrayAccess]]:
    """The arrays that each step of the loop reads, and those that no step changes, which are read before."""
    looped = [a for a in problem.reads if not problem.reduced.isdisjoint(a.dims)]
    return looped, [a for a in problem.reads if a not in looped]


def unrolled_steps(problem: Problem, layout: BlockedLayout, steps: int) -> int:
    """Of so many steps those that become one (`fuse-unroll-loops`)."""
    extents, (looped, _) = known_extents(problem), in_steps(problem)
    loads = [held_elements(a, layout) / thread_access(a, layout, extents) for a in looped]
    uses = [layout.elements_per_thread / held_elements(a, layout) for a in looped]
    code = _computing(problem, layout)
    return min(steps, steps_at_once(max(loads, default=1.0), code, min(uses, default=1.0)))


def add_pairs(work: Work, problem: Problem, layout: BlockedLayout, steps: int, at_once: int) -> float:
    """Adds the instructions for so many steps of each block, of which some become one, and share addresses.

    Returns:
        Instructions of one thread in a step that wait for one another: for one element, or a warp's own, of which it
        issues one a cycle.
    """
    looped, stays = in_steps(problem)
    share = ACCESS_INSTRUCTIONS / at_once + 1 - 1 / at_once  # each load is an instruction of its own
    loading = _reading(problem, looped, layout, share)
    of_step = loading + _computing(problem, layout)
    before = THREAD_INSTRUCTIONS + _reading(problem, stays, layout, ACCESS_INSTRUCTIONS)
    threads, uneven = work.blocks * work.threads, unevenness(work)
    covered = steps * threads * layout.elements_per_thread
    work.instructions += threads * before + uneven * threads * steps * (loading + _each(problem, layout))
    work.special += covered * problem.special
    work.double += covered * problem.double
    add_shared_elements(work, problem, layout, problem.reduced, steps)
    work.instructions += work.special  # which are issued as well: these kernels are bound by that
    shared = sum(s.instructions + SPECIAL_INSTRUCTIONS * s.special for s in problem.shared_instructions)
    return max(problem.sliding_instructions[0] + shared, of_step / DEPENDENT_CYCLES)


def _reading(problem: Problem, arrays: list[ArrayAccess], layout: BlockedLayout, access: float) -> float:
    """Instructions of a thread to read arrays, and for what is computed of each element alone."""
    extents, (_, read), taps = known_extents(problem), problem.sliding_instructions, sum(a.taps for a in problem.reads)
    return sum((access / thread_access(a, layout, extents) + read / taps) * held_elements(a, layout) for a in arrays)


def _each(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of a thread in a step for each element of the space."""
    return problem.sliding_instructions[0] * layout.elements_per_thread


def _computing(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of a thread in a step beside reading, what elements share included."""
    shared = [s for s in problem.shared_instructions if not s.dims.isdisjoint(problem.reduced)]
    return _each(problem, layout) + sum(layout.held(s.dims) * s.instructions for s in shared)
