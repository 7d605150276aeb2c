"""Who adds up the parts of a persistent loop, where nobody is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage, second_stages
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.target import Target, target_of

HOPPER = target_of("sm_90a")


def sums(
    columns: int, *, rows: int | None = None, kept: frozenset[int] = frozenset({1}), wide: bool = False
) -> Problem:
    """Sums of rows or, with nothing kept, of everything, in half precision."""
    persistent_loop = PersistentLoopProblem((0,), kept, accumulator_bytes=4, column_bytes=0, inner=False, wide=wide)
    return Problem((rows, columns), frozenset({0, 1}) - kept, 1, 8, 2, 2, persistent_loop=persistent_loop)


def grid_reduction(problem: Problem, target: Target = HOPPER, asked: str = "auto") -> str:
    persistent_loop = choose_schedule(problem, target, asked).persistent_loop
    assert persistent_loop is not None
    return persistent_loop.grid_reduction


@pytest.mark.parametrize("columns", [8, 384, 4096])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90a"])
def test_a_sum_of_everything_has_a_second_kernel_where_that_starts_early(columns: int, chip: str) -> None:
    """Where it is launched before the first one has ended, it costs less than that each block counts itself."""
    target = target_of(chip)
    who = grid_reduction(sums(columns, kept=frozenset()), target)
    assert (who == "second_kernel") == target.has_dependent_launch


@pytest.mark.parametrize(
    ("columns", "who"), [(8, "second_kernel"), (64, "second_kernel"), (384, "second_kernel"), (16384, "second_kernel")]
)
def test_sums_of_columns_are_combined_by_as_many_blocks_as_they_have_slices(columns: int, who: str) -> None:
    assert grid_reduction(sums(columns)) == who


@pytest.mark.parametrize("rows", [None, 1 << 20, 300])
@pytest.mark.parametrize("asked", ["auto", "grid_sync", "last_block", "second_kernel"])
def test_sums_that_leave_wide_are_added_up_by_periods(rows: int | None, asked: str) -> None:
    """The error of results in single precision would grow with the rows otherwise."""
    loop = choose_schedule(sums(384, rows=rows, wide=True), HOPPER, asked).persistent_loop
    assert loop is not None
    assert loop.period == PERIOD


@pytest.mark.parametrize(("planes", "lanes"), [(1, 2), (4, 2), (16, 8), (256, 32)])
def test_lanes_share_all_that_is_kept(planes: int, lanes: int) -> None:
    """Few partials of many numbers leave most lanes without a partial: numbers of other dimensions are theirs."""
    persistent_loop = PersistentLoopProblem((0,), frozenset({1, 2}), 4, 0, inner=False, wide=False)
    problem = Problem((256, planes, 256), frozenset({0}), 2, 4, 4, 4, persistent_loop=persistent_loop)
    layout = BlockedLayout((1, 1, 4), (1, 1, 32), (1, 8, 1), (1, 8, 1), (1, 4, 2))
    tile, second_stage, reads = choose_second_stage(problem, persistent_loop, layout, 1, HOPPER)
    assert second_stage.lanes[1] * second_stage.lanes[2] == lanes
    assert second_stage.lanes[0] == 32 // lanes
    assert tile == (8 * 32 // lanes, second_stage.lanes[1], min(256, 32 * second_stage.lanes[2]))
    assert tile[0] * reads >= 16  # all partials at once


@pytest.mark.parametrize("cluster", [1, 2, 4, 8])
def test_second_kernels_are_for_clusters_that_all_sms_hold(cluster: int) -> None:
    schedule = choose_schedule(sums(384), HOPPER)
    clustered = replace(schedule, layout=replace(schedule.layout, blocks=(1, cluster)))
    assert ("second_kernel" in second_stages(clustered, "auto")) == (cluster <= 2)
    assert second_stages(clustered, "second_kernel") == ("second_kernel",)


@pytest.mark.parametrize("asked", ["grid_sync", "last_block", "second_kernel", "atomics"])
@pytest.mark.parametrize("kept", [frozenset(), frozenset({1})])
def test_who_is_asked_for_combines(kept: frozenset[int], asked: str) -> None:
    assert grid_reduction(sums(384, kept=kept), asked=asked) == asked
