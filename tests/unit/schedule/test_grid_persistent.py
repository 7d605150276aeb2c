"""Schedules of grid persistent kernels, and what they are predicted to take."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from mlirfuse.machine.lookup import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.grid.persistent import grid_persistent_schedules
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.grid_persistent import GridPersistent
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.predict import work_of
from mlirfuse.schedule.predict.work import LAST_BLOCK_MESSAGES
from mlirfuse.schedule.problem import GridPersistentProblem, Problem, RowReduction
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import target_of

TARGET = target_of("sm_90a")
MACHINE = machine_of(TARGET)
OWN = GridPersistentProblem((0,), 2, 2, 2, 2, 8, 4, 14.0, 0.0, 0.0)
ONCE = replace(OWN, visits=1, second_bytes=0, again_bytes=0)


def _problem(rows: int | None, columns: int) -> Problem:
    """A batch normalisation of half precision, with moments."""
    return Problem(
        (rows, columns),
        frozenset({0}),
        vector_dim=1,
        vector=8,
        full_bytes=4,
        read_bytes=2,
        live_bytes=2,
        dependent_reductions=1,
        reductions=(RowReduction(frozenset({0}), frozenset({1}), 8),),
        grid_persistent=OWN,
        instructions=10.0,
    )


def _schedule(**changes: object) -> Schedule:
    layout = BlockedLayout((1, 8), (16, 2), (8, 1), (4, 1), (1, 1))
    whole = Schedule((512, 16), layout, blocks_per_sm=1, grid_persistent=GridPersistent((0,), 3))
    return replace(whole, **changes)


@pytest.mark.parametrize("rows", [None, 25088, 1568])
@pytest.mark.parametrize("columns", [64, 2048])
def test_proposals_are_legal_and_fit_shared_memory(rows: int | None, columns: int) -> None:
    problem = _problem(rows, columns)
    found = list(grid_persistent_schedules(problem, OWN, TARGET))
    assert found
    for schedule in found:
        part = schedule.grid_persistent
        assert part is not None
        assert check_schedule(schedule, problem.extents, problem.reduced, TARGET) is None
        assert part.kept_tiles * prod(schedule.tile) * OWN.again_bytes <= TARGET.shared_per_block
        assert prod(part.slices(schedule.tile, problem.extents)) <= TARGET.sms * schedule.blocks_per_sm


def test_no_block_reduces_rows_that_run_time_counts() -> None:
    assert choose_schedule(_problem(None, 64), TARGET).grid_persistent is not None


def test_tiles_in_shared_memory_are_read_once() -> None:
    problem = _problem(100352, 64)
    kept = work_of(_schedule(), problem, MACHINE)
    again = work_of(_schedule(grid_persistent=GridPersistent((0,), 0)), problem, MACHINE)
    assert kept.l2_read < again.l2_read
    assert kept.shared > again.shared
    assert kept.read == again.read  # the L2 has all of them
    assert (again.rounds, again.l2_rounds) == (6, 6)
    assert (kept.rounds, kept.l2_rounds) == (4, 3)  # three of six tiles are under way at once


def test_tiles_that_the_cache_has_lost_come_from_memory() -> None:
    problem, one_visit = _problem(1 << 20, 64), (1 << 20) * 64 * OWN.first_bytes
    work = work_of(_schedule(grid_persistent=GridPersistent((0,), 0)), problem, MACHINE)
    assert work.read == 2 * one_visit


def test_one_barrier_is_paid_for_and_none_by_a_single_member() -> None:
    assert predict(_schedule(), _problem(25088, 64), MACHINE).synchronisation > 1e6 * MACHINE.grid_barrier
    assert work_of(_schedule(), _problem(500, 64), MACHINE).grid_barriers == 0


def test_one_visit_reads_once_and_only_the_last_member_combines() -> None:
    twice = _problem(1 << 20, 64)
    once = replace(twice, grid_persistent=ONCE)
    schedule = _schedule(grid_persistent=GridPersistent((0,), 0))
    one, two = work_of(schedule, once, MACHINE), work_of(schedule, twice, MACHINE)
    assert one.read == two.read / 2
    assert (one.rounds, one.l2_rounds) == (two.rounds, 0)
    assert (one.grid_barriers, one.messages) == (0, LAST_BLOCK_MESSAGES)
    assert one.serial <= two.serial
    assert one.instructions < two.instructions
    assert work_of(schedule, replace(once, extents=(500, 64)), MACHINE).messages == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"grid_persistent": GridPersistent((1,))}, "are not what is reduced"),
        ({"grid_persistent": GridPersistent((0,), -1)}, "are not 0 to"),
        ({"persistence": "shared"}, "fit the registers only"),
        ({"shared_spill": 1}, "spills nothing"),
    ],
)
def test_illegal_schedules(changes: dict[str, object], problem: str) -> None:
    reason = check_schedule(_schedule(**changes), (25088, 64), frozenset({0}), TARGET)
    assert reason is not None
    assert problem in reason


def test_slices_are_no_more_than_blocks() -> None:
    reason = check_schedule(_schedule(), (25088, 8192), frozenset({0}), TARGET)
    assert reason == "512 slices need as many blocks, of which 132 are resident"
