"""Sizes that the predictions of all families need: elements, tiles, runs of contiguous memory, registers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from mlirfuse.schedule.model.machine import REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.predict.facts import BASE_REGISTERS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

ASSUMED_ELEMENTS = 1 << 24
"""Elements of an iteration space with dynamic extents, where the caller has no hint."""


def with_extents(problem: Problem, elements: int = ASSUMED_ELEMENTS) -> Problem:
    """The problem with numbers for its dynamic extents: all equal, and of so many elements together with the others.

    Who knows the extents of a call puts these into the problem instead.
    """
    unknown = problem.extents.count(None)
    if not unknown:
        return problem
    known = prod(extent for extent in problem.extents if extent is not None)
    each = max(1, round((elements / max(1, known)) ** (1 / unknown)))
    return replace(problem, extents=tuple(each if extent is None else extent for extent in problem.extents))


def known_extents(problem: Problem) -> tuple[int, ...]:
    """The extents of a problem that `with_extents` has seen."""
    return tuple([extent or 1 for extent in problem.extents])


def tiles(extents: Sequence[int], tile: Sequence[int], dims: Iterable[int]) -> int:
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


def runs(extents: Sequence[int], part: Sequence[int], dim: int) -> tuple[int, int]:
    """How a part of the space lies in memory: elements side by side, and from one such run to the next one.

    Args:
        extents: of the space.
        part: elements of the part in each dimension.
        dim: the dimension in which memory is contiguous; the others follow from the innermost one outwards.
    """
    run = stride = 1
    whole = True
    for d in (dim, *(d for d in range(len(extents) - 1, -1, -1) if d != dim)):
        here = min(part[d], extents[d])
        if whole:
            run *= here
            whole = here == extents[d]
        elif here > 1:
            return run, stride
        stride *= extents[d]
    return run, run


def warp_part(schedule: Schedule) -> list[int]:
    """Elements of each dimension that a warp accesses at once."""
    layout = schedule.layout
    return [v * n for v, n in zip(layout.vector, layout.lanes, strict=True)]


def sector_waste(run: float, apart: float) -> float:
    """Bytes of the sectors that runs lie in, to the runs' own.

    Args:
        run: bytes of a run.
        apart: bytes from one run to the next one.
    """
    return max(1.0, min(SECTOR, apart) / run)


def line_waste(run: float, apart: float) -> float:
    """The same of cache lines."""
    return max(1.0, min(LINE, apart) / run)


def wastes(schedule: Schedule, problem: Problem, extents: Sequence[int]) -> tuple[float, float, float]:
    """Bytes that accesses move to those that they want: sectors of reads and of writes, and lines of the L1.

    Other accesses of the block find the rest of a sector that is read in the L1, but each write goes to the L2.
    """
    each = element_bytes(problem)
    run, apart = runs(extents, schedule.tile, problem.vector_dim)
    read = sector_waste(run * each, apart * each)
    run, apart = runs(extents, warp_part(schedule), problem.vector_dim)
    return read, sector_waste(run * each, apart * each), line_waste(run * each, apart * each)


def held_registers(schedule: Schedule, problem: Problem) -> int:
    """Registers of a thread, before there is code: its elements as they are read, in words, and what it computes."""
    held = schedule.layout.elements_per_thread - schedule.shared_spill * max(schedule.layout.vector)
    words = max(1.0, problem.read_bytes / REGISTER_BYTES)
    return round(BASE_REGISTERS + held * words)
