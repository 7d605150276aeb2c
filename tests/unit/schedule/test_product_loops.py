"""Schedules of sums of products whose operands share no dimension that is kept, in loops of resident blocks."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from mlirfuse.machine import machine_of
from mlirfuse.schedule.grid.products import MOST_SUMS, product_loops
from mlirfuse.schedule.parts.array_access import ArrayAccess, bytes_of
from mlirfuse.schedule.predict import work_of
from mlirfuse.schedule.predict.counts.accesses import held_elements, thread_access
from mlirfuse.schedule.predict.counts.space import known_extents
from mlirfuse.schedule.predict.counts.windows import SHORT_RUNS
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, TARGETS

OUTER, J, ROWS, K, COLUMNS = range(5)
KEPT = frozenset({OUTER, ROWS, COLUMNS})
TARGET = TARGETS["sm_90a"].with_sms(132)
MACHINE = machine_of(TARGET)


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
@pytest.mark.parametrize("extents", [(4, 512, 8, 512, 8), (3, 48, 8, 64, 5), (1, 1024, 4, 96, 16)])
def test_threads_have_all_that_meets(extents: tuple[int, int, int, int, int], nbytes: int) -> None:
    found = problem(extents, nbytes)
    schedules = loops(found)
    assert schedules
    for schedule in schedules:
        layout = schedule.layout
        sums = prod(layout.fragments(d) for d in KEPT)
        assert sums <= MOST_SUMS
        for d in KEPT:
            assert layout.fragments(d) * layout.warps[d] * layout.lanes[d] == extents[d]
        for d in (J, K):  # or else a thread would keep a sum for each of its elements
            assert layout.is_alone([d]) or layout.fragments(d) * layout.vector[d] == layout.step(d)
        held = sum(nbytes * held_elements(a, layout) for a in found.arrays if not a.written)
        assert 4 * sums + held <= 4 * TARGET.max_registers_per_thread


@pytest.mark.parametrize("nbytes", [2, 4])
def test_threads_have_tiles_of_both_summed_dimensions(nbytes: int) -> None:
    """Both arrays are read by wide accesses, of which those of a warp are whole sectors."""
    found = problem((4, 512, 8, 512, 8), nbytes)
    tiles = [s.layout for s in loops(found) if s.layout.has_runs]
    assert tiles
    for layout in tiles:
        assert all(thread_access(a, layout, (4, 512, 8, 512, 8)) * nbytes >= 8 for a in found.reads)
        assert all(layout.span(d) * nbytes >= SECTOR for d in (J, K))
        assert layout.lanes[OUTER] == 1  # what is kept of both arrays is never read by several lanes
    assert {1, 2, 4} <= {layout.lanes[d] for layout in tiles for d in (ROWS, COLUMNS)}


def test_one_dimension_in_which_both_are_contiguous() -> None:
    """That of `ik,jk->ij`: lanes lie along rows, and a thread has several of both arrays."""
    arrays = (
        ArrayAccess((0, 1), (4096, 1), 4, 16, False, True),
        ArrayAccess((2, 1), (4096, 1), 4, 16, False, True),
        ArrayAccess((0, 2), (8, 1), 4, 16, True, True),
    )
    found = replace(
        problem((1, 1, 1, 1, 1)),
        extents=(8, 4096, 8),
        reduced=frozenset({1}),
        vector_dim=1,
        reductions=(RowReduction(frozenset({1}), frozenset({0, 2}), 4),),
        persistent_loop=PersistentLoopProblem((1,), frozenset({0, 2}), 4, 0, inner=False, wide=True),
        arrays=arrays,
    )
    layouts = [s.layout for s in loops(found)]
    assert any(layout.lanes == (1, 32, 1) and layout.repeats == (8, 1, 8) for layout in layouts)
    assert {layout.vector for layout in layouts} == {(1, 4, 1), (1, 2, 1)}


def test_none_where_an_array_varies_along_all_of_the_space() -> None:
    found = problem((4, 512, 1, 512, 8))
    assert not found.shares_reads
    assert not loops(found)


def test_none_where_sums_do_not_fit() -> None:
    assert not loops(problem((64, 128, 64, 128, 64)))


def test_sectors_that_are_read_apart_cost_more() -> None:
    """The rest of a line is read at another time."""
    found = problem((4, 512, 8, 512, 8))
    tiles = [s for s in loops(found) if s.layout.has_runs and s.tile[J] == s.tile[K] == 16]
    assert tiles
    for schedule in tiles:
        # Of both arrays half a line is read at once.
        read = (1 + SHORT_RUNS) * bytes_of(found.reads, known_extents(found))
        assert work_of(schedule, found, MACHINE).read == pytest.approx(read)
