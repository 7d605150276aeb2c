"""Sizes that the predictions of all families need: elements, tiles, runs of contiguous memory, residency."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil, prod

from mlirfuse.schedule.model.machine import REGISTER_BYTES, RESERVED_SHARED, WIDEST_ACCESS
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.predict.facts import BASE_REGISTERS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, Target

ASSUMED_ELEMENTS = 1 << 24
"""Elements of an iteration space with dynamic extents, where the caller has no hint."""


def with_extents(problem: Problem) -> Problem:
    """The problem with numbers for its dynamic extents: all equal, and of `ASSUMED_ELEMENTS` together with the others.

    Who knows the extents of a call puts these into the problem instead.
    """
    unknown = problem.extents.count(None)
    if not unknown:
        return problem
    known = prod(extent for extent in problem.extents if extent is not None)
    each = max(1, round((ASSUMED_ELEMENTS / max(1, known)) ** (1 / unknown)))
    return replace(problem, extents=tuple(each if extent is None else extent for extent in problem.extents))


def known_extents(problem: Problem) -> tuple[int, ...]:
    """The extents of a problem that `with_extents` has seen."""
    return tuple(extent or 1 for extent in problem.extents)


def tiles(extents: tuple[int, ...], tile: tuple[int, ...], dims: Iterable[int]) -> int:
    """Tiles along some dimensions."""
    count = 1
    for d in dims:
        count *= -(-extents[d] // tile[d])
    return count


def element_bytes(problem: Problem) -> int:
    """Bytes of an element of most arrays: what the widest vector says, or 4 at most where there are no vectors."""
    if problem.vector > 1:
        return WIDEST_ACCESS // problem.vector
    return max(1, min(REGISTER_BYTES, problem.read_bytes or problem.full_bytes))


def run_elements(extents: tuple[int, ...], part: tuple[int, ...], dim: int) -> int:
    """Elements of a part of the space that lie side by side in memory, from its contiguous dimension outwards."""
    run = 1
    for d in (dim, *(d for d in reversed(range(len(extents))) if d != dim)):
        run *= min(part[d], extents[d])
        if part[d] < extents[d]:
            break
    return run


def sector_waste(run_bytes: float) -> float:
    """Bytes of the sectors that runs lie in, to the runs' own."""
    return max(1.0, SECTOR / run_bytes)


def held_registers(schedule: Schedule, problem: Problem) -> int:
    """Registers of a thread, before there is code: its elements as they are read, in words, and what it computes."""
    held = schedule.layout.elements_per_thread - schedule.shared_spill * max(schedule.layout.vector)
    words = max(1.0, problem.read_bytes / REGISTER_BYTES)
    return round(BASE_REGISTERS + held * words)


def resident(schedule: Schedule, problem: Problem, target: Target, registers: int | None, shared: int = 0) -> int:
    """Blocks that an SM holds at once.

    Args:
        schedule: the schedule.
        problem: the problem.
        target: the architecture.
        registers: of a thread, where the assembler has said; None for an estimate.
        shared: bytes of shared memory of a block.
    """
    threads = schedule.layout.threads
    if registers is None and schedule.blocks_per_sm:
        return schedule.blocks_per_sm
    given = allocated(min(registers or held_registers(schedule, problem), target.max_registers_per_thread))
    blocks = min(resident_blocks(threads, given, target), target.shared_per_sm // (shared + RESERVED_SHARED))
    return max(1, blocks)


def waves(blocks: int, slots: int) -> float:
    """Times that slots are filled with blocks one after the other: a whole number where they are few."""
    count = blocks / slots
    return max(1.0, ceil(count - 0.02)) if count < 4 else count
