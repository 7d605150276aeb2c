"""Elementwise schedules of extents that are no powers of two."""

from __future__ import annotations

import pytest

from mlirfuse.schedule.elementwise import elementwise_schedules
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import TARGETS

TARGET = TARGETS["sm_90a"].with_sms(132)
RUN_TIME = Problem((None, None, 96), frozenset(), 2, 8, 8, 4, hints=(100_000, 3, None))


@pytest.mark.parametrize(
    ("problem", "inner"),
    [
        (Problem((100_000, 96), frozenset(), 1, 8, 8, 4), (96,)),
        (Problem((100_000, 3, 96), frozenset(), 2, 8, 8, 4), (3, 96)),
        (Problem((100_000, 6, 224), frozenset(), 2, 8, 8, 4), (6, 224)),
        (RUN_TIME, (3, 96)),
    ],
)
def test_threads_of_short_rows_have_all_of_an_odd_factor(problem: Problem, inner: tuple[int, ...]) -> None:
    """No thread is beside a row, or behind the last of few rows."""
    layouts = [schedule.layout for schedule in elementwise_schedules(problem, TARGET)]
    exact = [each for each in layouts if tuple(each.extents[-len(inner) :]) == inner and each.lanes[0] > 1]
    assert exact
    assert all(each.threads in (32, 64, 128, 256, 512) for each in exact)


def test_rows_of_powers_of_two_are_left_to_lanes() -> None:
    for schedule in elementwise_schedules(Problem((100_000, 4, 64), frozenset(), 2, 8, 8, 4), TARGET):
        assert all(n & (n - 1) == 0 for n in schedule.layout.repeats)
