"""Choosing a schedule: pure functions of (problem, target), tested without a GPU.

Three families. An elementwise kernel streams: every thread moves one vector, in many small blocks. A kernel with
reductions keeps rows on chip: a row is spread over as many threads as make the best use of the register file. Over
reductions that fit no block or cluster the whole grid loops together.
"""

from __future__ import annotations

from functools import lru_cache

from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.grid.heuristics import SQUEEZED, grid_schedule, too_wide
from mlirfuse.schedule.grid.second_stage import cheapest_grid_reduction, with_grid_reduction
from mlirfuse.schedule.grid.wide_rows import column_schedule, fills, finer_schedule
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.orders.candidates import ordered_candidates
from mlirfuse.schedule.orders.windows import window_candidates
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.rows.candidates import row_candidates
from mlirfuse.schedule.rows.chunked import multi_pass_schedule, shared_schedule
from mlirfuse.schedule.rows.column_tiles import column_tile_schedule
from mlirfuse.schedule.rows.cost import row_cost
from mlirfuse.schedule.rows.layouts import unaligned_vector
from mlirfuse.schedule.rows.transposed import transposed_schedule
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

ELEMENTWISE_THREADS = 256
"""Threads of an elementwise block: with 16 bytes a thread as fast as a copy."""

TRANSPOSED_ELEMENTS = 32
"""Elements of a row that a thread accesses side by side where its neighbours are in other rows: two sectors of 16-bit
elements, or more."""

MOST_READ_BYTES = 800
"""Bytes that a thread of an elementwise kernel reads at most, by narrower accesses where arrays are many: ptxas has all
loads under way at once, and spills."""


def choose_schedule(problem: Problem, target: Target, grid_reduction: str = "auto") -> Schedule:
    """The schedule of the least estimated cost.

    Args:
        problem: the problem.
        target: the architecture.
        grid_reduction: how the partials of a persistent loop are combined, one of `persistent_loop.GRID_REDUCTIONS`;
            `auto` for the fastest of those that give the same bits on every run.

    Raises:
        ScheduleError: what a grid reduces fits no cluster in whole rows, and no other family has a schedule.
    """
    schedule = _choose_family(problem, target)
    if schedule.persistent_loop is None:
        return schedule
    who = cheapest_grid_reduction(schedule, problem, target) if grid_reduction == "auto" else grid_reduction
    return with_grid_reduction(schedule, who, target)


@lru_cache(maxsize=256)  # passes that compare kernels ask before the schedule is assigned
def _choose_family(problem: Problem, target: Target) -> Schedule:
    """The cheapest schedule of the first family that has one; partials are combined by all blocks."""
    if problem.persistent_loop and not problem.loop_is_optional:
        return _choose_loop(problem, target)
    if not problem.reduced:
        return _fastest_order(problem, target)
    windows = [s for s in window_candidates(problem) if not check_schedule(s, problem.extents, problem.reduced, target)]
    return _fastest(problem, target, [_choose_rows(problem, target), *windows])


def _choose_rows(problem: Problem, target: Target) -> Schedule:
    """The schedule of rows, in registers or in chunks."""
    candidates = list(row_candidates(problem, target))
    alone = [c for c in candidates if c.schedule.layout.cluster == 1]
    if (
        problem.persistent_loop
        and not alone
        and (loop := _optional_loop(problem, target, over_clusters=bool(candidates)))
    ):
        return loop
    if not alone and (column_tiles := column_tile_schedule(problem, target)):
        return column_tiles
    shared = shared_schedule(problem, target)
    pairs = [c for c in alone if c.blocks > 1]
    # In order of speed: two rows on an SM in registers, one row, rows in chunks in shared memory, a row over a cluster.
    free = [c for c in pairs if not c.schedule.shared_spill]
    shared_by_idle = _leaves_sms_idle(problem, target) and not unaligned_vector(problem)
    few = [c for c in candidates if not c.schedule.shared_spill] if shared_by_idle else []
    # Clusters that keep part of unaligned rows in shared memory are short of registers for the ends of rows.
    split = [c for c in candidates if not c.schedule.shared_spill] if unaligned_vector(problem) else []
    for choice in (few, free, pairs, alone, shared, split, candidates):
        if isinstance(choice, Schedule):
            return choice
        if choice:
            return min(choice, key=lambda c: row_cost(c, problem, target)).schedule
    return multi_pass_schedule(problem, target)


def _fastest_order(problem: Problem, target: Target) -> Schedule:
    """The elementwise schedule that is predicted to be the fastest, the usual one where others gain nothing."""
    usual = elementwise_schedule(problem)
    found = (s for s in ordered_candidates(problem) if not check_schedule(s, problem.extents, problem.reduced, target))
    return _fastest(problem, target, [usual, *found])


def _fastest(problem: Problem, target: Target, found: list[Schedule]) -> Schedule:
    """The schedule of the least predicted time."""
    from mlirfuse.machine.lookup import machine_of  # here, as `predict` imports the proposals of all families
    from mlirfuse.schedule.predict.predict import predict
    from mlirfuse.schedule.predict.space import with_extents

    sized, machine = with_extents(problem), machine_of(target)
    return min(found, key=lambda schedule: predict(schedule, sized, machine).microseconds)


def _leaves_sms_idle(problem: Problem, target: Target) -> bool:
    """Whether there are known to be fewer rows than SMs, so that one block a row would leave SMs idle."""
    if problem.vector_dim not in problem.reduced:
        return False
    rows = problem.tiles([1] * problem.rank, set(range(problem.rank)) - problem.reduced)
    return rows is not None and rows < target.sms


def _choose_loop(problem: Problem, target: Target) -> Schedule:
    """The schedule of reductions that need the whole grid."""
    assert problem.persistent_loop is not None
    columns = column_schedule(problem)
    chosen = _loop_or_columns(problem, columns, target) or columns
    if chosen is None and not problem.persistent_loop.inner:
        # Reductions that are not fused with reductions of rows have no other form.
        chosen = grid_schedule(problem, target, SQUEEZED)
    if chosen is None:
        raise ScheduleError(too_wide(problem, target), hint="reduce the rows in a function of its own")
    return chosen


def _optional_loop(problem: Problem, target: Target, *, over_clusters: bool) -> Schedule | None:
    """A persistent loop of the whole grid, or of columns, where blocks could reduce alone, but no block holds what it
    reduces.

    Args:
        problem: the problem.
        target: the architecture.
        over_clusters: whether clusters hold what they reduce.

    Returns:
        The schedule; None where blocks or clusters alone are faster, or no persistent loop fits.
    """
    if problem.vector_dim in problem.reduced:
        is_known = None not in problem.extents
        return finer_schedule(problem, target) if is_known and not over_clusters else None
    columns = column_schedule(problem)
    return _loop_or_columns(problem, columns, target) or (columns if over_clusters else None)


def _loop_or_columns(problem: Problem, columns: Schedule | None, target: Target) -> Schedule | None:
    """Columns that blocks reduce alone, if they fill the device, or a persistent loop over rows or parts of them, if
    one fits.
    """
    assert problem.persistent_loop is not None
    if columns is not None and fills(columns, problem, target):
        return columns
    if any(extent is None for d, extent in enumerate(problem.extents) if d not in problem.persistent_loop.dims):
        return None  # a persistent loop's tiles hold all that is not looped over
    return grid_schedule(problem, target) or finer_schedule(problem, target)


def elementwise_schedule(problem: Problem) -> Schedule:
    """One vector a thread, threads along the contiguous dimension first and then outwards.

    Where arrays are contiguous along different dimensions, as one and its transpose, tiles go through shared memory;
    where the arrays are too narrow for that, lanes lie along one of the dimensions and vectors along the other, so that
    a warp accesses whole sectors of both.
    """
    if transposed := transposed_schedule(problem, ELEMENTWISE_THREADS, MOST_READ_BYTES):
        return transposed
    vector = problem.vector
    while vector > 1 and vector * problem.read_bytes > MOST_READ_BYTES:
        vector //= 2
    fill = LayoutBuilder(problem.extents, problem.vector_dim, vector)
    across = problem.transposed.dim if problem.transposed else None
    outwards = [d for d in reversed(range(problem.rank)) if d not in (problem.vector_dim, across)]
    order = [problem.vector_dim, *outwards]
    if across is not None:
        order.insert(0, across)
        most = min(TRANSPOSED_ELEMENTS, MOST_READ_BYTES // max(1, problem.read_bytes)) // vector
        fill.repeats[problem.vector_dim] = max(1, min(most, fill.left(problem.vector_dim)))
    for dim in order:
        fill.add_lanes(dim)
    for dim in order:
        fill.add_warps(dim, ELEMENTWISE_THREADS // WARP)
    fill.rest_of_lanes(order[-1])
    layout = fill.layout()
    return Schedule(tuple(min(n, e or n) for n, e in zip(layout.extents, problem.extents, strict=True)), layout)
