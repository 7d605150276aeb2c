"""Schedules of grid reductions: legal and within the device for every size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.choice.choice import choose_schedule, too_wide
from mlirfuse.schedule.choice.proposals import loops
from mlirfuse.schedule.grid.second_stage import PERIOD, with_grid_reduction
from mlirfuse.schedule.model.loops import are_apart, padding, unrolled_rows
from mlirfuse.schedule.model.machine import RESERVED_SHARED
from mlirfuse.schedule.model.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.parts.persistent_loop import SUM_ROWS
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target, target_of

COLUMNS = (1, 2, 3, 7, 32, 40, 100, 257, 384, 640, 768, 1000, 1024, 1600, 2048, 3000, 4096, 5140, 6144)
WIDE = (8192, 12288, 16384, 20480, 32768)
WIDEST = (65536,)
SIZES = {
    "sm_80": COLUMNS,
    "sm_120": COLUMNS + WIDE,
    "sm_90a": COLUMNS + WIDE + WIDEST,
    "sm_100a": COLUMNS + WIDE + WIDEST,
}
"""Rows that must fit: what an architecture holds follows from its clusters and its shared memory."""

HOPPER = target_of("sm_90a")


def norm_backward(columns: int, itemsize: int, *, totals: int = 1, rows: int | None = None) -> Problem:
    """dx and `totals` sums over rows of two inputs, with a reduction inside of each row."""
    vector = next(n for n in (16 // itemsize, 4, 2, 1) if columns % n == 0)
    sums = 4 * totals
    persistent_loop = PersistentLoopProblem(
        (0,), frozenset({1}), accumulator_bytes=sums, column_bytes=itemsize, inner=True, row_bytes=sums
    )
    return Problem(
        extents=(rows, columns),
        reduced=frozenset({0, 1}),
        vector_dim=1,
        vector=vector,
        full_bytes=3 * itemsize,
        read_bytes=2 * itemsize,
        live_bytes=2 * itemsize,
        column_bytes=itemsize,
        dependent_reductions=1,
        persistent_loop=persistent_loop,
    )


def grid_schedule(problem: Problem, target: Target) -> Schedule:
    """The persistent loop that is chosen for a grid barrier."""
    return choose_schedule(problem, target, "grid_sync")


def check(schedule: Schedule, problem: Problem, target: Target) -> None:
    persistent_loop, layout = schedule.persistent_loop, schedule.layout
    assert check_schedule(schedule, problem.extents, problem.reduced, target) is None
    assert persistent_loop is not None
    assert problem.persistent_loop is not None
    assert persistent_loop.dims == problem.persistent_loop.dims
    assert (persistent_loop.second_stage_layout.threads, persistent_loop.second_stage_layout.cluster) == (
        layout.threads,
        layout.cluster,
    )
    assert schedule.blocks_per_sm >= 1
    assert schedule.blocks_per_sm * layout.threads <= target.threads_per_sm
    shared = persistent_loop_bytes(problem, layout, persistent_loop)
    assert shared <= target.shared_per_block
    assert (shared + RESERVED_SHARED) * schedule.blocks_per_sm <= target.shared_per_sm
    # No block of a cluster is without elements of a row.
    columns = schedule.tile[1]
    assert (layout.blocks[1] - 1) * (layout.extents[1] // layout.blocks[1]) < columns


@pytest.mark.parametrize("sms", [1, 4, 7, 16])
@pytest.mark.parametrize("columns", [384, 20480, 65536])
def test_clusters_have_no_more_blocks_than_a_device_multiprocessors(columns: int, sms: int) -> None:
    """What no such cluster holds is declined, as what no larger one does."""
    device = HOPPER.with_sms(sms)
    problem = norm_backward(columns, 2)
    schedule = next(loops(problem, device), None)
    assert device.max_cluster == min(8, 1 << (sms.bit_length() - 1))
    assert device.with_sms(HOPPER.sms) == HOPPER
    if schedule is None:
        assert sms < HOPPER.max_cluster
        assert f"no cluster of {device.max_cluster} " in too_wide(problem, device)
        return
    check(schedule, problem, device)
    other = with_grid_reduction(schedule, "second_kernel", device).persistent_loop
    assert other is not None
    assert other.blocks >= 1


@pytest.mark.parametrize("chip", SIZES)
@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize("totals", [1, 2])
def test_sizes(totals: int, itemsize: int, chip: str) -> None:
    target = target_of(chip)
    for columns in SIZES[chip][totals - 1 :: 2]:
        problem = norm_backward(columns, itemsize, totals=totals)
        check(grid_schedule(problem, target), problem, target)


@pytest.mark.parametrize("chip", SIZES)
@pytest.mark.parametrize("grid_reduction", ["last_block", "second_kernel", "atomics"])
def test_who_combines_can_be_asked_for(grid_reduction: str, chip: str) -> None:
    target = target_of(chip)
    for columns in SIZES[chip][::2]:
        problem = norm_backward(columns, 2, totals=2)
        check(with_grid_reduction(grid_schedule(problem, target), grid_reduction, target), problem, target)


@pytest.mark.parametrize("columns", [7, 384, 4096, 20480])
def test_rows_of_sums_are_read_by_all_threads(columns: int) -> None:
    persistent_loop = with_grid_reduction(
        grid_schedule(norm_backward(columns, 2), HOPPER), "atomics", HOPPER
    ).persistent_loop
    assert persistent_loop is not None
    rows, width = persistent_loop.second_stage_tile
    assert (rows, persistent_loop.second_stage_reads, persistent_loop.period) == (1, SUM_ROWS, 0)
    assert width == min(columns, persistent_loop.second_stage_layout.extents[1])
    assert persistent_loop.second_stage_layout.elements_per_thread <= 4


def test_atomic_additions_are_one_part_a_block() -> None:
    schedule = with_grid_reduction(grid_schedule(norm_backward(384, 2), HOPPER), "atomics", HOPPER)
    assert schedule.persistent_loop is not None
    assert "takes one partial a block" in (replace(schedule.persistent_loop, period=8).check(schedule.layout) or "")


@pytest.mark.parametrize("kept", [frozenset({2}), frozenset({1, 2}), frozenset({1}), frozenset()])
def test_more_dimensions(kept: frozenset[int]) -> None:
    """Reductions that vary along some, one or none of the dimensions that are not looped over."""
    persistent_loop = PersistentLoopProblem((0,), kept, accumulator_bytes=4, column_bytes=0, inner=False)
    problem = Problem((None, 12, 256), frozenset({0, 1, 2}) - kept, 2, 8, 2, 2, persistent_loop=persistent_loop)
    schedule = grid_schedule(problem, HOPPER)
    assert check_schedule(schedule, problem.extents, problem.reduced, HOPPER) is None
    assert schedule.persistent_loop is not None
    for d, n in enumerate(schedule.persistent_loop.second_stage_tile):
        assert n == 1 or d == 0 or d in kept
    asked = with_grid_reduction(schedule, "atomics", HOPPER)
    assert check_schedule(asked, problem.extents, problem.reduced, HOPPER) is None


def test_a_peeled_loop_has_one_part_a_block() -> None:
    schedule = grid_schedule(norm_backward(4096, 2), HOPPER)
    assert schedule.persistent_loop is not None
    assert "without a period" in (replace(schedule.persistent_loop, period=8).check(schedule.layout) or "")


def test_a_negative_few_tiles_is_refused() -> None:
    schedule = grid_schedule(norm_backward(4096, 2), HOPPER)
    assert schedule.persistent_loop is not None
    assert "few_tiles must be at least 0" in (
        replace(schedule.persistent_loop, few_tiles=-1).check(schedule.layout) or ""
    )


def test_sums_that_leave_wide_are_stored_in_parts() -> None:
    problem = norm_backward(4096, 2)
    assert problem.persistent_loop is not None
    wide = replace(problem, persistent_loop=replace(problem.persistent_loop, wide=True))
    for given, period in ((problem, 0), (wide, PERIOD)):
        schedule = grid_schedule(given, HOPPER)
        assert schedule.persistent_loop is not None
        assert schedule.persistent_loop.period == period


def test_odd_rows_are_not_loaded_ahead() -> None:
    """Single elements of 2 bytes have no asynchronous copy."""
    schedule = grid_schedule(norm_backward(257, 2), HOPPER)
    assert schedule.persistent_loop is not None
    assert schedule.persistent_loop.stages == 1


def totals_alone(columns: int, accumulator_bytes: int = 4) -> Problem:
    vector = next(n for n in (8, 4, 2, 1) if columns % n == 0)
    persistent_loop = PersistentLoopProblem(
        (0,), frozenset({1}), accumulator_bytes=accumulator_bytes, column_bytes=0, inner=False
    )
    return Problem((None, columns), frozenset({0}), 1, vector, 4, 4, persistent_loop=persistent_loop)


@pytest.mark.parametrize("accumulator_bytes", [4, 12, 40])
@pytest.mark.parametrize("columns", [100000, 127000, 131071, 200000, 1 << 22])
def test_reductions_alone_have_rows_of_any_size(columns: int, accumulator_bytes: int) -> None:
    problem = totals_alone(columns, accumulator_bytes)
    schedule = choose_schedule(problem, HOPPER)
    assert check_schedule(schedule, problem.extents, problem.reduced, HOPPER) is None
    assert schedule.layout.elements_per_thread * accumulator_bytes <= 4 * 64


@pytest.mark.parametrize("kept", [None, 3])
def test_sums_of_everything_are_looped_in_parts_of_rows(kept: int | None) -> None:
    extents, dims = ((None, 200000), (0, 1)) if kept is None else ((None, kept, 200000), (0, 2))
    inner = frozenset(range(len(extents))) - set(dims)
    persistent_loop, finer = (
        PersistentLoopProblem(d, inner, accumulator_bytes=4, column_bytes=0, inner=False) for d in (dims[:1], dims)
    )
    problem = Problem(
        extents, frozenset(dims), len(extents) - 1, 8, 2, 2, persistent_loop=persistent_loop, finer_loop=finer
    )
    schedule = choose_schedule(problem, HOPPER)
    assert schedule.persistent_loop is not None
    assert schedule.persistent_loop.dims == dims
    assert check_schedule(schedule, problem.extents, problem.reduced, HOPPER) is None


@pytest.mark.parametrize(("columns", "chip"), [(65536, "sm_80"), (1 << 20, "sm_90a")])
def test_rows_that_fit_nowhere(columns: int, chip: str) -> None:
    problem, target = norm_backward(columns, 2), target_of(chip)
    assert not list(loops(problem, target))
    with pytest.raises(ScheduleError, match=f"holds a row of {columns} elements with its accumulators"):
        choose_schedule(problem, target)


@pytest.mark.parametrize("columns", [384, 1600, 4096, 16384])
@pytest.mark.parametrize("totals", [1, 2])
def test_every_loop_is_legal_and_complete(columns: int, totals: int) -> None:
    """Row values come with the tile where warps never meet, and the last tile is peeled where no period forbids it."""
    problem = norm_backward(columns, 2, totals=totals)
    assert problem.persistent_loop is not None
    found = list(loops(problem, HOPPER))
    assert found
    for schedule in found:
        check(schedule, problem, HOPPER)
        loop = schedule.persistent_loop
        assert loop is not None
        apart = are_apart(problem.persistent_loop, schedule.layout, schedule.order)
        assert (loop.row_values == "shared") == (apart and loop.stages > 1)
        assert loop.peeled == (schedule.order == "breadth")
        assert not loop.streamed or padding(problem, problem.persistent_loop, schedule.layout) == 1


@pytest.mark.parametrize("changes", [{"wide": True}, {"inner": False}])
def test_what_leaves_wide_or_has_no_reduction_inside_is_not_peeled(changes: dict[str, bool]) -> None:
    for columns in (384, 4096):
        problem = norm_backward(columns, 2)
        assert problem.persistent_loop is not None
        changed = replace(problem, persistent_loop=replace(problem.persistent_loop, **changes))
        for schedule in loops(changed, HOPPER):
            assert schedule.persistent_loop is not None
            assert not schedule.persistent_loop.peeled


@pytest.mark.parametrize("columns", [2048, 3072, 5140])
def test_rows_are_not_unrolled_where_threads_would_carry_too_much(columns: int) -> None:
    """Reductions over a row's elements too are carried for each row of a tile."""
    problem = norm_backward(columns, 2)
    assert problem.persistent_loop is not None
    of_rows_too = replace(problem, persistent_loop=replace(problem.persistent_loop, outer_only=False))
    assert of_rows_too.persistent_loop is not None
    for schedule in loops(of_rows_too, HOPPER):
        assert unrolled_rows(of_rows_too.persistent_loop, schedule.layout) == 1
