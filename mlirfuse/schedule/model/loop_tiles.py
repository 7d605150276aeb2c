"""What a persistent loop's tile holds of rows: how many, padded by how much, and which warps wait for each other."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem


def unrolled_rows(persistent_loop: PersistentLoopProblem, layout: BlockedLayout) -> int:
    """Rows of a tile that each thread has a part of, one after the other."""
    return prod(layout.repeats[d] for d in persistent_loop.dims)


def padding(problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout) -> float:
    """Elements that a layout covers to every one that the rows of a tile have: 1 where no thread idles."""
    rows = prod(layout.extents[d] for d in persistent_loop.dims)
    return prod(layout.extents) / (rows * row_elements(problem))


def waits(persistent_loop: PersistentLoopProblem, layout: BlockedLayout) -> bool:
    """Whether warps of a block wait for each other in a step: where several hold a row that is reduced."""
    return persistent_loop.inner and layout.threads > WARP * prod(layout.warps[d] for d in persistent_loop.dims)


def are_apart(persistent_loop: PersistentLoopProblem, layout: BlockedLayout, order: str) -> bool:
    """Whether each row is reduced by one warp or less, so that the warps of a block never wait for each other in a
    step.

    Only breadth-first: depth-first takes more instructions, for which the heuristics were not fitted.
    """
    return (
        persistent_loop.inner
        and order == "breadth"
        and layout.threads == WARP * prod(layout.warps[d] for d in persistent_loop.dims)
    )


def row_elements(problem: Problem) -> int:
    """Elements of a row: of all dimensions that are not looped over."""
    assert problem.persistent_loop is not None
    return prod(extent or 1 for d, extent in enumerate(problem.extents) if d not in problem.persistent_loop.dims)
