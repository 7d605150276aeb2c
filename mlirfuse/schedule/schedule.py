"""The schedule of a kernel: data that the graph passes choose and the tile passes read.

The `fuse.schedule` attribute of the kernel holds it; an attribute that is there already is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

from mlir import ir

from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.errors import ScheduleError, errors_at
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.grid_persistent import GridPersistent
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.support.dataclass_attributes import from_attribute, to_attribute
from mlirfuse.support.kept import hashed_once
from mlirfuse.support.renamed_names import not_one_of, refuses_old_fields
from mlirfuse.target import TARGETS, Target
from mlirfuse.target.instructions import FAMILIES

PERSISTENCE = ("registers", "shared", "multi_pass")
"""Where a row lives between its reduction and its use: in registers, in shared memory, or nowhere (read again)."""

ORDERS = ("breadth", "depth")
"""In which order a thread works on its fragments: op by op, or each fragment through all ops before the next one."""


MOST_HELD = 4096
"""Elements of a tile that a thread may hold: more than its registers and its share of shared memory have room for."""


@refuses_old_fields
@hashed_once
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
        shared_spill: fragments of a thread that wait in shared memory across a reduction, where registers are short.
        in_order: whether fragments that are spilled to shared memory are loaded and stored in program order, a few
            ahead, whatever ptxas would do.
        rematerialize_addresses: whether addresses of results are computed behind the reductions, where registers are
            too short to keep across them what they share with the addresses of operands.
        contraction: for a kernel with a contraction, how its k-loop runs.
        persistent_loop: where a reduction runs over more than a tile, how a persistent loop runs over the tiles; None
            for one block a tile.
        grid_persistent: where tiles need a reduction over all of them, or such a reduction is a joint one, how the grid
            visits its tiles.
        transposed: how arrays are accessed that are contiguous along another dimension than `layout`; None if that is
            the layout too.
        flat: whether tiles of contiguous arrays, whose rows are no whole vectors, are moved as runs of memory.
        grid_order: the dimensions in the order in which blocks follow one another: along the last one first. Empty for
            that of the iteration space.
    """

    tile: tuple[int, ...]
    layout: BlockedLayout
    persistence: str = "registers"
    order: str = "breadth"
    blocks_per_sm: int = 0
    shared_spill: int = 0
    in_order: bool = False
    rematerialize_addresses: bool = False
    contraction: ContractionSchedule | None = None
    persistent_loop: PersistentLoop | None = None
    grid_persistent: GridPersistent | None = None
    transposed: TransposedTiles | None = None
    flat: bool = False
    grid_order: tuple[int, ...] = ()

    @property
    def contraction_part(self) -> ContractionSchedule:
        """`contraction`, of a kernel with one."""
        assert self.contraction is not None
        return self.contraction

    @property
    def loop_part(self) -> PersistentLoop:
        """`persistent_loop`, of a kernel with one."""
        assert self.persistent_loop is not None
        return self.persistent_loop

    @property
    def grid_part(self) -> GridPersistent:
        """`grid_persistent`, of a kernel with one."""
        assert self.grid_persistent is not None
        return self.grid_persistent

    def with_contraction(self, **changes: Any) -> Schedule:
        """The schedule with other values of some fields of its contraction's part."""
        return replace(self, contraction=replace(self.contraction_part, **changes))

    def with_loop(self, **changes: Any) -> Schedule:
        """The same of its persistent loop."""
        return replace(self, persistent_loop=replace(self.loop_part, **changes))

    def attribute(self) -> ir.Attribute:
        """The `fuse.schedule` attribute, in the current context."""
        return to_attribute(self)


def schedule_of(kernel: ir.Operation) -> Schedule:
    """The schedule attached to a kernel; raises `ScheduleError` if there is none or it is malformed."""
    if SCHEDULE not in kernel.attributes:
        raise ScheduleError("the kernel has no fuse.schedule", where=kernel, hint="run fuse-assign-schedule first")
    with errors_at(kernel):
        return from_attribute(Schedule, kernel.attributes[SCHEDULE])


@lru_cache(maxsize=1024)  # families check what they propose, and so does who asks for all of it
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
        return not_one_of("order", schedule.order, ORDERS)
    if schedule.contraction and schedule.contraction.instruction not in FAMILIES:
        return not_one_of("instruction", schedule.contraction.instruction, FAMILIES)
    if problem := schedule.layout.check(schedule.tile):
        return problem
    if any(schedule.layout.anywhere) and (problem := _check_rows(schedule, reduced)):
        return problem
    fragments = schedule.layout.elements_per_thread // prod(schedule.layout.vector)
    if not 0 <= schedule.shared_spill < fragments or (schedule.shared_spill and schedule.persistence != "registers"):
        return (
            f"{schedule.shared_spill} fragments cannot be spilled to shared memory of the {fragments} that a "
            f"thread holds in registers"
        )
    if schedule.in_order and not schedule.shared_spill:
        return "nothing is spilled to shared memory that could be loaded and stored in order"
    if schedule.rematerialize_addresses and schedule.persistence != "registers":
        return f"addresses are rematerialized only of rows that wait in registers, not {schedule.persistence!r}"
    if problem := _check_shared(schedule, reduced):
        return problem
    if schedule.transposed and (problem := _check_transposed(schedule, schedule.transposed, extents, reduced)):
        return problem
    if schedule.flat and (problem := _check_flat(schedule, extents, reduced)):
        return problem
    if schedule.grid_order and (problem := check_grid_order(schedule)):
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
    if schedule.grid_persistent:
        return _check_grid_persistent(schedule, schedule.grid_persistent, extents, reduced, target)
    loop_dims = schedule.persistent_loop.dims if schedule.persistent_loop else ()
    if schedule.persistent_loop and (problem := _check_persistent_loop(schedule, schedule.persistent_loop, extents)):
        return problem
    for d, (tile, extent) in enumerate(zip(schedule.tile, extents, strict=True)):
        if d in loop_dims:
            continue
        if d in reduced:
            if extent is None and schedule.persistence != "multi_pass":
                return f"reduced dimension {d} is dynamic, which only multi-pass schedules loop over"
            if schedule.persistence == "registers" and tile != extent:
                return f"persistence in registers needs all {extent} elements of dimension {d} in the tile, not {tile}"
        elif schedule.layout.blocks[d] > 1 and not schedule.persistent_loop:
            return f"a cluster may split reduced dimensions only, not dimension {d}"
    return None


def _check_residency(schedule: Schedule, target: Target) -> str | None:
    """What is wrong with the number of blocks that an SM is to hold, or None."""
    if not 0 <= schedule.blocks_per_sm <= target.blocks_per_sm:
        return f"{schedule.blocks_per_sm} blocks an SM are not 0 to {target.blocks_per_sm}"
    threads = schedule.layout.threads
    if schedule.contraction:
        threads = threads * schedule.contraction.consumer_groups + schedule.contraction.family.producer_threads
    if schedule.blocks_per_sm * threads > target.threads_per_sm:
        resident = f"{schedule.blocks_per_sm} blocks of {threads} threads"
        return f"{resident} exceed the {target.threads_per_sm} threads of an SM"
    return None


def _check_shared(schedule: Schedule, reduced: frozenset[int]) -> str | None:
    """What makes a schedule illegal whose threads read back from shared memory what they stored there, or None."""
    layout, staged = schedule.layout, schedule.persistent_loop is not None and schedule.persistent_loop.stages > 1
    if not staged and schedule.persistence != "shared":
        return None
    if not staged and all(schedule.tile[d] == 1 for d in reduced):  # chunks of one element are read again
        return None
    copied = [d for d, extent in enumerate(schedule.tile) if extent == 1 and layout.lanes[d] * layout.warps[d] > 1]
    if copied:
        return f"elements in shared memory have one thread each, not copies along dimension {copied[0]}"
    return None


def _check_rows(schedule: Schedule, reduced: frozenset[int]) -> str | None:
    """What makes a schedule that shifts or realigns rows illegal, or None."""
    how = "shifted" if schedule.layout.is_shifted else "realigned"
    where = {d for d, here in enumerate(schedule.layout.anywhere) if here}
    if schedule.persistence != "registers" or schedule.persistent_loop is not None or schedule.contraction is not None:
        return f"only rows that stay in registers may be {how}"
    if where != reduced:
        return f"dimensions {sorted(where)} are {how}, which must be what is reduced, {sorted(reduced)}"
    return None


def _check_transposed(
    schedule: Schedule, transposed: TransposedTiles, extents: tuple[int | None, ...], reduced: frozenset[int]
) -> str | None:
    """What makes a schedule with transposed arrays illegal, or None."""
    if reduced or schedule.contraction or schedule.persistent_loop:
        return "arrays are transposed in elementwise kernels only"
    return transposed.check(schedule.layout, schedule.tile, extents)


def _check_flat(schedule: Schedule, extents: tuple[int | None, ...], reduced: frozenset[int]) -> str | None:
    """What makes a schedule with flat tiles illegal, or None."""
    layout = schedule.layout
    inner = len(extents) - 1
    if reduced - {inner} or schedule.contraction or schedule.persistent_loop or schedule.transposed:
        return "tiles are flat in elementwise kernels and in reductions of rows only, whose arrays are not transposed"
    if reduced and schedule.persistence != "registers":
        return f"rows of flat tiles stay in registers, not {schedule.persistence!r}"
    if max(layout.vector) > 1 or layout.inner or layout.has_runs or any(layout.anywhere) or layout.cluster > 1:
        return "elements of flat tiles are spread one by one over the threads of a block"
    split = next((d for d, side in enumerate(schedule.tile) if side > 1), inner)
    rest = zip(schedule.tile[split + 1 :], layout.extents[split + 1 :], extents[split + 1 :], strict=True)
    if split == inner or any(not side == covered == extent for side, covered, extent in rest):
        return f"a tile of {schedule.tile} is no run of whole rows of a space of {extents}"
    return None


def check_grid_order(schedule: Schedule) -> str | None:
    """What makes a schedule illegal whose blocks follow one another in another order, or None."""
    order = schedule.grid_order
    if sorted(order) != list(range(len(schedule.tile))):
        return f"grid_order {order} does not have each of the {len(schedule.tile)} dimensions once"
    loops = schedule.contraction or schedule.persistent_loop or schedule.grid_persistent
    if loops or schedule.persistence != "registers":
        return "only blocks of one tile each, which stays in registers, follow one another in a grid_order"
    if schedule.transposed and schedule.transposed.mirrored:
        return "tiles that mirror each other are neighbours, and have no other grid_order"
    return None


def _check_blocks(contraction: ContractionSchedule, target: Target) -> str | None:
    """What a target's blocks cannot do of a contraction's schedule, or None."""
    if not contraction.family.exists_on(target):
        chips = ", ".join(chip for chip, other in TARGETS.items() if contraction.family.exists_on(other))
        return f"{target.chip} has no {contraction.instruction}, which is {chips}'s"
    blocks = contraction.split if contraction.reduction == "cluster" else contraction.cluster
    if blocks > target.max_cluster:
        return f"a cluster of {blocks} exceeds the {target.max_cluster} of {target.chip}"
    return None


def _check_persistent_loop(
    schedule: Schedule, persistent_loop: PersistentLoop, extents: tuple[int | None, ...]
) -> str | None:
    """What makes the schedule of a persistent grid illegal, or None."""
    if schedule.persistence != "registers":
        return "a persistent loop takes tiles that fit the registers only"
    if any(schedule.layout.blocks[d] > 1 for d in persistent_loop.dims):
        return f"a cluster may not split the dimensions {persistent_loop.dims} of the persistent loop"
    inner = schedule.layout.vector_dim
    if persistent_loop.slices > 1 and (inner in persistent_loop.dims or schedule.tile[inner] == extents[inner]):
        return f"{persistent_loop.slices} slices are of dimension {inner}, of which tiles hold all"
    for d, (tile, extent) in enumerate(zip(schedule.tile, extents, strict=True)):
        if d in persistent_loop.dims or tile == extent:
            continue
        if persistent_loop.slices == 1 or d != inner or extent is None:
            return f"the tiles of a persistent loop hold all {extent} elements of dimension {d}, not {tile}"
        if -(-extent // tile) != persistent_loop.slices:
            return f"{persistent_loop.slices} slices of {tile} do not make up {extent} elements of dimension {d}"
    return persistent_loop.check(schedule.layout)


def _check_grid_persistent(
    schedule: Schedule, part: GridPersistent, extents: tuple[int | None, ...], reduced: frozenset[int], target: Target
) -> str | None:
    """What makes the schedule of a grid persistent kernel illegal, or None."""
    if schedule.persistent_loop or schedule.contraction or schedule.shared_spill:
        return "a grid persistent kernel has no persistent loop, no contraction, and spills nothing to shared memory"
    if schedule.persistence != "registers":
        return "a grid persistent kernel takes tiles that fit the registers only"
    if set(part.dims) != reduced:
        return f"grid_persistent.dims {part.dims} are not what is reduced, {sorted(reduced)}"
    most_blocks = target.sms * max(1, schedule.blocks_per_sm)
    return part.check(schedule.tile, schedule.layout, extents, most_blocks)
