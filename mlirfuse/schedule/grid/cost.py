"""What slows a persistent loop of a grid down, relative to others; fitted to norm backward passes on an H200."""

from __future__ import annotations

from math import log2, prod

from mlirfuse.schedule.grid.candidates import TILE_ELEMENTS, GridCandidate, in_work
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.disagreeing import TILES_IN_FLIGHT
from mlirfuse.schedule.model.loop_tiles import are_apart, padding, row_elements, unrolled_rows, waits
from mlirfuse.schedule.model.machine import PARTITIONS
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem

FRAGMENTS = 3
"""Fragments that a thread holds of a tile: loops over fewer have more overhead, over more too few threads."""

CLUSTER_COST = 0.08
"""What doubling the blocks that share a row costs: a longer exchange, and SMs that no cluster fits on
(`speeds.CLUSTERED_SMS`)."""

PARTIALS_COST = 0.006
"""What twice the blocks of an SM cost for every byte of an element's accumulators: each block has a partial, for which
the second stage waits."""

UNROLL_WORK, UNROLL_WORK_COST, UNROLL_ALONE = 9216, 0.12, 0.04
"""Elements in work on an SM that serve it best where rows are unrolled; what twice or half as many cost; and what a
block alone on its SM costs, as no other works while it waits."""

UNROLL_PADDING, UNROLL_FRAGMENTS, UNROLL_ROWS = 0.15, 0.01, 0.004
"""What idle threads cost where rows are unrolled; half or twice the fragments of each row; and every row beyond two."""


def persistent_loop_cost(
    problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate, stages: int
) -> float:
    """What slows a persistent loop down; lower is better."""
    layout = candidate.layout
    if unrolled_rows(persistent_loop, layout) > 1:
        return _unrolled_cost(problem, persistent_loop, candidate) + CLUSTER_COST * log2(layout.cluster)
    abreast = prod(layout.warps[d] for d in persistent_loop.dims)
    padded = padding(problem, persistent_loop, layout)
    fragments = layout.elements_per_thread / max(layout.vector)
    return (
        0.35 * padded
        + (0.03 if padded > 1 else 0.0)
        + (
            _flight_cost(problem, candidate, stages)
            if are_apart(persistent_loop, layout, candidate.order)
            else _work_cost(candidate)
        )
        + 0.10 * abs(log2(fragments / FRAGMENTS))
        + (
            0.03 * log2(abreast) if waits(persistent_loop, layout) else 0.0
        )  # rows that share a block wait for each other
        + (0.08 if candidate.order == "depth" else 0.0)
        + (0.10 if stages == 1 else 0.0)
        + (0.03 if candidate.columns == "shared" else 0.0)
        + CLUSTER_COST * log2(layout.cluster)
    )


def partials_cost(persistent_loop: PersistentLoopProblem, candidate: GridCandidate) -> float:
    """What a block's partials cost among unrolled rows, and where the best of these is compared with the best of the
    others.
    """
    return (
        PARTIALS_COST * persistent_loop.accumulator_bytes * log2(candidate.blocks)
        if waits(persistent_loop, candidate.layout)
        else 0.0
    )


def _unrolled_cost(problem: Problem, persistent_loop: PersistentLoopProblem, candidate: GridCandidate) -> float:
    """What too little or too much work costs where a block's warps exchange partials once for several rows."""
    rows, padded = unrolled_rows(persistent_loop, candidate.layout), padding(problem, persistent_loop, candidate.layout)
    fragments = candidate.layout.elements_per_thread / max(candidate.layout.vector) / rows
    work = rows * row_elements(problem) * candidate.blocks / candidate.layout.cluster
    return (
        0.35
        + UNROLL_PADDING * (padded - 1)
        + (0.03 if padded > 1 else 0.0)
        + UNROLL_WORK_COST * abs(log2(work / UNROLL_WORK))
        + (UNROLL_ALONE if candidate.blocks == 1 else 0.0)
        + UNROLL_FRAGMENTS * abs(log2(fragments / FRAGMENTS))
        + UNROLL_ROWS * (rows - 2)
        + partials_cost(persistent_loop, candidate)
    )


def _work_cost(candidate: GridCandidate) -> float:
    """What too little or too much work costs where warps wait for each other in every step."""
    return 0.10 * abs(log2(in_work(candidate) / TILE_ELEMENTS)) + 0.02 * abs(log2(candidate.blocks) - 1)


def _flight_cost(problem: Problem, candidate: GridCandidate, stages: int) -> float:
    """What too few or too many bytes in flight cost where no warp waits for another.

    The cost chooses between numbers of rows of one kind, and weighs little beside how a row is best held.
    """
    # The number of a warp in its block says which scheduler issues it.
    uneven = candidate.layout.threads % (WARP * PARTITIONS) > 0
    in_flight = in_work(candidate) * max(problem.read_bytes, 1) * stages
    return 0.03 * abs(log2(in_flight / TILES_IN_FLIGHT)) + 0.03 * uneven + 0.05 * _work_cost(candidate)
