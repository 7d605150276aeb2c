"""Completing a persistent loop's layout to a schedule: a pure function of (problem, target).

Asynchronous copies into shared memory keep bytes in flight without registers, two or three tiles deep. A second stage
combines the blocks' partial results.
"""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.grid.candidates import GridCandidate
from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import persistent_loop_bytes
from mlirfuse.schedule.model.loop_tiles import are_apart, padding, row_elements
from mlirfuse.schedule.model.residency import shared_left
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule, check_schedule
from mlirfuse.target import Target

CHUNK_ELEMENTS, SHARED_ACCUMULATORS, SHARED_ROW = 12 * 1024, 4, 512
"""Elements of a small chunk of the dynamic tail; bytes of an element's accumulators, and elements of a row, up to which
blocks share the tail. More chunks leave more partials for the second stage, and larger ones end less together."""

STAGES = 3
"""Tiles of a block under way: one in work, two loading."""

FEW_TILES = 16
"""Tiles of a block up to which one is loading and not two, where a tile is one row or unrolled rows: less work is left
when the last data arrive."""


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
    most_stages = 1 if problem.vector == 1 else STAGES  # asynchronous copies move 4 bytes or more
    for stages in range(most_stages, 0, -1):
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
