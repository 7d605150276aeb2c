"""Ways for a persistent loop to run over rows: which threads hold a row, and how many rows come side by side or are
unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from math import prod

from mlirfuse.schedule.grid.second_stage import staged
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.loops import are_apart, unrolled_rows
from mlirfuse.schedule.model.registers import loop_registers
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

TILE_ELEMENTS = 8192
"""Elements of the tiles that are in work on one SM."""

MOST_ELEMENTS = 40
"""Elements that a thread may hold: the register estimates hold up to here."""

MOST_CARRIED = 8
"""Elements of an access whose accumulators leave registers to other values: more are halved in some candidates."""

WAYS = (("breadth", "registers"), ("depth", "registers"), ("depth", "shared"))
"""In which order a thread works, and where it keeps what all tiles share: the first way needs the most registers."""

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
    may_unroll = persistent_loop.inner and persistent_loop.outer_only and problem.vector > 1
    vectors = [problem.vector, problem.vector // 2] if problem.vector > MOST_CARRIED else [problem.vector]
    layouts = (
        _layouts(problem.extents, problem.vector_dim, vector, persistent_loop.dims, may_unroll, target)
        for vector in vectors
    )
    for layout in chain.from_iterable(layouts):
        reached = 0
        for order, columns in WAYS:
            if columns == "shared" and not persistent_loop.column_bytes:
                continue
            if unrolled_rows(persistent_loop, layout) > 1 and order != "breadth":
                continue
            registers = squeeze * loop_registers(problem, persistent_loop, layout, order, columns)
            most = _resident_blocks(problem, layout, registers, target)
            if most <= reached:  # an order of fewer registers and more instructions only pays with more blocks
                continue
            reached = most
            # Where no warp waits for another, fewer blocks may do: more bytes may be under way than memory can serve.
            while most:
                yield layout, order, columns, most
                most = most // 2 if are_apart(persistent_loop, layout, order) else 0


@lru_cache(maxsize=64)  # kernels that passes compare have rows in common
def _layouts(
    extents: tuple[int | None, ...],
    vector_dim: int,
    vector: int,
    looped: tuple[int, ...],
    may_unroll: bool,
    target: Target,
) -> tuple[BlockedLayout, ...]:
    """Every way to spread a row over lanes, warps and blocks of a cluster, with every number of rows side by side or
    unrolled, whose threads hold few enough elements.

    Unrolled rows are reduced together: the warps that hold them exchange partials once for all. Where a row is one
    warp's, or nothing is reduced inside of it, no warp waits. Reductions that are over a row's elements too would be
    carried for each unrolled row.
    """
    most_warps, abreast = target.max_threads_per_block // WARP, looped[-1]
    inner = sorted(set(range(len(extents))) - set(looped), key=lambda d: (d != vector_dim, -d))
    found: dict[BlockedLayout, None] = {}
    for doublings in range(target.max_cluster.bit_length()):
        for lanes in (WARP, 16, 8) if doublings == 0 else (WARP,):
            repeats = []
            for warps in range(1, (most_warps if lanes == WARP else 1) + 1):
                row = LayoutBuilder(extents, vector_dim, vector)
                fill = _row_builder(row, inner, abreast, lanes, warps, 1 << doublings)
                if fill is None or fill.repeats in repeats:  # more warps that have as much each only idle more
                    continue
                repeats.append(fill.repeats)
                layout = fill.layout()
                if layout.elements_per_thread > MOST_ELEMENTS:  # and more rows are no less
                    continue
                most_rows = min(most_warps // warps, fill.left(abreast))
                for rows in _powers_and_a_half(most_rows):
                    found[replace(layout, warps=_times(rows, layout.warps, abreast))] = None
                if may_unroll and warps > 1 and layout.is_alone(looped):
                    for rows in range(2, min(MAX_UNROLLED_ROWS, fill.left(abreast)) + 1):
                        found[replace(layout, repeats=_times(rows, layout.repeats, abreast))] = None
    return tuple(layout for layout in found if layout.elements_per_thread <= MOST_ELEMENTS)


def _powers_and_a_half(most: int) -> list[int]:
    """Powers of two, and one and a half times these: numbers of rows side by side that fill a block better."""
    powers = [1 << n for n in range(most.bit_length())]
    return sorted({*powers, *(n + n // 2 for n in powers if n > 1 and n + n // 2 <= most)})


def _times(rows: int, factors: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A layout's factors with that of one dimension multiplied by `rows`."""
    return tuple(rows * n if d == dim else n for d, n in enumerate(factors))


def _row_builder(
    fill: LayoutBuilder, inner: Sequence[int], outer: int, lanes: int, warps: int, cluster: int
) -> LayoutBuilder | None:
    """A row over `lanes` lanes of `warps` warps of `cluster` blocks; None if some would idle."""
    fill.add_lanes(*inner, most=lanes)
    fill.rest_of_lanes(outer)
    fill.add_blocks(*inner, most=cluster)
    fill.add_warps(*inner, most=warps)
    if prod(fill.blocks) != cluster or prod(fill.warps) != warps:
        return None
    fill.rest_in_repeats(*inner)
    each = ((fill.extents[d], fill.covered(d), fill.blocks[d]) for d in inner)
    # The last block of a cluster has elements too.
    return None if any(extent is not None and n // b * (b - 1) >= extent for extent, n, b in each) else fill


def _resident_blocks(problem: Problem, layout: BlockedLayout, registers: float, target: Target) -> int:
    """How many blocks, of `registers` registers a thread, are to share an SM; 0 if not even one fits."""
    wanted = TILE_ELEMENTS // (layout.elements_per_thread * layout.threads)
    return min(estimated_blocks(problem, layout, registers, target), max(1, wanted))
