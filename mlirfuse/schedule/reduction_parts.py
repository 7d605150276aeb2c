"""How many parts a reduction is computed in, each by blocks of their own: a pure function of (problem, machine).

Where few results are kept of much data, blocks that each have some of the results are too few to keep a device busy.
Parts of one reduced dimension are more results; a second kernel, which reads little, combines them. The parts of long
rows are of one size where the number of rows is unknown, so that they do for any number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from mlirfuse.machine.model import MachineModel
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.rows.streamed import streamed_schedules
from mlirfuse.target import LINE, Target

MOST_PARTS = 4096
"""Parts of a reduction, at most: what the second kernel reads is little."""

PARTIAL_SHARE = 1 / 16
"""Bytes of partial results to those that are reduced, at most."""


FEWEST_BLOCKS = 32
"""Blocks that parts make, about, at least: fewer keep no device busy."""

MOST_BYTES, LEAST_BYTES = 32 * 1024, 4 * 1024
"""Bytes of a part, at most and at least: numbers with no divisor in between are not split."""


@dataclass(frozen=True)
class ReductionParts:
    """A reduction in parts.

    Attributes:
        dim: the reduced dimension that is divided.
        parts: how many parts it has; its extent where nothing of it is left to the first kernel.
        microseconds: that both kernels are predicted to take.
    """

    dim: int
    parts: int
    microseconds: float


@lru_cache(maxsize=256)
def best_parts(
    problem: Problem, target: Target, machine: MachineModel, dims: tuple[int, ...], whole: tuple[int, ...] = ()
) -> ReductionParts | None:
    """The parts by which two kernels take the least predicted time; None where nothing may be divided.

    The problem's reductions must depend on no other, and nothing along what they reduce may depend on them. Extents
    that are known at run time are assumed to be large (`predict/counts/space.py`). `dims` may be divided,
    and those in `whole` be kept whole.
    """
    problem = with_extents(problem)
    if len({part.dims for part in problem.reductions if part.dims}) != 1:
        return None
    found = [
        ReductionParts(dim, parts, _microseconds(problem, dim, parts, target, machine))
        for dim in (*dims, *whole)
        for parts in _counts(problem, dim, dim in whole)
    ]
    return min(found, key=lambda each: each.microseconds, default=None)


def least_microseconds(problem: Problem, machine: MachineModel) -> float:
    """What two kernels take at least, to read the data once and to start."""
    problem = with_extents(problem)
    nbytes = prod(extent or 1 for extent in problem.extents) * problem.read_bytes
    return 1e6 * (nbytes / machine.dram_bandwidth + 2 * machine.next_launch)


def _counts(problem: Problem, dim: int, whole: bool) -> Iterator[int]:
    """Divisors of a dimension's extent: about one for every doubling; the extent alone where it is to stay whole."""
    extent = problem.extents[dim]
    if extent is None:
        return
    whole_lines = LINE // WIDEST_ACCESS * problem.vector if dim == problem.vector_dim else 1
    reduced = prod(problem.extents[d] or 1 for d in problem.reduced)
    most = min(MOST_PARTS, int(reduced * _read_bytes(problem) * PARTIAL_SHARE) // _result_bytes(problem))
    alone = prod(problem.extents[d] or 2 for d in problem.reduced - {dim}) == 1  # its own kernel would reduce nothing
    fewest = extent if whole else 2
    divisors = [
        n for n in range(fewest, min(extent - alone, most) + 1) if extent % n == 0 and extent // n % whole_lines == 0
    ]
    tiles = max(1, prod(problem.extents[d] or 1 for d in range(problem.rank) if d not in problem.reduced) // LINE)
    least = max(2, FEWEST_BLOCKS // tiles)
    for parts in divisors:
        if parts >= least:
            least = 2 * parts
            yield parts


def _read_bytes(problem: Problem) -> float:
    """Bytes that are read for an element of the space, each of an array's elements once."""
    whole, extents = prod(extent or 1 for extent in problem.extents), problem.extents
    shared = [a for a in problem.arrays if not a.written and len(a.dims) < problem.rank]
    return problem.read_bytes + sum(a.bytes * prod(extents[d] or 1 for d in a.dims) for a in shared) / whole


def _result_bytes(problem: Problem) -> int:
    """Bytes of one number of each result."""
    return sum(part.bytes for part in problem.reductions)


def _microseconds(problem: Problem, dim: int, parts: int, target: Target, machine: MachineModel) -> float:
    first = first_problem(problem, dim, parts)
    second = second_problem(problem, parts)
    return sum(_fastest(each, target, machine) for each in (first, second))


def _fastest(problem: Problem, target: Target, machine: MachineModel) -> float:
    """The least predicted time of the schedules that stream a reduction, or that hold rows which are written too."""
    schedules = list(streamed_schedules(problem, target, few=True))
    if any(array.written for array in problem.whole_arrays):
        schedules += row_candidates(problem, target)
    times = (predict(schedule, problem, machine).microseconds for schedule in schedules)
    return min(times, default=float("inf"))


def first_problem(problem: Problem, dim: int, parts: int) -> Problem:
    """The problem of the kernel that reduces parts: the divided dimension is two, of which the outer one is kept.

    Args:
        problem: of the whole reduction.
        dim: the divided dimension.
        parts: how many parts it has; its extent where it is kept whole, and stays one dimension.
    """
    extent = problem.extents[dim] or 1
    whole = parts == extent
    divided: tuple[int | None, ...] = (parts,) if whole else (parts, extent // parts)

    def moved(dims: Iterable[int]) -> frozenset[int]:
        return frozenset(d if d < dim else d + len(divided) - 1 for d in dims if not (whole and d == dim))

    reductions = tuple(
        replace(
            part,
            dims=moved(part.dims),
            kept=frozenset(d if d < dim else d + len(divided) - 1 for d in part.kept) | {dim},
        )
        for part in problem.reductions
    )
    return replace(
        problem,
        extents=(*problem.extents[:dim], *divided, *problem.extents[dim + 1 :]),
        reduced=moved(problem.reduced),
        vector_dim=problem.vector_dim if problem.vector_dim < dim else problem.vector_dim + len(divided) - 1,
        reductions=reductions,
        arrays=problem.arrays if whole else tuple(a.divided(dim, extent // parts) for a in problem.arrays),
        unaligned_vector=0,
        line=0,
        persistent_loop=None,
        finer_loop=None,
        grid_persistent=None,
        loop_is_optional=False,
        transposed=None,
    )


def second_problem(problem: Problem, parts: int) -> Problem:
    """The problem of the kernel that combines partial results: the parts are its first dimension."""
    kept = [problem.extents[d] for d in range(problem.rank) if d not in problem.reduced]
    extents = (parts, *(kept or [1]))
    nbytes, inner = _result_bytes(problem), extents[-1]
    each = max(part.bytes for part in problem.reductions)
    vector = next(n for n in (4, 2, 1) if n * min(each, 4) <= WIDEST_ACCESS and (inner is None or inner % n == 0))
    rank = len(extents)
    reduction = RowReduction(frozenset({0}), frozenset(range(1, rank)), nbytes)
    return Problem(
        extents=extents,
        reduced=frozenset({0}),
        vector_dim=rank - 1,
        vector=1 if inner is None else vector,
        full_bytes=nbytes,
        read_bytes=nbytes,
        dependent_reductions=1,
        reductions=(reduction,),
        instructions=float(len(problem.reductions)),
    )


def row_parts(problem: Problem, target: Target) -> int:
    """How many parts of one length each row is reduced in; 1 where rows stay whole.

    Rows stay whole where one block holds a row, where something of a row is needed again, where the grid loops over
    rows, as it does over those of a known number, and where memory is not contiguous along rows.
    """
    if (
        problem.reduced != {problem.vector_dim}
        or problem.dependent_reductions > 1
        or problem.live_bytes
        or problem.column_bytes
    ):
        return 1
    if problem.persistent_loop is None or not problem.loop_is_optional or None not in problem.extents:
        return 1
    length, each = problem.row_elements // problem.vector, problem.vector * max(1, problem.read_bytes)
    if length * each <= MOST_BYTES:
        return 1
    if any(schedule.layout.cluster == 1 for schedule in row_candidates(problem, target)):
        return 1
    fewest, most = -(-length * each // MOST_BYTES), length * each // LEAST_BYTES
    return next((parts for parts in range(fewest, most + 1) if length % parts == 0), 1)
