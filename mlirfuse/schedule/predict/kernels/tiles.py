"""The work of blocks with one tile each: elementwise kernels, and rows in registers."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.loops import LOADS_AHEAD
from mlirfuse.schedule.parts.array_access import bytes_of
from mlirfuse.schedule.predict.counts.accesses import add_strided, add_tables, columns_traffic, split_bytes, traffic
from mlirfuse.schedule.predict.counts.instructions import (
    add_elements,
    add_exchanges,
    add_shared_elements,
    exchanges,
    own_waits,
)
from mlirfuse.schedule.predict.counts.space import (
    accesses,
    arrays,
    element_bytes,
    held_registers,
    known_extents,
    tiles,
    wastes,
)
from mlirfuse.schedule.predict.counts.windows import (
    add_window_elements,
    moved_bytes,
    partial_bytes,
    reads_windows,
    result_bytes,
    window_registers,
)
from mlirfuse.schedule.predict.work import Device, Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def tile_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """One tile a block or cluster, whose loads are all under way at once."""
    layout, extents = schedule.layout, known_extents(problem)
    total = prod(extents)
    clusters = tiles(extents, schedule.tile, range(len(extents)))
    covered = clusters * prod(layout.extents)
    each = element_bytes(problem)
    read, written = moved_bytes(problem, extents)
    exchanged = exchanges(problem.reductions, layout, problem)
    reductions = max(1, problem.dependent_reductions) if problem.reduced else 0
    width = max(layout.vector)
    reads, writes = arrays(problem)
    count = accesses((*reads, *writes, (each, problem.column_bytes)), width)
    if registers is None and schedule.blocks_per_sm:
        resident = schedule.blocks_per_sm
    else:
        estimated = window_registers if reads_windows(problem) and not problem.reduced else held_registers
        resident = device.resident(layout.threads, registers or estimated(schedule, problem))
    work = device.work(layout, clusters, resident)
    work.read, work.streams = read, not problem.reduced
    work.written = written + split_bytes(schedule, problem, extents, device)
    sectors, sectors_written, lines = wastes(schedule, problem, extents)
    work.l2_read, work.l2_written = read * sectors, written * sectors_written
    work.l1 = (read + written) * lines
    if problem.column_bytes and reductions:
        columns_traffic(work, schedule, problem, extents, device)
    if problem.arrays and (schedule.flat or problem.shares_reads or layout.is_alone(problem.reduced)):
        moved = traffic(schedule, problem.arrays, extents, device)
        work.l2_read, work.l2_written, work.l1, work.shared = moved.read, moved.written, moved.l1, moved.shared
        count = moved.instructions * WARP / covered
        # Arrays that are broadcast over part of the space are smaller than that; `work_of` adds the results of
        # reductions.
        once = bytes_of(problem.reads, extents)
        work.read = min(work.read, once - partial_bytes(problem))
        work.l2_again = 0.0 if problem.reduced else max(0.0, work.l2_read - max(work.read, once))
        work.l2_read -= work.l2_again
        work.l2_written = max(0.0, work.l2_written - result_bytes(problem))
        if schedule.transposed is not None and schedule.transposed.mirrored and problem.transposed is not None:
            work.read -= total * problem.transposed.bytes  # the neighbouring tile leaves it in the L2
    elif schedule.transposed is not None and problem.transposed is not None:
        work.shared += 2.0 * total * problem.transposed.bytes
    else:
        count += add_strided(work, schedule, problem, extents) / covered
        add_tables(work, schedule, problem, extents, device)
    # What waits in shared memory is written there and read again; few registers are left for loads of it.
    work.rounds += schedule.shared_spill / LOADS_AHEAD
    waiting = schedule.shared_spill * width / layout.elements_per_thread
    work.spilled = 2.0 * covered * waiting * problem.shared_spill_bytes
    count += 2.0 * waiting * problem.shared_spill_bytes / each / width
    if reads_windows(problem) or (problem.reduced and problem.shares_reads):
        work.waits = add_window_elements(work, schedule, problem, covered)
    else:
        add_elements(work, problem, covered, count)
        work.waits = own_waits(problem, layout)
    add_shared_elements(work, problem, layout)
    add_exchanges(work, exchanged, work.blocks)
    work.waits += exchanged.waits
    work.barriers = reductions * exchanged.meets + (1 if schedule.transposed or schedule.flat else 0)
    work.cluster_barriers = reductions if exchanged.joins else 0
    return work
