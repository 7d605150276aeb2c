"""Rows that one warp or less holds: threads with several of them, and values that all rows share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.machine import MachineModel, machine_of
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.problem import Problem, RowReduction, SharedInstructions
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)


@pytest.fixture(scope="module")
def h200() -> MachineModel:
    return machine_of(TARGET)


def problem(row: int) -> Problem:
    part = RowReduction(frozenset({1}), frozenset({0}), 4)
    return Problem((1 << 18, row), frozenset({1}), 1, 8, 4, 2, live_bytes=4, reductions=(part,), instructions=8.0)


def of_rows(found: Problem) -> dict[int, Schedule]:
    """A schedule for each number of rows that a thread has."""
    return {c.layout.repeats[0]: c for c in row_candidates(found, TARGET)}


def test_threads_have_several_short_rows() -> None:
    assert set(of_rows(problem(64))) == {1, 2, 4}
    assert set(of_rows(problem(256))) == {1, 2, 4}
    assert set(of_rows(problem(512))) == {1}


def test_values_that_rows_share_cost_less_where_threads_have_several(h200: MachineModel) -> None:
    found = problem(64)
    shared = replace(found, shared_instructions=(SharedInstructions(frozenset({1}), 40.0, 2.0),))
    one, four = (of_rows(found)[rows] for rows in (1, 4))

    def more(schedule: Schedule) -> float:
        return predict(schedule, shared, h200).issue - predict(schedule, found, h200).issue

    assert more(one) > 3.5 * more(four) > 0


def test_values_of_rows_cost_less_where_few_threads_share_one(h200: MachineModel) -> None:
    found = replace(problem(4096), shared_instructions=(SharedInstructions(frozenset({0}), 40.0, 2.0),))
    plain = replace(found, shared_instructions=())
    schedules = sorted(row_candidates(found, TARGET), key=lambda s: s.layout.warps[1])
    costs = [predict(s, found, h200).issue - predict(s, plain, h200).issue for s in (schedules[0], schedules[-1])]
    assert 0 < costs[0] < costs[1]
