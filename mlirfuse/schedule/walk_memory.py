"""Shared memory of a block that walks tiles: what its tile program and its exchanges allocate, part by part."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import PartOfRows, Problem, WalkProblem

MOST_ALTERNATING = 4096
"""Bytes of an exchange in a loop up to which a second copy is cheaper than a second barrier."""

INNER_VALUES = 4
"""Numbers a row that the reductions inside of a tile exchange, at most."""

BUFFERS = 12
"""Buffers that alignment may waste 16 bytes on, mbarriers and what a semaphore's thread tells the others included."""

RESERVED = 1024
"""Shared memory that the system takes of each block, bytes."""


def walk_bytes(problem: Problem, layout: BlockedLayout, walk: GridWalk) -> int:
    """An upper bound of the bytes that a block needs, of which little is left unused."""
    assert problem.walk is not None
    elements = prod(layout.extents) // layout.cluster
    tile = elements * problem.read_bytes
    if walk.row_values == "shared":  # each thread that holds some of a row has a copy
        holders = (layout.lanes[d] * layout.warps[d] for d in range(problem.rank) if d not in problem.walk.dims)
        tile += prod(layout.extents[d] for d in problem.walk.dims) * prod(holders) * problem.walk.row_bytes
    ring = walk.stages * tile if walk.stages > 1 else 0
    columns = elements * problem.walk.column_bytes if walk.columns == "shared" else 0
    exchanges = _row_exchange(problem.walk, layout, walk) + _total_exchange(problem.walk, layout, walk)
    exchanges += _exchange_of_parts(problem.walk, layout, walk)
    return ring + columns + exchanges + _finish(problem.walk, walk) + BUFFERS * 16


def _row_exchange(problem: WalkProblem, layout: BlockedLayout, walk: GridWalk) -> int:
    """What the reductions inside of rows exchange between warps and blocks, in a loop, and behind it once more."""
    if not problem.inner:
        return 0
    rows = prod(layout.extents[d] for d in problem.dims)
    senders = prod(layout.warps) // prod(layout.warps[d] for d in problem.dims) * layout.cluster
    nbytes = rows * senders * 4 * INNER_VALUES
    return copies_bytes(nbytes) + (nbytes if walk.peeled else 0) if senders > 1 else 0


def _total_exchange(problem: WalkProblem, layout: BlockedLayout, walk: GridWalk) -> int:
    """What warps with rows side by side exchange: a row of totals each, behind a walk or a chunk, and once a period."""
    nbytes = layout.exchanged(problem.dims) * problem.total_bytes
    if walk.chunk:
        return copies_bytes(nbytes)
    return 2 * nbytes if walk.period else nbytes


def _exchange_of_parts(problem: WalkProblem, layout: BlockedLayout, walk: GridWalk) -> int:
    """What reductions of parts of rows exchange: a number for each element that they keep and each sender.

    That can be as much as the tile itself has, or more where every warp or block has some of what is reduced.
    """
    inner = sum(
        copies_bytes(nbytes) + (nbytes if walk.peeled else 0)
        for part in problem.inner_parts
        for nbytes in exchange_bytes(part, layout)
    )
    totals = sum(nbytes for part in problem.total_parts for nbytes in exchange_bytes(part, layout))
    return inner + (copies_bytes(totals) if walk.chunk else 2 * totals if walk.period else totals)


def exchange_bytes(part: PartOfRows, layout: BlockedLayout) -> list[int]:
    """Bytes that the warps of a block exchange, and then the blocks of a cluster."""
    places = part.bytes * prod(layout.extents[d] // layout.blocks[d] for d in part.kept)
    senders = (prod(factors[d] for d in part.dims) for factors in (layout.warps, layout.blocks))
    return [places * count for count in senders if count > 1]


def _finish(problem: WalkProblem, walk: GridWalk) -> int:
    """What warps exchange that add up parts of the same columns."""
    layout, first = walk.finish_layout, problem.dims[0]
    columns = prod(n // b for d, (n, b) in enumerate(zip(layout.extents, layout.blocks, strict=True)) if d != first)
    meet = layout.warps[first] > 1 and walk.finish_tile[first] > 1
    return copies_bytes(layout.warps[first] * columns * problem.total_bytes) if meet else 0


def copies_bytes(nbytes: int) -> int:
    """Bytes of an exchange in a loop: a small one has two buffers in turn, for one barrier a step."""
    return nbytes if nbytes > MOST_ALTERNATING else 2 * nbytes
