"""Schedules of sums of products whose operands share no dimension that is kept, in loops of resident blocks."""

from __future__ import annotations

from math import prod

import pytest

from mlirfuse.schedule.grid.products import MOST_SUMS, product_loops
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS

OUTER, J, ROWS, K, COLUMNS = range(5)
KEPT = frozenset({OUTER, ROWS, COLUMNS})
TARGET = TARGETS["sm_90a"].with_sms(132)


def problem(extents: tuple[int, int, int, int, int], nbytes: int = 4) -> Problem:
    """That of `bijk,bklj->bli`, with the dimensions in the order of its second operand: b, j, l, k, i."""
    _, j, rows, k, columns = extents
    arrays = (
        ArrayAccess((OUTER, COLUMNS, J, K), (columns * j * k, j * k, k, 1), nbytes, 16, False, True),
        ArrayAccess((OUTER, K, ROWS, J), (k * rows * j, rows * j, j, 1), nbytes, 16, False, True),
        ArrayAccess((OUTER, ROWS, COLUMNS), (rows * columns, columns, 1), nbytes, 16, True, True),
    )
    loop = PersistentLoopProblem((J, K), KEPT, 4, 0, inner=False, wide=nbytes == 4)
    return Problem(
        extents,
        frozenset({J, K}),
        K,
        16 // nbytes,
        3 * nbytes,
        2 * nbytes,
        reductions=(RowReduction(frozenset({J, K}), KEPT, 4),),
        persistent_loop=loop,
        loop_is_optional=True,
        arrays=arrays,
    )


def loops(found: Problem) -> list[Schedule]:
    assert found.persistent_loop is not None
    return list(product_loops(found, found.persistent_loop, TARGET))


@pytest.mark.parametrize("nbytes", [2, 4])
@pytest.mark.parametrize("extents", [(4, 512, 8, 512, 8), (3, 48, 7, 40, 5), (1, 1000, 4, 96, 16)])
def test_threads_have_all_that_meets(extents: tuple[int, int, int, int, int], nbytes: int) -> None:
    found = problem(extents, nbytes)
    schedules = loops(found)
    assert schedules
    for schedule in schedules:
        layout = schedule.layout
        sums = prod(layout.fragments(d) for d in KEPT)
        assert sums <= MOST_SUMS
        for d in KEPT:
            assert layout.fragments(d) * layout.warps[d] == extents[d]
        for d in (J, K):  # or else a thread would keep a sum for each of its elements
            assert layout.is_alone([d]) or layout.fragments(d) * layout.vector[d] == 1
        held = sum(nbytes * held_elements(a, layout) for a in found.arrays if not a.written)
        assert 4 * sums + held <= 4 * TARGET.max_registers_per_thread


def test_vectors_along_either_dimension() -> None:
    """One array is contiguous along j, the other one along k: lanes lie along one, vectors along the other."""
    found = {(s.layout.vector_dim, *(d for d in (J, K) if s.layout.lanes[d] > 1)) for s in vectors()}
    assert found == {(J, K), (K, J)}


def vectors() -> list[Schedule]:
    return [s for s in loops(problem((4, 512, 8, 512, 8))) if max(s.layout.vector) > 1]


def test_none_where_an_array_varies_along_all_of_the_space() -> None:
    found = problem((4, 512, 1, 512, 8))
    assert not found.shares_reads
    assert not loops(found)


def test_none_where_sums_do_not_fit() -> None:
    assert not loops(problem((64, 128, 64, 128, 64)))
