"""Instructions of a kernel's threads, which all families count alike."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.predict.counts.accesses import Traffic
from mlirfuse.schedule.predict.counts.exchanges import Exchange
from mlirfuse.schedule.predict.facts import (
    ACCESS_INSTRUCTIONS,
    DIVIDE_INSTRUCTIONS,
    INDEPENDENT,
    SPECIAL_INSTRUCTIONS,
    STRIDE_INSTRUCTIONS,
    THREAD_INSTRUCTIONS,
)
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.problem import Problem


def add_elements(work: Work, problem: Problem, covered: int, accesses: float) -> None:
    """Adds the instructions for so many elements, padding included, each with so many accesses to memory."""
    at_run_time = has_strides_of_run_time(problem)
    each = ACCESS_INSTRUCTIONS + (STRIDE_INSTRUCTIONS if at_run_time else 0)
    work.instructions += covered * (problem.instructions + each * accesses)
    own = THREAD_INSTRUCTIONS + (DIVIDE_INSTRUCTIONS if at_run_time else 0)
    work.instructions += work.blocks * work.threads * own
    work.special += covered * problem.special
    work.double += covered * problem.double


def add_shared_elements(work: Work, problem: Problem, layout: BlockedLayout, chunks: int = 1) -> None:
    """Adds the instructions for values that vary along some dimensions only, which each thread computes of its own:
    those that vary along a row in each of its chunks.
    """
    threads = work.blocks * work.threads
    for shared in problem.shared_instructions:
        held = threads * prod(layout.fragments(d) * layout.vector[d] for d in shared.dims)
        held *= chunks if shared.dims & problem.reduced else 1
        work.instructions += held * shared.instructions
        work.special += held * shared.special


@lru_cache(maxsize=64)
def has_strides_of_run_time(problem: Problem) -> bool:
    """Whether an array has strides that depend on extents of run time: threads divide by these for coordinates too."""
    return any(None in array.strides for array in problem.arrays)


def add_strided(work: Work, moved: Traffic, reads: float = 1.0, passes: float = 1.0) -> float:
    """Adds the traffic of arrays that are not contiguous along vectors; returns the accesses of all threads.

    Args:
        work: what it is added to.
        moved: the traffic, beyond that of whole vectors.
        reads: times that what is read comes from the L2.
        passes: times that it is read.
    """
    work.l2_read += moved.read * reads
    work.l2_written += moved.written
    work.l1 += moved.l1 * passes
    return moved.instructions * WARP * passes


def add_repeated(work: Work, problem: Problem, covered: int) -> None:
    """Adds the instructions of passes that compute again what earlier ones did, for so many elements."""
    plain, special, double = problem.repeated
    work.instructions += covered * plain
    work.special += covered * special
    work.double += covered * double


def add_exchanges(work: Work, exchanged: Exchange, times: int) -> None:
    """Adds what blocks exchange, of which each does so once, so many times."""
    work.shared += exchanged.shared * times
    work.dsmem += exchanged.dsmem * times
    work.instructions += exchanged.instructions * times
    work.special += exchanged.special * times


def own_waits(problem: Problem, layout: BlockedLayout) -> float:
    """Instructions of one thread for its elements of a tile that wait for one another."""
    each = problem.instructions + SPECIAL_INSTRUCTIONS * problem.special
    return INDEPENDENT * layout.elements_per_thread * each
