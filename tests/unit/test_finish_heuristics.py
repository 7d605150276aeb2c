"""Who adds up the parts of a walk, where nobody is asked for."""

from __future__ import annotations

import pytest

from mlirfuse.schedule.heuristics import choose_schedule
from mlirfuse.schedule.problem import Problem, WalkProblem
from mlirfuse.target import Target, target_of

HOPPER = target_of("sm_90a")


def sums(columns: int, *, rows: int | None = None, kept: frozenset[int] = frozenset({1})) -> Problem:
    """Sums of rows or, with nothing kept, of everything, in half precision."""
    walk = WalkProblem((0,), kept, total_bytes=4, column_bytes=0, inner=False)
    return Problem((rows, columns), frozenset({0, 1}) - kept, 1, 8, 2, 2, walk=walk)


def finish(problem: Problem, target: Target = HOPPER, asked: str = "auto") -> str:
    walk = choose_schedule(problem, target, asked).walk
    assert walk is not None
    return walk.finish


@pytest.mark.parametrize("columns", [8, 384, 4096])
def test_a_sum_of_everything_is_finished_by_the_last_block(columns: int) -> None:
    """Its parts are one slice: that all blocks wait gains nothing."""
    assert finish(sums(columns, kept=frozenset())) == "last_block"


@pytest.mark.parametrize(("columns", "who"), [(8, "last_block"), (64, "slices"), (384, "slices"), (16384, "slices")])
def test_sums_of_columns_are_finished_by_as_many_blocks_as_they_have_slices(columns: int, who: str) -> None:
    assert finish(sums(columns)) == who


@pytest.mark.parametrize("asked", ["slices", "last_block", "second_kernel", "atomics"])
@pytest.mark.parametrize("kept", [frozenset(), frozenset({1})])
def test_who_is_asked_for_finishes(kept: frozenset[int], asked: str) -> None:
    assert finish(sums(384, kept=kept), asked=asked) == asked
