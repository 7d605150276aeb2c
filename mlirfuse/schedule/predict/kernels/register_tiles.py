"""The work of blocks that loop over what is reduced, where results share what is read: pairs of rows, for one."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.model.loops import steps_at_once
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.parts.array_access import bytes_of
from mlirfuse.schedule.predict.counts.accesses import held_elements, missing, thread_access, traffic
from mlirfuse.schedule.predict.counts.instructions import add_exchanges, add_repeated, add_shared_elements, exchanges
from mlirfuse.schedule.predict.counts.space import known_extents, tiles
from mlirfuse.schedule.predict.counts.windows import add_window_elements, moved_bytes
from mlirfuse.schedule.predict.device import Device
from mlirfuse.schedule.predict.facts import BASE_REGISTERS
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule


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
    held = sum(max(REGISTER_BYTES, a.bytes) * held_elements(a, layout) for a in problem.reads)
    loads = [held_elements(a, layout) / thread_access(a, layout, extents) for a in problem.reads]
    each, _ = problem.sliding_instructions
    at_once = min(steps, steps_at_once(max(loads), each * layout.elements_per_thread))
    needed = registers or round(BASE_REGISTERS + (carried + held * at_once) / REGISTER_BYTES)
    work = Work(
        clusters * layout.cluster,
        layout.cluster,
        layout.threads,
        device.resident(layout.threads, needed),
        device.sms(layout.cluster),
    )
    read, work.written = moved_bytes(problem, extents)
    moved = traffic(schedule, problem.reads, extents, device)
    passes = max(1, problem.dependent_reductions) + (1 if problem.live_bytes else 0)
    work.l2_read = passes * max(read, moved.read)
    work.l2_written = work.written
    work.l1 = passes * moved.l1
    work.read = read + (work.l2_read - read) * missing(_slab(problem, extents), device.machine.l2_bytes)
    exchanged = exchanges(problem.reductions, layout, problem, apart=True)
    waits = add_window_elements(work, schedule, problem, clusters * steps * prod(layout.extents))
    add_repeated(work, problem, clusters * steps * prod(layout.extents))
    add_shared_elements(work, problem, layout, steps)
    add_exchanges(work, exchanged, work.blocks)
    rounds = passes * max(1.0, steps / at_once)
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
