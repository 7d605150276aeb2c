"""Loops over tiles: what a tile holds of rows, whether warps wait for each other, and loads that are under way."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem

LOADS_AHEAD = 4
"""Loads of a thread from an array, at least, that should be under way at once: else a loop waits for memory."""

MOST_UNROLLED = 1024
"""Instructions of a loop's body, at most, that it is unrolled to: 16 KB of code."""

FEWEST_USES = 4
"""Uses of what a step loads, at least, for more steps at once: as in a register tile of four results a side."""

SHARED_STEPS, MOST_SHARED = 4, 2048
"""Steps of such a loop at once, and instructions of its body at most: 32 KB of code, as the schedulers' cache holds."""


def unrolled_rows(persistent_loop: PersistentLoopProblem, layout: BlockedLayout) -> int:
    """Rows of a tile that each thread has a part of, one after the other."""
    return prod(layout.repeats[d] for d in persistent_loop.dims)


def padding(problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout) -> float:
    """Elements that a layout covers to every one that the rows of a tile have: 1 where no thread idles."""
    rows = prod(layout.extents[d] for d in persistent_loop.dims)
    return prod(layout.extents) / (rows * row_elements(problem))


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
    return prod(extent or 1 for d, extent in enumerate(problem.extents) if d not in problem.loop_part.dims)


def steps_at_once(loads: float, instructions: float, uses: float = 1.0) -> int:
    """Steps that `fuse-unroll-loops` makes one of; a power of two.

    The loads of these steps are under way together. Where each load feeds several results, these take more registers
    than what is loaded, so that there are some for more loads, whose addresses are the first step's and a number.

    Args:
        loads: of a step from an array in device memory.
        instructions: of a step.
        uses: of what a step loads, by operations of its own each; the least of all loads.
    """
    most, longest = LOADS_AHEAD / max(1.0, loads), MOST_UNROLLED
    if uses >= FEWEST_USES:
        most, longest = max(most, SHARED_STEPS), MOST_SHARED
    most = min(most, longest / max(1.0, instructions))
    return 1 << int(most).bit_length() - 1 if most >= 1 else 1
