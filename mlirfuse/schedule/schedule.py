"""The schedule of a kernel: data that the graph passes choose and the tile passes read.

It sits on the kernel as the `fuse.schedule` attribute, so that a lit test pins one and a user overrides one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlir import ir

from mlirfuse.errors import ScheduleError, errors_at
from mlirfuse.renamed_names import not_one_of, refuses_old_fields
from mlirfuse.schedule.attributes import from_attribute, to_attribute
from mlirfuse.schedule.contraction import TEAM_THREADS, ContractionSchedule
from mlirfuse.schedule.crossed_tiles import CrossedTiles
from mlirfuse.schedule.grid_walk import GridWalk
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.target import Target

ATTRIBUTE = "fuse.schedule"

PERSISTENCE = ("registers", "shared", "reread")
"""Where a row lives between its reduction and its use: in registers, in shared memory, or nowhere (read again)."""

ORDERS = ("breadth", "depth")
"""In which order a thread works on its fragments: op by op, or each fragment through all ops before the next one."""


MOST_HELD = 4096
"""Elements of a tile that a thread may hold: more than its registers and its share of shared memory have room for."""


@refuses_old_fields
@dataclass(frozen=True)
class Schedule:
    """How one kernel is tiled and spread over threads.

    Attributes:
        tile: elements of each iteration-space dimension in one tile. With `registers` a tile holds reduced dimensions
            whole; otherwise it is one chunk of them. A contraction's tile has its parallel dimensions only.
        layout: how the tile is spread over the cluster's threads.
        persistence: one of `PERSISTENCE`.
        order: one of `ORDERS`. Breadth has all loads under way at once, which short rows need; depth keeps few values
            in registers, so that more rows fit an SM.
        blocks_per_sm: resident blocks that the register allocator must leave room for; 0 leaves it alone.
        parked: fragments of a thread that wait in shared memory across a reduction, where registers are short.
        in_order: whether parked fragments are loaded and stored in program order, a few ahead, whatever ptxas would do.
        late_addresses: whether addresses of results are computed behind the reductions, where registers are too short
            to keep across them what they share with the addresses of operands.
        contraction: for a kernel with a contraction, how its k-loop runs.
        walk: where a reduction runs over more than a tile, how a persistent grid walks the tiles; None for one block
            a tile.
        crossed: how arrays are accessed that are contiguous along another dimension than `layout`; None if that is
            the layout too.
    """

    tile: tuple[int, ...]
    layout: BlockedLayout
    persistence: str = "registers"
    order: str = "breadth"
    blocks_per_sm: int = 0
    parked: int = 0
    in_order: bool = False
    late_addresses: bool = False
    contraction: ContractionSchedule | None = None
    walk: GridWalk | None = None
    crossed: CrossedTiles | None = None

    def attribute(self) -> ir.Attribute:
        """The `fuse.schedule` attribute, in the current context."""
        return to_attribute(self)


def schedule_of(kernel: ir.Operation) -> Schedule:
    """The schedule attached to a kernel; raises `ScheduleError` if there is none or it is malformed."""
    if ATTRIBUTE not in kernel.attributes:
        raise ScheduleError("the kernel has no fuse.schedule", where=kernel, hint="run fuse-assign-schedule first")
    with errors_at(kernel):
        return from_attribute(Schedule, kernel.attributes[ATTRIBUTE])


def check_schedule(
    schedule: Schedule, extents: tuple[int | None, ...], reduced: frozenset[int], target: Target
) -> str | None:
    """What makes a schedule illegal for an iteration space on a target, or None.

    Args:
        schedule: the schedule.
        extents: extents of the iteration space, None where dynamic.
        reduced: the dimensions that are reduced.
        target: the architecture.
    """
    if len(schedule.tile) != len(extents):
        return f"tile {schedule.tile} has {len(schedule.tile)} dimensions, the iteration space {len(extents)}"
    if schedule.persistence not in PERSISTENCE:
        return not_one_of("persistence", schedule.persistence, PERSISTENCE)
    if schedule.order not in ORDERS:
        return f"order {schedule.order!r} is not one of {', '.join(ORDERS)}"
    if problem := schedule.layout.check(schedule.tile):
        return problem
    if any(schedule.layout.anywhere) and (problem := _check_rows(schedule, reduced)):
        return problem
    fragments = prod(schedule.layout.fragments(d) for d in range(schedule.layout.rank))
    if not 0 <= schedule.parked < fragments or (schedule.parked and schedule.persistence != "registers"):
        return f"{schedule.parked} fragments cannot be parked of the {fragments} that a thread holds in registers"
    if schedule.in_order and not schedule.parked:
        return "nothing is parked that could be loaded and stored in order"
    if schedule.late_addresses and schedule.persistence != "registers":
        return f"addresses are late only of rows that wait in registers, not {schedule.persistence!r}"
    if problem := _check_shared(schedule, reduced):
        return problem
    if schedule.crossed and (problem := _check_crossed(schedule, schedule.crossed, extents, reduced)):
        return problem
    if schedule.layout.threads > target.max_threads_per_block:
        return f"{schedule.layout.threads} threads exceed the {target.max_threads_per_block} of a block"
    if prod(schedule.tile) > MOST_HELD * schedule.layout.threads * schedule.layout.cluster:
        return f"a thread would hold more than {MOST_HELD} elements of the tile {schedule.tile}"
    if problem := _check_residency(schedule, target):
        return problem
    if schedule.layout.cluster > target.max_cluster:
        return f"a cluster of {schedule.layout.cluster} exceeds the {target.max_cluster} of {target.chip}"
    if schedule.contraction and schedule.persistence != "registers":
        return f"the sums of a contraction stay in registers, not {schedule.persistence!r}"
    if schedule.contraction and (problem := _check_blocks(schedule.contraction, target)):
        return problem
    walked = schedule.walk.dims if schedule.walk else ()
    if schedule.walk and (problem := _check_walk(schedule, schedule.walk, extents)):
        return problem
    for d, (tile, extent) in enumerate(zip(schedule.tile, extents, strict=True)):
        if d in walked:
            continue
        if d in reduced:
            if extent is None and schedule.persistence != "reread":
                return f"reduced dimension {d} is dynamic, which only chunks that are read again can walk"
            if schedule.persistence == "registers" and tile != extent:
                return f"persistence in registers needs all {extent} elements of dimension {d} in the tile, not {tile}"
        elif schedule.layout.blocks[d] > 1 and not schedule.walk:
            return f"a cluster may split reduced dimensions only, not dimension {d}"
    return None


def _check_residency(schedule: Schedule, target: Target) -> str | None:
    """What is wrong with the number of blocks that a multiprocessor is to hold, or None."""
    if not 0 <= schedule.blocks_per_sm <= target.blocks_per_sm:
        return f"{schedule.blocks_per_sm} blocks a multiprocessor are not 0 to {target.blocks_per_sm}"
    threads = schedule.layout.threads
    if schedule.contraction and schedule.contraction.instruction == "wgmma":
        threads = threads * schedule.contraction.teams + TEAM_THREADS  # one warpgroup copies
    if schedule.blocks_per_sm * threads > target.threads_per_sm:
        resident = f"{schedule.blocks_per_sm} blocks of {threads} threads"
        return f"{resident} exceed the {target.threads_per_sm} threads of a multiprocessor"
    return None


def _check_shared(schedule: Schedule, reduced: frozenset[int]) -> str | None:
    """What makes a schedule illegal whose threads read back from shared memory what they stored there, or None."""
    layout, staged = schedule.layout, schedule.walk is not None and schedule.walk.stages > 1
    is_reread = all(schedule.tile[d] == 1 for d in reduced)  # as chunks of one element are
    if not staged and (schedule.persistence != "shared" or is_reread):
        return None
    copied = [d for d, extent in enumerate(schedule.tile) if extent == 1 and layout.lanes[d] * layout.warps[d] > 1]
    if copied:
        return f"elements in shared memory have one thread each, not copies along dimension {copied[0]}"
    return None


def _check_rows(schedule: Schedule, reduced: frozenset[int]) -> str | None:
    """What makes a schedule that shifts or moves rows illegal, or None."""
    how = "skewed" if schedule.layout.is_skewed else "moved"
    where = {d for d, here in enumerate(schedule.layout.anywhere) if here}
    if schedule.persistence != "registers" or schedule.walk is not None or schedule.contraction is not None:
        return f"only rows that stay in registers may be {how}"
    if where != reduced:
        return f"dimensions {sorted(where)} are {how}, which must be what is reduced, {sorted(reduced)}"
    return None


def _check_crossed(
    schedule: Schedule, crossed: CrossedTiles, extents: tuple[int | None, ...], reduced: frozenset[int]
) -> str | None:
    """What makes a schedule with crossed arrays illegal, or None."""
    if reduced or schedule.contraction or schedule.walk:
        return "arrays are crossed in elementwise kernels only"
    return crossed.check(schedule.layout, schedule.tile, extents)


def _check_blocks(contraction: ContractionSchedule, target: Target) -> str | None:
    """What a target's blocks cannot do of a contraction's schedule, or None."""
    if contraction.instruction == "wgmma" and target.chip != "sm_90a":
        return f"{target.chip} has no wgmma, which is sm_90a's"
    blocks = contraction.split if contraction.reduction == "cluster" else contraction.cluster
    if blocks > target.max_cluster:
        return f"a cluster of {blocks} exceeds the {target.max_cluster} of {target.chip}"
    return None


def _check_walk(schedule: Schedule, walk: GridWalk, extents: tuple[int | None, ...]) -> str | None:
    """What makes the schedule of a persistent grid illegal, or None."""
    if schedule.persistence != "registers":
        return "a grid walks tiles that fit the registers only"
    if any(schedule.layout.blocks[d] > 1 for d in walk.dims):
        return f"a cluster may not split the dimensions {walk.dims} that the grid walks"
    for d, (tile, extent) in enumerate(zip(schedule.tile, extents, strict=True)):
        if d not in walk.dims and tile != extent:
            return f"the tiles of a walk hold all {extent} elements of dimension {d}, not {tile}"
    return walk.check(schedule.layout)
