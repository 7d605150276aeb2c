"""Schedules that stream what is reduced."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.schedule.model.registers import HELD_REGISTERS
from mlirfuse.schedule.problem import Problem, RowReduction
from mlirfuse.schedule.rows.streamed import streamed_schedules
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
SUMS = Problem(
    extents=(64, None, 65, 1000),
    reduced=frozenset({0, 2}),
    vector_dim=3,
    vector=8,
    full_bytes=2,
    read_bytes=2,
    dependent_reductions=1,
    reductions=(RowReduction(frozenset({0, 2}), frozenset({1, 3}), 4),),
)


def test_threads_hold_what_registers_hold() -> None:
    """However long the reduced dimensions are."""
    schedules = list(streamed_schedules(SUMS, TARGET))
    assert schedules
    for schedule in schedules:
        assert schedule.layout.elements_per_thread * 6 <= HELD_REGISTERS * 4
        assert schedule.tile[1] == 1 or schedule.layout.lanes[1] * schedule.layout.warps[1] > 1


def test_one_reduced_dimension_has_a_remainder() -> None:
    for schedule in streamed_schedules(SUMS, TARGET):
        ragged = [d for d in SUMS.reduced if schedule.tile[d] > 1 and (SUMS.extents[d] or 1) % schedule.tile[d]]
        assert len(ragged) < 2


def test_few_columns_of_run_time_rows_are_left_to_the_grid() -> None:
    rows = replace(SUMS, extents=(None, 8192), reduced=frozenset({0}), vector_dim=1)
    rows = replace(rows, reductions=(RowReduction(frozenset({0}), frozenset({1}), 4),))
    assert all(8192 // s.tile[1] >= 2 * TARGET.sms for s in streamed_schedules(rows, TARGET))
    assert list(streamed_schedules(replace(rows, extents=(None, 1 << 20)), TARGET))


def test_rows_that_are_needed_again_stay_on_chip() -> None:
    rows = replace(SUMS, extents=(512, 4096), reduced=frozenset({1}), vector_dim=1, live_bytes=2)
    assert not list(streamed_schedules(rows, TARGET))
