"""Shared memory through which warps and blocks exchange partials of reductions, and a persistent loop's."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.array_access import bytes_of
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem, RowReduction

INNER_VALUES = 4
"""Numbers a row that the reductions inside of a tile exchange at a time, at most."""

JOINT_VALUES = 2
"""The same of one reduction, which may be a joint one."""

BUFFERS = 12
"""Buffers of which alignment may waste 16 bytes each, mbarriers and the word by which a semaphore's thread answers the
others included."""

MOST_ALTERNATING = 4096
"""Bytes of an exchange in a loop up to which a second buffer is cheaper than a second barrier."""


def persistent_loop_bytes(problem: Problem, layout: BlockedLayout, persistent_loop: PersistentLoop) -> int:
    """An upper bound of the bytes that a block needs, of which little is left unused."""
    loop, elements = problem.loop_part, prod(layout.extents) // layout.cluster
    tile = elements * problem.read_bytes
    if problem.shares_reads:
        tile = bytes_of(problem.reads, layout.extents) // layout.cluster
    if persistent_loop.row_values == "shared":  # each thread that holds some of a row has a copy
        holders = (layout.lanes[d] * layout.warps[d] for d in range(problem.rank) if d not in loop.dims)
        tile += prod(layout.extents[d] for d in loop.dims) * prod(holders) * loop.row_bytes
    ring = persistent_loop.stages * tile if persistent_loop.stages > 1 else 0
    columns = elements * loop.column_bytes if persistent_loop.columns == "shared" else 0
    exchanges = _row_exchange(problem, layout, persistent_loop)
    exchanges += _accumulator_exchange(loop, layout, persistent_loop)
    exchanges += _exchange_of_rows(loop, layout, persistent_loop)
    return ring + columns + exchanges + _second_stage(loop, persistent_loop) + BUFFERS * 16


def _row_exchange(problem: Problem, layout: BlockedLayout, persistent_loop: PersistentLoop) -> int:
    """Bytes that the reductions inside of rows exchange between warps and blocks in the loop, and once more behind it
    where the last tile is peeled.
    """
    loop = problem.persistent_loop
    if loop is None or not loop.inner:
        return 0
    inside = sum(1 for reduction in problem.reductions if not reduction.dims & set(loop.dims))
    numbers = min(INNER_VALUES, JOINT_VALUES * inside) or INNER_VALUES
    rows = prod(layout.extents[d] for d in loop.dims)
    senders = prod(layout.warps) // prod(layout.warps[d] for d in loop.dims) * layout.cluster
    nbytes = rows * senders * 4 * numbers
    return copies_bytes(nbytes) + (nbytes if persistent_loop.peeled else 0) if senders > 1 else 0


def _accumulator_exchange(
    problem: PersistentLoopProblem, layout: BlockedLayout, persistent_loop: PersistentLoop
) -> int:
    """Bytes that warps with rows side by side exchange of the reductions: behind a persistent loop, and once a
    period.
    """
    nbytes = layout.exchanged(problem.dims) * problem.accumulator_bytes
    return 2 * nbytes if persistent_loop.period else nbytes


def _exchange_of_rows(problem: PersistentLoopProblem, layout: BlockedLayout, persistent_loop: PersistentLoop) -> int:
    """Bytes that reductions of parts of rows exchange: a number for each element that they keep and each sender.

    That can be as much as the tile itself, or more where every warp or block has some of what is reduced.
    """
    inner = sum(
        copies_bytes(nbytes) + (nbytes if persistent_loop.peeled else 0)
        for part in problem.inner_reductions
        for nbytes in exchange_bytes(part, layout)
    )
    outer = sum(nbytes for part in problem.outer_reductions for nbytes in exchange_bytes(part, layout))
    return inner + (2 * outer if persistent_loop.period else outer)


def _second_stage(problem: PersistentLoopProblem, persistent_loop: PersistentLoop) -> int:
    """Bytes that warps exchange that add up partials of the same columns."""
    layout, first = persistent_loop.second_stage_layout, problem.dims[0]
    columns = prod(n // b for d, (n, b) in enumerate(zip(layout.extents, layout.blocks, strict=True)) if d != first)
    meet = layout.warps[first] > 1 and persistent_loop.second_stage_tile[first] > 1
    return copies_bytes(layout.warps[first] * columns * problem.accumulator_bytes) if meet else 0


def copies_bytes(nbytes: int) -> int:
    """Bytes of an exchange in a loop: a small one has two alternating buffers, for one barrier a step."""
    return nbytes if nbytes > MOST_ALTERNATING else 2 * nbytes


def exchange_bytes(part: RowReduction, layout: BlockedLayout) -> list[int]:
    """Bytes that the warps of a block exchange, and then the blocks of a cluster."""
    places = part.bytes * prod(layout.extents[d] // layout.blocks[d] for d in part.kept)
    senders = (prod(factors[d] for d in part.dims) for factors in (layout.warps, layout.blocks))
    return [places * count for count in senders if count > 1]
