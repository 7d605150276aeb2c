"""The work of a resident grid that visits its tiles, combines statistics in each slice, and may visit them again."""

from __future__ import annotations

from math import ceil, prod

from mlirfuse.schedule.predict.counts.accesses import add_strided, missing
from mlirfuse.schedule.predict.counts.instructions import (
    ACCESS_INSTRUCTIONS,
    INDEPENDENT,
    SPECIAL_INSTRUCTIONS,
    STEP_INSTRUCTIONS,
    THREAD_INSTRUCTIONS,
    add_exchanges,
    add_shared_elements,
    exchanges,
)
from mlirfuse.schedule.predict.counts.space import accesses, arrays, known_extents, tiles, wastes
from mlirfuse.schedule.predict.work import LAST_BLOCK_MESSAGES, Device, Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


def grid_persistent_work(schedule: Schedule, problem: Problem, device: Device, registers: int | None) -> Work:
    """Members of each slice take tiles in turn, meet, combine the partial results of all, and take the tiles again.

    With one visit, the member that arrives last combines them, and the others have ended.
    """
    layout, extents = schedule.layout, known_extents(problem)
    part, own = schedule.grid_part, problem.grid_part
    slices = prod(part.slices(schedule.tile, extents))
    every = tiles(extents, schedule.tile, own.dims)
    resident = device.asked(schedule, registers)
    members = max(1, min(every, device.machine.sms * resident // slices))
    work = device.work(layout, slices * members, resident)
    steps = ceil(every / members)
    kept = min(1.0, part.kept_tiles * members / every)
    _traffic(work, schedule, problem, extents, kept, device)
    visits = slices * every * layout.threads * own.visits
    covered = slices * every * prod(layout.extents)
    work.instructions += covered * own.instructions + visits * STEP_INSTRUCTIONS
    work.special += covered * own.special
    work.double += covered * own.double
    add_shared_elements(work, problem, layout, part.dims, steps * own.visits)
    work.instructions += work.blocks * layout.threads * THREAD_INSTRUCTIONS
    # What a block exchanges of its own partial results, and then of those of all members.
    exchanged = exchanges(problem.reductions, layout, problem)
    add_exchanges(work, exchanged, work.blocks + (work.blocks if own.visits > 1 else slices))
    computed = own.instructions + SPECIAL_INSTRUCTIONS * own.special
    work.waits = steps * INDEPENDENT * layout.elements_per_thread * computed + 2 * exchanged.waits
    work.barriers = 2 * exchanged.meets
    left = steps - min(steps, part.kept_tiles)
    work.iterations = steps / 2 if part.kept_tiles and left else steps  # tiles that are kept have loops of their own
    work.rounds = min(1, part.kept_tiles) + left  # tiles that are kept are all under way at once
    work.l2_rounds = left if own.visits > 1 else 0
    _combining(work, schedule, problem, extents, members)
    return work


def _traffic(
    work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], kept: float, device: Device
) -> None:
    """Adds the bytes of both visits, of which the second one finds a share of what it reads again in shared memory."""
    own = problem.grid_part
    total = prod(extents)
    sectors, written, lines = wastes(schedule, problem, extents)
    again = total * own.again_bytes * (1 - kept)
    once = total * (own.first_bytes + own.second_bytes - own.again_bytes)
    work.read = once + again * missing(again, device.machine.l2_bytes)
    work.written = total * (problem.full_bytes - problem.read_bytes)
    work.l2_read += (once + again) * sectors
    work.l2_written += work.written * written
    work.l1 += (once + again + work.written) * lines
    work.shared += 2 * total * own.again_bytes * kept
    reads, writes = arrays(problem)
    visits = (own.first_bytes + own.second_bytes) / problem.read_bytes if problem.read_bytes else 1.0
    count = accesses(reads, max(schedule.layout.vector)) * visits + accesses(writes, max(schedule.layout.vector))
    count += add_strided(work, schedule, problem, extents, reads=visits, passes=visits) / total
    work.instructions += total * count * ACCESS_INSTRUCTIONS


def _combining(work: Work, schedule: Schedule, problem: Problem, extents: tuple[int, ...], members: int) -> None:
    """Adds the barrier, and how each member, or the last one, reads the partial results of all of its slice."""
    part, own, layout = schedule.grid_part, problem.grid_part, schedule.layout
    columns = prod(min(n, extents[d]) for d, n in enumerate(schedule.tile) if d not in part.dims)
    nbytes = members * columns * own.carried_bytes
    readers = work.blocks if own.visits > 1 else work.blocks // members
    work.grid_barriers = int(members > 1 and own.visits > 1)
    work.messages = LAST_BLOCK_MESSAGES * (members > 1 and own.visits == 1)
    work.reads = ceil(members / layout.repeat_stride(part.partial_dim(layout)))
    work.serial = nbytes * ceil(readers / work.sms)
    work.l2_read += nbytes * readers
    work.l2_written += nbytes / members * work.blocks
