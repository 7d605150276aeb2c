"""Ways for a persistent loop to run over rows: which threads hold a row, and how many rows come side by side or are
unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import prod

from mlirfuse.schedule.grid.second_stage import staged
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.loops import are_apart, row_elements, unrolled_rows
from mlirfuse.schedule.model.registers import loop_registers
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

TILE_ELEMENTS = 8192
"""Elements of the tiles that are in work on one SM."""

UNROLL_TOTALS, UNROLL_ELEMENTS = 2, 10240
"""Where rows are unrolled, bytes of an element's accumulators to every byte that is read of it, at most, as more spill;
and elements of the tiles in work on one SM."""

MOST_ELEMENTS = 40
"""Elements that a thread may hold: the register estimates hold up to here."""

MOST_CARRIED = 8
"""Elements of an access whose accumulators leave registers to other values: more are halved in some candidates."""

WAYS = (("breadth", "registers"), ("depth", "registers"), ("depth", "shared"))
"""In which order a thread works, and where it keeps what all tiles share: the first way needs the most registers."""

MOST_ROWS = 16
"""Warps side by side in a tile, at most."""

MAX_UNROLLED_ROWS = 4
"""Rows that a thread is unrolled over, at most."""


SQUEEZED = 0.75
"""Share of the estimated registers that ptxas may have to do with, where no other schedule is left."""


def row_loops(problem: Problem, persistent_loop: PersistentLoopProblem, target: Target) -> Iterator[Schedule]:
    """Legal persistent loops over whole rows.

    Where registers suffice for none, and no reduction of rows is fused with those of columns, some are tried that leave
    ptxas fewer registers than are estimated.
    """
    if any(extent is None for d, extent in enumerate(problem.extents) if d not in persistent_loop.dims):
        return
    for squeeze in (1.0, SQUEEZED):
        found = False
        for layout, order, columns, blocks in _ways(problem, persistent_loop, target, squeeze):
            schedule = staged(problem, persistent_loop, layout, order, columns, blocks, target)
            if schedule is not None:
                found = True
                yield schedule
        if found or persistent_loop.inner or problem.loop_is_optional:
            return


def _ways(
    problem: Problem, persistent_loop: PersistentLoopProblem, target: Target, squeeze: float
) -> Iterator[tuple[BlockedLayout, str, str, int]]:
    """Every split of a row over lanes, warps and blocks of a cluster, with every number of rows side by side or
    unrolled that fits: the layout of a tile, one of `WAYS`, and the blocks of an SM.
    """
    few_accumulators = persistent_loop.accumulator_bytes <= UNROLL_TOTALS * problem.read_bytes
    may_unroll = persistent_loop.inner and persistent_loop.outer_only and few_accumulators and problem.vector > 1
    rows = [_Row(problem.extents, problem.vector_dim, n, persistent_loop.dims) for n in _vectors(problem.vector)]
    layouts = (_layouts(row, may_unroll, target.max_cluster, target.max_threads_per_block) for row in rows)
    for layout in chain.from_iterable(layouts):
        reached = 0
        for order, columns in WAYS:
            if columns == "shared" and not persistent_loop.column_bytes:
                continue
            if unrolled_rows(persistent_loop, layout) > 1 and order != "breadth":
                continue
            registers = squeeze * loop_registers(problem, persistent_loop, layout, order, columns)
            most = _resident_blocks(problem, persistent_loop, layout, registers, target)
            if most <= reached:  # an order of fewer registers and more instructions only pays with more blocks
                continue
            reached = most
            # Where no warp waits for another, fewer blocks may do: more bytes may be under way than memory can serve.
            while most:
                yield layout, order, columns, most
                most = most // 2 if are_apart(persistent_loop, layout, order) else 0


def _vectors(widest: int) -> list[int]:
    """Elements that a thread may move at once: of narrow elements, whose accumulators are wider, half as many too."""
    return [widest, widest // 2] if widest > MOST_CARRIED else [widest]


@dataclass(frozen=True)
class _Row:
    """What the layouts of a row depend on.

    Attributes:
        extents: of the iteration space; None where dynamic.
        vector_dim: the dimension in which memory is contiguous.
        vector: elements that a thread moves at once.
        looped: the dimensions of the persistent loop.
    """

    extents: tuple[int | None, ...]
    vector_dim: int
    vector: int
    looped: tuple[int, ...]


@lru_cache(maxsize=64)  # kernels that passes compare have rows in common
def _layouts(row: _Row, may_unroll: bool, most_blocks: int, most_threads: int) -> tuple[BlockedLayout, ...]:
    """Every way to spread a row over lanes, warps and blocks of a cluster, with every number of rows side by side or
    unrolled, whose threads hold few enough elements.

    Unrolled rows are reduced together: the warps that hold them exchange partials once for all. Where a row is one
    warp's, or nothing is reduced inside of it, no warp waits. Reductions that are over a row's elements too would be
    carried for each unrolled row.
    """
    found = dict.fromkeys(_all_layouts(row, may_unroll, most_blocks, most_threads))
    return tuple(layout for layout in found if layout.elements_per_thread <= MOST_ELEMENTS)


def _all_layouts(row: _Row, may_unroll: bool, most_blocks: int, most_threads: int) -> Iterator[BlockedLayout]:
    most_warps = most_threads // WARP
    abreast = row.looped[-1]
    for doublings in range(most_blocks.bit_length()):
        for lanes in (WARP, 16, 8) if doublings == 0 else (WARP,):
            repeats = []
            for warps in range(1, (most_warps if lanes == WARP else 1) + 1):
                fill = _row_builder(row, lanes, warps, 1 << doublings)
                if fill is None or fill.repeats in repeats:  # more warps that have as much each only idle more
                    continue
                repeats.append(fill.repeats)
                layout = fill.layout()
                if layout.elements_per_thread > MOST_ELEMENTS:  # and more rows are no less
                    continue
                for rows in _rows(min(MOST_ROWS, most_warps // warps, fill.left(abreast))):
                    yield replace(layout, warps=_times(rows, layout.warps, abreast))
                if may_unroll and warps > 1 and layout.is_alone(row.looped):
                    for rows in range(2, min(MAX_UNROLLED_ROWS, fill.left(abreast)) + 1):
                        yield replace(layout, repeats=_times(rows, layout.repeats, abreast))


def _rows(most: int) -> Iterator[int]:
    """Rows side by side: powers of two, and these and a half."""
    rows = 1
    while rows <= most:
        yield rows
        if rows > 1 and rows + rows // 2 <= most:
            yield rows + rows // 2
        rows *= 2


def _times(rows: int, factors: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A layout's factors with that of one dimension multiplied by `rows`."""
    return tuple(rows * n if d == dim else n for d, n in enumerate(factors))


def _row_builder(row: _Row, lanes: int, warps: int, cluster: int) -> LayoutBuilder | None:
    """A row over `lanes` lanes of `warps` warps of `cluster` blocks; None if some would idle."""
    fill = LayoutBuilder(row.extents, row.vector_dim, row.vector)
    inner = sorted(set(range(len(row.extents))) - set(row.looped), key=lambda d: (d != row.vector_dim, -d))
    fill.add_lanes(*inner, most=lanes)
    fill.rest_of_lanes(row.looped[-1])
    fill.add_blocks(*inner, most=cluster)
    fill.add_warps(*inner, most=warps)
    if prod(fill.blocks) != cluster or prod(fill.warps) != warps:
        return None
    fill.rest_in_repeats(*inner)
    each = ((row.extents[d], fill.covered(d), fill.blocks[d]) for d in inner)
    # The last block of a cluster has elements too.
    return None if any(extent is not None and n // b * (b - 1) >= extent for extent, n, b in each) else fill


def _resident_blocks(
    problem: Problem, persistent_loop: PersistentLoopProblem, layout: BlockedLayout, registers: float, target: Target
) -> int:
    """How many blocks, of `registers` registers a thread, are to share an SM; 0 if not even one fits."""
    unrolled = unrolled_rows(persistent_loop, layout)
    wanted = TILE_ELEMENTS // (layout.elements_per_thread * layout.threads)
    if unrolled > 1:
        wanted = UNROLL_ELEMENTS // (unrolled * row_elements(problem))
    return min(estimated_blocks(problem, layout, registers, target), max(1, wanted))
