"""Sizes that the predictions of all families need: elements, tiles, runs of contiguous memory, registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from mlirfuse.schedule.model.machine import REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

BASE_REGISTERS = 18
"""Registers of a thread beside its elements: addresses, coordinates, constants."""

ASSUMED_ELEMENTS = 1 << 24
"""Elements of an iteration space with dynamic extents, where the caller has no hint."""


def with_extents(problem: Problem, elements: int = ASSUMED_ELEMENTS) -> Problem:
    """The problem with numbers for its dynamic extents: those that are expected (`Problem.hints`).

    The extents of which nothing is expected are all equal, and together with the others make so many elements.
    """
    if None not in problem.extents:
        return problem
    extents = list(problem.expected)
    if unknown := extents.count(None):
        known = prod(extent for extent in extents if extent is not None)
        each = max(1, round((elements / max(1, known)) ** (1 / unknown)))
        extents = [each if extent is None else extent for extent in extents]
    return replace(problem, extents=tuple(extents), hints=())


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


@lru_cache(maxsize=1024)
def runs(extents: tuple[int, ...], part: tuple[int, ...], dim: int) -> tuple[int, int]:
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


def waste(run: float, apart: float, piece: int) -> float:
    """Bytes of the sectors, or lines, of so many bytes that runs lie in, to the runs' own; so far from one another."""
    return max(1.0, min(piece, apart) / run)


def wastes(schedule: Schedule, problem: Problem, extents: tuple[int, ...]) -> tuple[float, float, float]:
    """Bytes that accesses move to those that they want: sectors of reads and of writes, and lines of the L1.

    Other accesses of the block find the rest of a sector that is read in the L1, but each write goes to the L2.
    """
    layout, dim = schedule.layout, problem.vector_dim
    at_once = tuple([v * n for v, n in zip(layout.vector, layout.lanes, strict=True)])
    tile, warp = runs(extents, schedule.tile, dim), runs(extents, at_once, dim)
    return _wastes(problem, tile, warp, layout.vector[dim], layout.is_shifted)


@lru_cache(maxsize=1024)  # few of the many schedules of a kernel differ in what this depends on
def _wastes(
    problem: Problem, tile: tuple[int, int], warp: tuple[int, int], vector: int, is_shifted: bool
) -> tuple[float, float, float]:
    """The same by the runs of tiles and of a warp, the elements of a vector, and whether rows are shifted."""
    reads, writes = arrays(problem)

    def of_warps(each: int, piece: int) -> float:
        # Accesses of neighbouring lanes lie apart where elements are so wide that a vector takes several, and where
        # rows begin inside of sectors, what a warp accesses at once ends in one more sector or line.
        between = max(1.0, min(piece, vector * each) / WIDEST_ACCESS)
        straddling = 1.0 + piece / (warp[0] * each) if problem.line and not is_shifted else 1.0
        return waste(warp[0] * each, warp[1] * each, piece) * between * straddling

    return (
        _mean(reads, lambda each: waste(tile[0] * each, tile[1] * each, SECTOR)),  # the L1 has the rest of a sector
        _mean(writes, lambda each: of_warps(each, SECTOR)),
        _mean((*reads, *writes), lambda each: of_warps(each, LINE)),
    )


@lru_cache(maxsize=64)
def arrays(problem: Problem) -> tuple[Sequence[tuple[int, float]], Sequence[tuple[int, float]]]:
    """Arrays that are read and written: the bytes of an element, and the bytes for each element of the space."""
    full = problem.whole_arrays
    if sum(a.bytes for a in full) == problem.full_bytes:
        reads, writes = ([(a.bytes, a.bytes) for a in full if a.written == written] for written in (False, True))
        return reads, writes
    each = element_bytes(problem)
    return [(each, problem.read_bytes)], [(each, problem.full_bytes - problem.read_bytes)]


def accesses(arrays: Iterable[tuple[int, float]], vector: int) -> float:
    """Accesses of a thread to some arrays for each element, in vectors of so many: of `WIDEST_ACCESS` bytes at most."""
    return sum(nbytes / each * max(1.0, vector * each / WIDEST_ACCESS) / vector for each, nbytes in arrays)


def _mean(arrays: Sequence[tuple[int, float]], waste: Callable[[int], float]) -> float:
    """The waste of arrays together, each by its bytes."""
    total = sum(nbytes for _, nbytes in arrays)
    return sum(nbytes * waste(each) for each, nbytes in arrays) / total if total else 1.0


def held_registers(schedule: Schedule, problem: Problem) -> int:
    """Registers of a thread, before there is code: its elements as they are read, in words, and what it computes."""
    held = schedule.layout.elements_per_thread - schedule.shared_spill * max(schedule.layout.vector)
    words = max(1.0, problem.read_bytes / REGISTER_BYTES)
    return round(BASE_REGISTERS + held * words)
