"""Choosing how a persistent loop runs over rows that it reduces: a pure function of (problem, target).

Bytes in flight on an SM decide. Asynchronous copies into shared memory keep them there without registers: some 8192
elements of a tile on an SM, two or three tiles deep. Where a row is several warps', threads are unrolled over two to
four rows, so that the warps exchange partials less often (`grid/cost.py`). Wider rows are spread over clusters, so that
a block holds as much of one. Figures: `benchmarks/results/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from mlirfuse.schedule.grid.candidates import GridCandidate, grid_candidates, in_work
from mlirfuse.schedule.grid.cost import partials_cost, persistent_loop_cost
from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.model.disagreeing import TILES_IN_FLIGHT
from mlirfuse.schedule.model.loop_tiles import are_apart, padding, row_elements, unrolled_rows
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

SQUEEZED = 0.75
"""Share of the estimated registers that ptxas may have to do with, where no other schedule is left."""

CHUNK_ELEMENTS, SHARED_ACCUMULATORS, SHARED_ROW = 12 * 1024, 4, 512
"""Elements of a small chunk of the dynamic tail; bytes of an element's accumulators, and elements of a row, up to which
blocks share the tail. More chunks leave more partials for the second stage, and larger ones end less together."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

FEW_TILES = 16
"""Tiles of a block up to which one is loading and not two, where a tile is one row or unrolled rows: less work is left
when the last data arrive."""


@lru_cache(maxsize=256)  # whether there is one is asked before it is taken
def grid_schedule(problem: Problem, target: Target, squeeze: float = 1.0) -> Schedule | None:
    """The best schedule for a problem with a `persistent_loop`; None where no cluster holds a row with its
    accumulators.

    Args:
        problem: the problem.
        target: the architecture.
        squeeze: the share of the registers that are estimated that ptxas may have to do with.
    """
    assert problem.persistent_loop is not None
    persistent_loop = problem.persistent_loop
    candidates = list(grid_candidates(problem, persistent_loop, target, squeeze))
    unrolled = [candidate for candidate in candidates if unrolled_rows(persistent_loop, candidate.layout) > 1]
    others = [candidate for candidate in candidates if unrolled_rows(persistent_loop, candidate.layout) == 1]
    found = [
        best for few in (others, unrolled) if (best := _cheapest(problem, persistent_loop, few, target)) is not None
    ]
    # Unrolled rows are compared with the best of the others.
    return min(found, key=lambda best: best[0])[1] if found else None


def _cheapest(
    problem: Problem, persistent_loop: PersistentLoopProblem, candidates: Sequence[GridCandidate], target: Target
) -> tuple[float, Schedule] | None:
    """The cheapest of some candidates, completed, and its cost with that of its partials; None where none is legal."""
    bounds = [
        persistent_loop_cost(problem, persistent_loop, candidate, _most_stages(problem, persistent_loop, candidate))
        for candidate in candidates
    ]
    best: tuple[float, int, Schedule] | None = None
    # Choosing a second stage and counting shared memory takes longer than the cost of a candidate with all its stages.
    # So candidates are completed from the cheapest on, until no other can be cheaper; of equals the first is taken.
    for bound, position in sorted(zip(bounds, range(len(candidates)), strict=True)):
        if best is not None and bound > best[0]:
            break
        schedule = complete(problem, persistent_loop, candidates[position], target)
        if schedule is None or schedule.persistent_loop is None:
            continue
        cost = persistent_loop_cost(problem, persistent_loop, candidates[position], schedule.persistent_loop.stages)
        if best is None or (cost, position) < best[:2]:
            best = cost, position, schedule
    if best is None:
        return None
    chosen = candidates[best[1]]
    return best[0] + (
        partials_cost(persistent_loop, chosen) if unrolled_rows(persistent_loop, chosen.layout) == 1 else 0.0
    ), best[2]


def too_wide(problem: Problem, target: Target) -> str:
    """Why `grid_schedule` finds no schedule."""
    return f"no cluster of {target.max_cluster} holds a row of {row_elements(problem)} elements with its accumulators"


def _most_stages(problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate) -> int:
    """Tiles that a block has under way; where its warps never wait for each other, as many as keep memory busy."""
    if problem.vector == 1:  # asynchronous copies move 4 bytes or more
        return 1
    if not are_apart(persistent_loop, candidate.layout, candidate.order):
        return STAGES
    return min(STAGES, max(2, round(TILES_IN_FLIGHT / in_work(candidate) / max(problem.read_bytes, 1))))


def _is_streamed(problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate) -> bool:
    """Whether steps decide at run time if their tile leaves the L2 first: where rows fill their threads, and no rows of
    several warps lie side by side. Elsewhere deciding costs more than it gains.
    """
    layout = candidate.layout
    is_apart = layout.is_alone(persistent_loop.dims) or are_apart(persistent_loop, layout, candidate.order)
    return is_apart and padding(problem, persistent_loop, layout) == 1


def _chunk(problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate) -> int:
    """Tiles of a small chunk of the dynamic tail; 0 where all tiles are given out from the start."""
    is_small = persistent_loop.accumulator_bytes <= SHARED_ACCUMULATORS and row_elements(problem) <= SHARED_ROW
    if persistent_loop.wide or not is_small or not are_apart(persistent_loop, candidate.layout, candidate.order):
        return 0
    return max(1, CHUNK_ELEMENTS // prod(candidate.layout.extents))


def complete(
    problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate, target: Target
) -> Schedule | None:
    """A candidate with a second stage and as many stages as shared memory has room for; None if it is illegal."""
    layout, blocks = candidate.layout, candidate.blocks
    tile = tuple(
        (extent if d not in persistent_loop.dims else layout.extents[d]) or layout.extents[d]
        for d, extent in enumerate(problem.extents)
    )
    second_stage_tile, second_stage_layout, second_stage_reads = choose_second_stage(
        problem, persistent_loop, layout, blocks, target
    )
    shared = shared_left(blocks, target)
    period = PERIOD if persistent_loop.wide else 0
    chunk = _chunk(problem, persistent_loop, candidate)
    none_abreast = layout.cluster == 1 and layout.is_alone(persistent_loop.dims) and candidate.order == "breadth"
    for stages in range(_most_stages(problem, persistent_loop, candidate), 0, -1):
        plan = PersistentLoop(
            persistent_loop.dims,
            "grid_sync",
            second_stage_tile,
            second_stage_layout,
            stages,
            candidate.columns,
            second_stage_reads,
            period,
            # A block that takes chunks does not know its last tile. Costs of peeling were not fitted to order `depth`.
            peeled=candidate.order == "breadth" and persistent_loop.inner and not period and not chunk,
            few_tiles=FEW_TILES if none_abreast and stages > 2 else 0,
            row_values="shared" if are_apart(persistent_loop, layout, candidate.order) and stages > 1 else "registers",
            streamed=stages > 1 and _is_streamed(problem, persistent_loop, candidate),
            chunk=chunk,
        )
        schedule = Schedule(tile, layout, order=candidate.order, blocks_per_sm=blocks, persistent_loop=plan)
        if persistent_loop_bytes(problem, layout, plan) <= shared:
            legal = check_schedule(schedule, problem.extents, problem.reduced, target) is None
            return schedule if legal else None
    return None
