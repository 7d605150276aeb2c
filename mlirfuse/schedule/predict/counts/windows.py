"""What is counted for kernels that read windows, whose elements share what they read: loops over tiles in which windows
slide along dimensions of the space, and elementwise kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import PARTITIONS, REGISTER_BYTES
from mlirfuse.schedule.parts.array_access import ArrayAccess, bytes_of
from mlirfuse.schedule.predict.counts.accesses import LOST, held_elements, missing, thread_access, traffic
from mlirfuse.schedule.predict.counts.instructions import ACCESS_INSTRUCTIONS, THREAD_INSTRUCTIONS
from mlirfuse.schedule.predict.counts.space import BASE_REGISTERS, known_extents
from mlirfuse.schedule.predict.work import DEPENDENT_CYCLES, Device, Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

WINDOW_INSTRUCTIONS = 2
"""Instructions of an access to a window that slides along a thread's run: itself, and the zeros that its registers hold
where it is skipped. All accesses of a thread share an address, from which they are a number apart, and few checks."""

NARROW_INSTRUCTIONS = 2
"""What such an access takes more that is narrower than a register: its address, as it is not predicated, and selecting
zeros; and those of a store, which takes its element out of a register."""

SHORT_RUNS = 1 / 4
"""What device memory takes more for each part beyond the first that a cache line is read in, at different times: for
half lines once this share, for sectors three times."""

ISSUING_WARPS = 4
"""Warps of a scheduler from which on it has an instruction of a window's products to issue in each cycle, where each
thread holds many sums (`benchmarks/results/depthwise_candidates-h200.json`)."""


def shares(problem: Problem) -> bool:
    """Whether elements of the space share what they read: windows slide, or no array varies along all of it."""
    return problem.shares_reads or any(a.slides for a in problem.arrays)


@lru_cache(maxsize=64)
def reads_windows(problem: Problem) -> bool:
    """Whether elements of the space read several elements of an array."""
    return any(a.taps > 1 for a in problem.arrays)


def moved_bytes(problem: Problem, extents: tuple[int, ...]) -> tuple[int, int]:
    """Bytes of device memory that a kernel reads once, and that it writes.

    Where no array varies along all of the space, those of its arrays; else those of each element of the space.
    """
    if problem.shares_reads:
        return bytes_of(problem.reads, extents), bytes_of(problem.writes, extents)
    total = prod(extents)
    beside = sum((a.spread - 1.0) * a.bytes * a.elements(extents) for a in problem.reads if a.spread > 1.0)
    return total * problem.read_bytes + round(beside), total * (problem.full_bytes - problem.read_bytes)


@lru_cache(maxsize=64)
def result_bytes(problem: Problem) -> int:
    """Bytes that a kernel writes beside those of `moved_bytes`: results of reductions."""
    extents = known_extents(problem)
    return max(0, bytes_of(problem.writes, extents) - moved_bytes(problem, extents)[1])


@lru_cache(maxsize=64)
def partial_bytes(problem: Problem) -> int:
    """Bytes that a kernel reads beside those of `moved_bytes`: of arrays that do not vary along all of the space."""
    if shares(problem):
        return 0
    partial = [a for a in problem.reads if a.dims and not problem.whole <= {*a.dims}]
    return bytes_of(partial, known_extents(problem))


def window_registers(schedule: Schedule, problem: Problem) -> int:
    """Registers of a thread of an elementwise kernel that reads windows, before there is code: it has all of what it
    reads under way at once, each access in registers of its own.
    """
    layout, known, held = schedule.layout, known_extents(problem), 0.0
    for array in problem.reads:
        width = thread_access(array, layout, known)
        held += held_elements(array, layout) / width * max(1.0, width * array.bytes / REGISTER_BYTES)
    return round(BASE_REGISTERS + held)


def add_sliding_traffic(
    work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], steps: int, device: Device
) -> None:
    """Sets the bytes that blocks move which loop over so many tiles each.

    Of consecutive tiles the L1 has what windows have in common, as far as there is room for the windows of a row of
    tiles, and other reads have not displaced it.
    """
    plan = schedule.loop_part
    work.read, work.written = bytes_of(problem.reads, extents), bytes_of(problem.writes, extents)
    moved = traffic(schedule, problem.reads, extents, device)
    work.l2_read, work.l2_written, work.l1 = max(work.read, moved.read), work.written, moved.l1
    if problem.shares_reads:
        for array in problem.reads:
            scattered = bytes_of([array], extents) * SHORT_RUNS * _parts(array, schedule.tile, extents)
            work.read += scattered
            work.l2_read += scattered
    if not plan.consecutive:
        return
    taken, row = _together(schedule, extents, steps)
    once = work.blocks * bytes_of(problem.reads, taken)
    on_sm = work.resident * bytes_of(problem.reads, row)
    lost = max(LOST, missing(on_sm, device.target.shared_per_sm))
    work.l2_read = min(work.l2_read, max(work.read, once + lost * (moved.read - once)))


def _together(schedule: Schedule, extents: tuple[int, ...], count: int) -> tuple[list[int], list[int]]:
    """The box of so many consecutive tiles of a loop, and that of those of them that lie along its last dimension."""
    taken, row, left = list(schedule.tile), list(schedule.tile), count
    for d in reversed(schedule.loop_part.dims):
        along = min(left, ceil(extents[d] / taken[d]))
        taken[d] = min(extents[d], along * taken[d])
        if left == count:
            row[d] = taken[d]
        left //= along
    return taken, row


def _parts(array: ArrayAccess, box: Sequence[int], extents: tuple[int, ...]) -> float:
    """Parts beyond the first that each cache line of an array is read in, where such boxes of it are read apart."""
    run = array.run(box, extents) * array.bytes if array.dims else LINE
    return max(0.0, LINE / max(SECTOR, run) - 1.0)


def add_sliding_elements(work: Work, schedule: Schedule, problem: Problem, covered: int) -> float:
    """Adds the instructions for so many elements, padding included, of which a thread's share what they read.

    Returns:
        Instructions of one thread that wait for one another in a step: for the elements of one accumulator.
    """
    layout, (each, _) = schedule.layout, problem.sliding_instructions
    _add_instructions(work, schedule, problem, covered)
    return each * prod(layout.fragments(d) for d in problem.reduced if layout.is_alone([d]))


def add_window_elements(work: Work, schedule: Schedule, problem: Problem, covered: int) -> float:
    """The same of an elementwise kernel whose elements read windows.

    Returns:
        Instructions of one thread that wait for one another: for one element, or a warp's own, of which it issues one a
        cycle.
    """
    each, _ = problem.sliding_instructions
    of_thread = _add_instructions(work, schedule, problem, covered)
    if any(array.windows for array in problem.reads):  # a thread's sums wait for its loads, and few warps take turns
        work.instructions *= max(1.0, ISSUING_WARPS * PARTITIONS * WARP / (work.resident * work.threads))
    work.instructions += work.blocks * work.threads * THREAD_INSTRUCTIONS
    return max(each, of_thread / DEPENDENT_CYCLES)


def _add_instructions(work: Work, schedule: Schedule, problem: Problem, covered: int) -> float:
    """Adds the instructions for so many elements; returns those of one thread in a step."""
    layout, (each, read) = schedule.layout, problem.sliding_instructions
    known = known_extents(problem)
    windows = [a for a in problem.reads if a.windows]
    access = WINDOW_INSTRUCTIONS if windows else ACCESS_INSTRUCTIONS
    stores = [] if problem.reduced else problem.writes
    accesses = sum(held_elements(a, layout) / thread_access(a, layout, known) for a in (*problem.reads, *stores))
    narrow = sum(_narrow(a, layout, known) for a in (*windows, *stores))
    held = sum(held_elements(a, layout) for a in problem.reads)
    taps = max(1, sum(a.taps for a in problem.reads))  # constants may be all that there is to read
    of_thread = each * layout.elements_per_thread + read * held / taps + access * accesses
    of_thread += NARROW_INSTRUCTIONS * narrow
    work.instructions += unevenness(work) * covered / layout.elements_per_thread * of_thread
    work.special += covered * problem.special
    work.double += covered * problem.double
    return of_thread


def unevenness(work: Work) -> float:
    """Instructions of the partition of an SM with the most to those of each, were all alike.

    Each takes whole warps: the one with the most is the last, unless another block is in work beside the one that ends,
    and others follow.
    """
    warps = work.resident * work.threads / WARP
    waits = work.resident == 1 or work.blocks <= work.sms * work.resident
    return ceil(warps / PARTITIONS) * PARTITIONS / warps if waits else 1.0


def _narrow(array: ArrayAccess, layout: BlockedLayout, extents: tuple[int, ...]) -> float:
    """Accesses of a thread to an array that are narrower than a register."""
    width = thread_access(array, layout, extents)
    return held_elements(array, layout) / width if width * array.bytes < REGISTER_BYTES else 0.0
