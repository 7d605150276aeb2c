"""Ways for a persistent loop to run over rows: which threads hold a row, how many come abreast or are unrolled, what
fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.target import Target

TILE_ELEMENTS = 8192
"""Elements of the tiles that are in work on one SM."""

BREADTH_BASE, BREADTH_ELEMENT = 16, 2.1
"""Registers of a thread that works breadth-first: addresses and row values, and what each register of an element's
accumulators, packed reads and columns takes with what is computed from it (ptxas 13.0, sm_90a, no spills)."""

DEPTH_BASE, DEPTH_ELEMENT, DEPTH_READ = 32, 0.25, 1 / 8
"""Registers of a thread that works depth-first: besides an element's accumulators and columns, something for each
element and for each byte that is read of it."""

PADDED_BASE, BREADTH_PADDED, DEPTH_PADDED = 12, 0.75, 1.5
"""Registers for the masks of a row that does not fill its threads, and for each element in either order."""

CLUSTER_REGISTERS = {"breadth": 4, "depth": 12}
"""Registers for the addresses of other blocks' shared memory and mbarriers, by order."""

CLUSTER_SINGLE = 8
"""And for them breadth-first where a thread has single elements, which all have a mask and an address of their own.
Fitted to backward passes of 255 columns in bfloat16 and float32, which spilled 20 to 88 bytes (ptxas 13.0, sm_90a)."""

UNROLL_BASE, UNROLL_STREAMED, UNROLL_FOURTH, UNROLL_PADDED, UNROLL_READ, UNROLL_CARRIED = 12, 8, 10, 13, 4.1, 0.5
"""Registers of a thread that has unrolled rows: addresses, more where tiles leave the L2 first, and there for a fourth
row, or for every row beyond two where rows do not fill their threads; what every 4 bytes that are read of an element
take until its row is reduced, and what every 4 bytes of a column's accumulators take. Fitted to what RMSNorm and
LayerNorm backward in bfloat16 of 1024 to 5140 columns take without spills (ptxas 13.0, sm_90a), and to which of 245
layouts are slow for want of registers."""

UNROLL_TOTALS = 2
"""Bytes of an element's accumulators to every byte that is read of it, at most, where rows are unrolled: five
reductions of what is read in two bytes spilled up to 368 bytes, two none."""

UNROLL_ELEMENTS, UNROLL_BLOCKS = 10240, 3
"""Elements of the tiles in work on one SM, and blocks that share it, at most, where rows are unrolled.
(H200, RMSNorm backward: five blocks with unrolled rows of 896 columns took 14 to 35 % longer than rows side by
side.)"""

MOST_ELEMENTS = 40
"""Elements that a thread may hold: beyond it these estimates are no longer to be trusted."""

WARPS_ALLOCATED = 4
"""Warps that registers are given to at once."""

WAYS = (("breadth", "registers"), ("depth", "registers"), ("depth", "shared"))
"""In which order a thread works, and where it keeps what all tiles share: the first needs the most registers."""

MOST_ROWS = 16
"""Warps side by side in a tile, at most."""

MAX_UNROLLED_ROWS = 4
"""Rows that a thread is unrolled over, at most."""


@dataclass(frozen=True)
class GridCandidate:
    """A schedule whose finish and stages are still open.

    Attributes:
        layout: how a tile is spread over threads.
        order: in which order a thread works.
        columns: where it keeps what all tiles share.
        blocks: resident blocks of an SM.
    """

    layout: BlockedLayout
    order: str
    columns: str
    blocks: int


def grid_candidates(
    problem: Problem, persistent_loop: PersistentLoopProblem, target: Target, squeeze: float
) -> Iterator[GridCandidate]:
    """Every split of a row over lanes, warps and blocks of a cluster, with every number of rows abreast or unrolled
    that fits.
    """
    for layout in dict.fromkeys(_layouts(problem, persistent_loop, target)):
        for order, columns in WAYS:
            if columns == "shared" and not persistent_loop.column_bytes:
                continue
            if unrolled_rows(persistent_loop, layout) > 1 and order != "breadth":
                continue
            registers = round(
                squeeze * problem.register_scale * _registers(problem, persistent_loop, layout, order, columns)
            )
            most = _resident_blocks(problem, persistent_loop, layout, registers, target)
            # Where nobody waits for another, more than memory can serve is under way sooner than too little.
            fewest = 1 if are_apart(persistent_loop, layout, order) else most
            for blocks in range(most, max(0, fewest - 1), -1):
                yield GridCandidate(layout, order, columns, blocks)


def _layouts(problem: Problem, persistent_loop: PersistentLoopProblem, target: Target) -> Iterator[BlockedLayout]:
    """Every way to spread a row over lanes, warps and blocks of a cluster, with every number of others side by side, or
    unrolled.

    Unrolled rows are reduced together: the warps that hold them meet once for all. Where a row is one warp's, or
    nothing is reduced inside of it, nobody waits. Reductions that are over a row's elements too would be carried for
    each of them. Rows of single elements have not been measured so.
    """
    few_accumulators = persistent_loop.accumulator_bytes <= UNROLL_TOTALS * problem.read_bytes
    may_unroll = persistent_loop.inner and persistent_loop.outer_only and few_accumulators and problem.vector > 1
    most_warps = target.max_threads_per_block // WARP
    abreast = persistent_loop.dims[-1]
    for doublings in range(target.max_cluster.bit_length()):
        for lanes in (WARP, 16, 8) if doublings == 0 else (WARP,):
            for warps in range(1, (most_warps if lanes == WARP else 1) + 1):
                fill = _row_builder(problem, persistent_loop, lanes, warps, 1 << doublings)
                if fill is None:
                    continue
                layout = fill.layout()
                for rows in range(1, min(MOST_ROWS, most_warps // warps, fill.left(abreast)) + 1):
                    yield replace(layout, warps=_times(rows, layout.warps, abreast))
                if may_unroll and warps > 1 and layout.is_alone(persistent_loop.dims):
                    for rows in range(2, min(MAX_UNROLLED_ROWS, fill.left(abreast)) + 1):
                        yield replace(layout, repeats=_times(rows, layout.repeats, abreast))


def _times(rows: int, factors: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A layout's factors with so many times as many along one dimension."""
    return tuple(rows * n if d == dim else n for d, n in enumerate(factors))


def _row_builder(
    problem: Problem, persistent_loop: PersistentLoopProblem, lanes: int, warps: int, cluster: int
) -> LayoutBuilder | None:
    """A row over so many lanes of `warps` warps of `cluster` blocks; None if some would idle."""
    fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
    inner = [d for d in range(problem.rank) if d not in persistent_loop.dims]
    inner.sort(key=lambda d: (d != problem.vector_dim, -d))
    for dim in inner:
        fill.add_lanes(dim, lanes)
    fill.rest_of_lanes(persistent_loop.dims[-1])
    for dim in inner:
        fill.add_blocks(dim, cluster)
    for dim in inner:
        fill.add_warps(dim, warps)
    if prod(fill.blocks) != cluster or prod(fill.warps) != warps:
        return None
    for dim in inner:
        fill.rest_in_repeats(dim)
    return fill


def _resident_blocks(
    problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout, registers: int, target: Target
) -> int:
    """How many blocks of so many registers a thread are to share an SM; 0 if not even one fits."""
    held = layout.elements_per_thread
    if registers > target.max_registers_per_thread or held > MOST_ELEMENTS:
        return 0
    unrolled = unrolled_rows(persistent_loop, layout)
    if unrolled > 1:
        given = min(allocated(registers), target.max_registers_per_thread)
        wanted = min(UNROLL_BLOCKS, UNROLL_ELEMENTS // (unrolled * row_elements(problem)))
        return min(resident_blocks(layout.threads, given, target), max(1, wanted))
    # What the others cost is fitted with each block's warps rounded up, and not those of an SM's partition:
    # of 45 walks that have more blocks otherwise 30 were slower, rows of 257 columns by 12 blocks up to 2.8 times.
    threads = -(-layout.threads // (WARP * WARPS_ALLOCATED)) * WARP * WARPS_ALLOCATED
    wanted = TILE_ELEMENTS // (held * layout.threads)
    return min(
        target.registers_per_sm // (allocated(registers) * threads),
        target.threads_per_sm // layout.threads,
        max(1, wanted),
    )


def _registers(
    problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout, order: str, columns: str
) -> int:
    """Estimated registers of a thread."""
    in_registers = persistent_loop.column_bytes if columns == "registers" else 0
    carried = (persistent_loop.accumulator_bytes + in_registers) / 4
    unrolled = unrolled_rows(persistent_loop, layout)
    if unrolled > 1:
        base = UNROLL_BASE + (CLUSTER_REGISTERS[order] if layout.cluster > 1 else 0)
        full = UNROLL_STREAMED + UNROLL_FOURTH * max(0, unrolled - 3)
        base += full if padding(problem, persistent_loop, layout) == 1 else UNROLL_PADDED * (unrolled - 2)
        return round(
            base
            + (UNROLL_READ * problem.read_bytes / 4 + UNROLL_CARRIED * carried / unrolled) * layout.elements_per_thread
        )
    if order == "breadth":
        base, each = BREADTH_BASE, BREADTH_ELEMENT * (carried + problem.read_bytes / 4)
    else:
        base, each = DEPTH_BASE, carried + DEPTH_ELEMENT + DEPTH_READ * problem.read_bytes
        if persistent_loop.wide:  # a part that leaves in the loop is there beside the next one's start
            each += persistent_loop.accumulator_bytes / 4
    if any(layout.extents[d] != extent for d, extent in enumerate(problem.extents) if d not in persistent_loop.dims):
        base, each = base + PADDED_BASE, each + (BREADTH_PADDED if order == "breadth" else DEPTH_PADDED)
    if layout.cluster > 1:
        base += CLUSTER_REGISTERS[order] + (CLUSTER_SINGLE if problem.vector == 1 and order == "breadth" else 0)
    registers = base + each * layout.elements_per_thread
    return round(registers)


def are_apart(persistent_loop: PersistentLoopProblem, layout: BlockedLayout, order: str) -> bool:
    """Whether rows are reduced, each by one warp or by less, so that the warps of a block never meet in a step.

    With order `depth`, which takes more instructions, what two warps of a scheduler do has not been measured.
    """
    return (
        persistent_loop.inner
        and order == "breadth"
        and layout.threads == WARP * prod(layout.warps[d] for d in persistent_loop.dims)
    )


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


def in_work(candidate: GridCandidate) -> int:
    """Elements of the tiles that are in work on one SM."""
    return candidate.layout.elements_per_thread * candidate.layout.threads * candidate.blocks


def row_elements(problem: Problem) -> int:
    """Elements of a row: of all dimensions that are not looped over."""
    assert problem.persistent_loop is not None
    return prod(extent or 1 for d, extent in enumerate(problem.extents) if d not in problem.persistent_loop.dims)
