"""Schedules of grid reductions: legal and within the device for every size, and as wide as what was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.grid.candidates import grid_candidates
from mlirfuse.schedule.grid.cost import partials_cost, persistent_loop_cost
from mlirfuse.schedule.grid.heuristics import FEW_TILES, complete, grid_schedule, too_wide
from mlirfuse.schedule.grid.second_stage import PERIOD, with_grid_reduction
from mlirfuse.schedule.grid.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.heuristics import choose_schedule
from mlirfuse.schedule.model.disagreeing import TILES_IN_FLIGHT
from mlirfuse.schedule.model.loop_tiles import unrolled_rows
from mlirfuse.schedule.model.machine import RESERVED_SHARED
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
    schedule = grid_schedule(problem, device)
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


@pytest.mark.parametrize("grid_reduction", ["second_kernel", "atomics"])
def test_one_part_a_block(grid_reduction: str) -> None:
    schedule = with_grid_reduction(grid_schedule(norm_backward(384, 2), HOPPER), grid_reduction, HOPPER)
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


@pytest.mark.parametrize("columns", [384, 1024, 2048, 4096])
def test_tiles_are_loaded_ahead(columns: int) -> None:
    """What the measurements ask for: some 8 K elements in work on an SM, two or three tiles deep."""
    schedule = grid_schedule(norm_backward(columns, 2), HOPPER)
    assert schedule.persistent_loop is not None
    assert schedule.persistent_loop.stages in (2, 3)
    in_work = schedule.layout.elements_per_thread * schedule.layout.threads * schedule.blocks_per_sm
    assert 4096 <= in_work <= 16384


@pytest.mark.parametrize("totals", [1, 2])
@pytest.mark.parametrize(("columns", "rows", "blocks", "stages"), [(384, 8, 2, 2), (768, 4, 2, 2), (1024, 4, 1, 3)])
def test_warps_that_never_meet_have_asked_for_48_kib(
    columns: int, rows: int, blocks: int, stages: int, totals: int
) -> None:
    """And the rows' own numbers come with them: what was measured to be the fastest."""
    schedule = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER)
    persistent_loop = schedule.persistent_loop
    assert persistent_loop is not None
    assert (schedule.tile, schedule.blocks_per_sm, persistent_loop.stages) == ((rows, columns), blocks, stages)
    assert persistent_loop.row_values == "shared"
    assert 4 * rows * columns * blocks * stages == TILES_IN_FLIGHT


@pytest.mark.parametrize("columns", [1600, 2048, 4096])
def test_warps_that_meet_load_rows_own_numbers_one_step_ahead(columns: int) -> None:
    persistent_loop = grid_schedule(norm_backward(columns, 2), HOPPER).persistent_loop
    assert persistent_loop is not None
    assert (persistent_loop.stages, persistent_loop.row_values) == (3, "registers")


@pytest.mark.parametrize(
    ("columns", "streamed"), [(384, True), (1024, True), (1600, False), (2048, True), (4096, True), (16384, True)]
)
def test_rows_that_fill_their_threads_ask_how_to_be_copied(columns: int, streamed: bool) -> None:
    """Those of several warps side by side do not, nor those with padding: to ask took as long as it gained."""
    persistent_loop = grid_schedule(norm_backward(columns, 2), HOPPER).persistent_loop
    assert persistent_loop is not None
    assert persistent_loop.streamed == streamed


@pytest.mark.parametrize(("columns", "few"), [(1024, 0), (4096, FEW_TILES), (8192, FEW_TILES), (16384, 0)])
def test_few_tiles_of_a_row_each_are_loaded_one_ahead(columns: int, few: int) -> None:
    persistent_loop = grid_schedule(norm_backward(columns, 2), HOPPER).persistent_loop
    assert persistent_loop is not None
    assert (persistent_loop.stages, persistent_loop.few_tiles) == (3, few)


@pytest.mark.parametrize(
    ("columns", "totals", "rows", "blocks"),
    [
        (1600, 2, 2, 3),
        (2048, 1, 2, 2),
        (2048, 2, 2, 2),
        (3072, 1, 3, 1),
        (4096, 2, 2, 1),
        (5140, 1, 2, 1),
        (5140, 2, 2, 1),
        # One row, or rows side by side, where that was measured to be as fast or faster.
        (1024, 1, 1, 1),
        (4096, 1, 1, 2),
        (8192, 2, 1, 1),
        (16384, 2, 1, 1),
    ],
)
def test_rows_that_threads_are_unrolled_over(columns: int, totals: int, rows: int, blocks: int) -> None:
    schedule = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER)
    persistent_loop = schedule.persistent_loop
    assert persistent_loop is not None
    assert (schedule.layout.repeats[0], schedule.blocks_per_sm) == (rows, blocks)
    assert rows == 1 or schedule.layout.is_alone(persistent_loop.dims)


@pytest.mark.parametrize("columns", [2048, 3072, 5140])
def test_rows_are_not_unrolled_where_threads_would_carry_too_much(columns: int) -> None:
    """Reductions over a row's elements too are carried for each row of a tile; and of many reductions one row is too
    much.
    """
    problem = norm_backward(columns, 2)
    assert problem.persistent_loop is not None
    of_rows_too = replace(problem, persistent_loop=replace(problem.persistent_loop, outer_only=False))
    for other in (of_rows_too, norm_backward(columns, 2, totals=5)):
        schedule = grid_schedule(other, HOPPER)
        assert schedule.persistent_loop is not None
        assert all(schedule.layout.repeats[d] == 1 for d in schedule.persistent_loop.dims)


@pytest.mark.parametrize("columns", [384, 1024, 2048, 4096, 16384, 65536])
def test_the_last_tile_leaves_its_part_before_its_rows_are_reduced(columns: int) -> None:
    """Whether it is a row or several side by side, of a block or of a cluster; not where chunks are shared."""
    for totals in (1, 2):
        schedule = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER)
        assert schedule.persistent_loop is not None
        assert (schedule.order, schedule.persistent_loop.peeled) == ("breadth", not schedule.persistent_loop.chunk)


def test_what_leaves_wide_or_has_no_reduction_inside_is_not_peeled() -> None:
    problem = norm_backward(4096, 2)
    assert problem.persistent_loop is not None
    for changes in ({"wide": True}, {"inner": False}):
        persistent_loop = grid_schedule(
            replace(problem, persistent_loop=replace(problem.persistent_loop, **changes)), HOPPER
        ).persistent_loop
        assert persistent_loop is not None
        assert not persistent_loop.peeled


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


@pytest.mark.parametrize("totals", [1, 2])
@pytest.mark.parametrize("columns", [384, 1024, 4096, 8192])
def test_the_second_stage_waits_for_memory_once_or_twice(columns: int, totals: int) -> None:
    """Blocks share the columns, their threads the parts, and a thread asks for all of its own at once if they fit."""
    schedule = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER)
    persistent_loop = schedule.persistent_loop
    assert persistent_loop is not None
    parts, width = persistent_loop.second_stage_tile
    blocks = HOPPER.sms * schedule.blocks_per_sm
    assert -(-columns // width) >= min(blocks // 2, columns // 8)
    assert -(-blocks // (parts * persistent_loop.second_stage_reads)) <= 2
    assert persistent_loop.second_stage_reads * totals * persistent_loop.second_stage_layout.elements_per_thread <= 64


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


@pytest.mark.parametrize("totals", [1, 2])
@pytest.mark.parametrize(("columns", "cluster"), [(8192, 1), (16384, 2), (20480, 2), (32768, 4), (65536, 8)])
def test_wide_rows_are_split_over_clusters(columns: int, cluster: int, totals: int) -> None:
    """Some 8 K elements a block, breadth-first (H200: 0.84 to 0.94 of torch.add, depth-first 0.73 to 0.93)."""
    schedule = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER)
    assert schedule.layout.cluster == cluster
    assert schedule.order == "breadth" or columns == 20480


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


@pytest.mark.parametrize(
    ("columns", "alone"), [(32768, False), (65536, True), (69632, False), (131072, True), (200000, True)]
)
def test_blocks_reduce_columns_alone_where_these_fill_the_device(columns: int, alone: bool) -> None:
    """H200: 4.06 TB/s against 3.99 at 65536 columns, 3.95 against 3.70 at 131072."""
    schedule = choose_schedule(totals_alone(columns), HOPPER)
    assert (schedule.persistent_loop is None) == alone


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
    assert grid_schedule(problem, target) is None
    with pytest.raises(ScheduleError, match=f"holds a row of {columns} elements with its accumulators"):
        choose_schedule(problem, target)


@pytest.mark.parametrize("columns", [40, 1000, 1024, 5140, 32768])
@pytest.mark.parametrize("totals", [1, 2])
def test_the_search_finds_the_cheapest_of_all(columns: int, totals: int) -> None:
    problem = norm_backward(columns, 2, totals=totals)
    persistent_loop = problem.persistent_loop
    assert persistent_loop is not None
    costs = []
    for candidate in grid_candidates(problem, persistent_loop, HOPPER, 1.0):
        schedule = complete(problem, persistent_loop, candidate, HOPPER)
        if schedule is not None and schedule.persistent_loop is not None:
            cost = persistent_loop_cost(problem, persistent_loop, candidate, schedule.persistent_loop.stages)
            unrolled = unrolled_rows(persistent_loop, candidate.layout) > 1
            costs.append(
                (cost, cost + (0 if unrolled else partials_cost(persistent_loop, candidate)), unrolled, schedule)
            )
    kinds = [
        min((c for c in costs if c[2] == unrolled), key=lambda c: c[0], default=None) for unrolled in (False, True)
    ]
    assert grid_schedule(problem, HOPPER) == min((c for c in kinds if c is not None), key=lambda c: c[1])[3]


@pytest.mark.parametrize(("columns", "totals", "shared"), [(384, 1, True), (384, 2, False), (1024, 1, False)])
def test_narrow_rows_with_one_total_share_the_end(columns: int, totals: int, shared: bool) -> None:
    persistent_loop = grid_schedule(norm_backward(columns, 2, totals=totals), HOPPER).persistent_loop
    assert persistent_loop is not None
    assert (persistent_loop.chunk > 0) is shared


def test_an_end_is_shared_where_warps_never_meet_and_leave_one_part() -> None:
    problem = norm_backward(384, 2)
    assert problem.persistent_loop is not None
    for changes in ({"wide": True}, {"inner": False}):
        persistent_loop = grid_schedule(
            replace(problem, persistent_loop=replace(problem.persistent_loop, **changes)), HOPPER
        ).persistent_loop
        assert persistent_loop is not None
        assert not persistent_loop.chunk
