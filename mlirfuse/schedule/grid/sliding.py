"""Schedules of sums over windows that a result of each tap is made of: gradients of depthwise filters, for example.

A thread has a run of neighbours along the innermost dimension in which windows slide, and all elements of a window
there, so that it loads what windows have in common once. It adds the products of its run to its accumulators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf, prod

from mlirfuse.schedule.grid.second_stage import PERIOD, choose_second_stage
from mlirfuse.schedule.grid.shared_memory import legal_schedule
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.problem import PersistentLoopProblem, Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import SECTOR, Target

LONGEST_RUNS = (16, 8, 4)
"""Neighbours of a thread, at most: of each the longest run that divides the extent is a candidate."""

MOST_ROWS = 4
"""Neighbours along the next dimension in which windows slide, at most, where a thread has all of a window there."""

FEWEST_THREADS, MOST_WARPS = 128, 16
"""Threads of a block, and its warps where the dimensions that are kept do not need more."""

MOST_SLICE_WARPS = 8
"""Warps along a slice of the vectors' dimension, at most."""

MOST_PRODUCTS = 2048
"""Products of a thread in a step, at most: beyond it the unrolled code outgrows the instruction cache."""

LEAST_USED = 2 / 3
"""Share of a layout's elements along what is kept that the space has, at least."""

BASE_REGISTERS = 24
"""Registers of a thread beside its accumulators and what it reads in a step."""

ROWS_AHEAD = 2
"""Rows of windows of a thread that are under way while it takes another one."""

COMPENSATED = 3
"""Numbers for each accumulator, where a block adds up its periods."""


def sliding_loops(problem: Problem, loop: PersistentLoopProblem, target: Target) -> Iterator[Schedule]:
    """Legal persistent loops in which windows slide along a thread's run; none for a kernel without such windows.

    Runs divide the extents, so that no index is clamped, and equal loads are seen to be equal.
    """
    pairs = next((a.pairs for a in problem.arrays if a.slides), [])
    pairs = [pair if pair[0] in loop.dims else pair[::-1] for pair in pairs]
    taps = [tap for _, tap in pairs]
    kept = problem.whole - set(loop.dims)
    if any(d not in loop.dims for d, _ in pairs) or kept - {problem.vector_dim} != set(taps) or loop.inner:
        return
    if not pairs or problem.vector_dim not in kept or None in problem.extents:
        return
    for layout in dict.fromkeys(_layouts(problem, loop, pairs)):
        most = _resident(problem, loop, layout, target, pairs)
        while most:
            if (schedule := _complete(problem, loop, layout, most, target)) is not None:
                yield schedule
            most //= 2


def _layouts(problem: Problem, loop: PersistentLoopProblem, pairs: list[tuple[int, int]]) -> Iterator[BlockedLayout]:
    """Every vector and run, with the outer taps in a thread, over lanes, or over warps."""
    extents = [extent or 1 for extent in problem.extents]
    (slid, inner), *outer = pairs
    vectors = [problem.vector >> n for n in range(3) if problem.vector >> n]
    runs = [max(n for n in range(1, most + 1) if extents[slid] % n == 0) for most in LONGEST_RUNS]
    channels = [(vector, *factors) for vector in vectors for factors in _slices(problem, vector)]
    for (vector, along, warps), run, places in product(channels, dict.fromkeys(runs), _places(len(outer))):
        start = _Factors(problem, vector, along, warps)
        start.repeats[slid], start.repeats[inner] = run, extents[inner]
        for (_, tap), place in zip(outer, places, strict=True):
            start.add(tap, extents[tap], place)
        if not start.lanes_left or start.used() < LEAST_USED:
            continue
        rows = [n for n in range(1, MOST_ROWS + 1) if outer and places[0] == "thread" and extents[outer[0][0]] % n == 0]
        for row, more in product(rows or [1], (1, 2, 4, 8)):
            fill = start.copy()
            alone = {slid}
            if row > 1:  # other threads' rows between these would leave nothing in common
                fill.repeats[outer[0][0]] = row
                alone.add(outer[0][0])
            layout = fill.spread([d for d in reversed(loop.dims) if d not in alone], more)
            few = more == 1 or prod(layout.warps) <= MOST_WARPS
            if few and layout.elements_per_thread <= MOST_PRODUCTS:
                yield layout


def _slices(problem: Problem, vector: int) -> Iterator[tuple[int, int]]:
    """Lanes and warps along the vectors' dimension, whole or a slice of it: the fewest of each number of slices."""
    left = -(-(problem.extents[problem.vector_dim] or 1) // vector)
    nbytes = vector * max(a.bytes for a in problem.arrays)
    for lanes in (1 << n for n in range(WARP.bit_length())):
        found = dict[int, int]()
        for warps in range(min(-(-left // lanes), MOST_SLICE_WARPS), 0, -1):
            found[-(-left // (lanes * warps))] = warps
        if -(-left // lanes) > MOST_SLICE_WARPS:
            found[1] = -(-left // lanes)
        for slices, warps in found.items():
            if lanes < 2 * left and (slices == 1 or nbytes * lanes * warps >= SECTOR):
                yield lanes, warps


def _places(count: int) -> Iterator[tuple[str, ...]]:
    """Where the outer taps are, of each dimension in which windows slide: those of the next one in any place."""
    for place in ("thread", "lanes", "warps"):
        yield (place, *("warps",) * (count - 1))[:count]


class _Factors:
    """Factors of a layout that is being filled: the vector's dimension first, then taps, then what is reduced."""

    def __init__(self, problem: Problem, vector: int, lanes: int, warps: int):
        self.problem, rank = problem, problem.rank
        self.extents = [extent or 1 for extent in problem.extents]
        self.vector, self.lanes, self.warps, self.repeats = ([1] * rank for _ in range(4))
        self.vector[problem.vector_dim], self.lanes[problem.vector_dim] = vector, lanes
        self.warps[problem.vector_dim] = warps

    @property
    def lanes_left(self) -> int:
        return WARP // prod(self.lanes)

    def copy(self) -> _Factors:
        found = _Factors(self.problem, 1, 1, 1)
        found.vector, found.lanes = list(self.vector), list(self.lanes)
        found.warps, found.repeats = list(self.warps), list(self.repeats)
        return found

    def add(self, dim: int, extent: int, place: str) -> None:
        """All of a dimension in one place; in lanes a power of two of them, in the next warps what is left."""
        if place == "thread":
            self.repeats[dim] = extent
        elif place == "warps":
            self.warps[dim] = extent
        else:
            self.lanes[dim] = min(self.lanes_left, 1 << (extent - 1).bit_length())
            self.warps[dim] = -(-extent // self.lanes[dim])

    def used(self) -> float:
        """Share of the elements that the layout covers, in all slices, which the space has, along what is kept."""
        kept = [d for d in range(self.problem.rank) if d not in self.problem.reduced]
        covered = [self.vector[d] * self.lanes[d] * self.warps[d] * self.repeats[d] for d in kept]
        return prod(self.extents[d] / (-(-self.extents[d] // n) * n) for d, n in zip(kept, covered, strict=True))

    def spread(self, dims: list[int], warps: int) -> BlockedLayout:
        """The layout with the lanes that are left, and so many warps more, along what is reduced, the innermost first:
        as many as divide it, and the rest along the outermost.
        """
        for factors, left in ((self.lanes, self.lanes_left), (self.warps, warps)):
            for d in dims:
                whole = self.extents[d] // (self.lanes[d] * self.warps[d] * self.repeats[d])
                count = left if d == dims[-1] else min(left, whole & -whole)
                factors[d] *= count
                left //= count
            if not dims:
                factors[self.problem.vector_dim] *= left
        ones = (1,) * self.problem.rank
        return BlockedLayout(tuple(self.vector), tuple(self.lanes), tuple(self.warps), tuple(self.repeats), ones)


def _resident(
    problem: Problem,
    loop: PersistentLoopProblem,
    layout: BlockedLayout,
    target: Target,
    pairs: list[tuple[int, int]],
) -> int:
    """Blocks of an SM whose registers hold the accumulators and what is read in a step; 0 for none."""
    if not FEWEST_THREADS <= layout.threads <= target.max_threads_per_block:
        return 0
    summed = {d for d in loop.dims if layout.is_alone([d])}
    accumulators = (COMPENSATED if loop.wide else 1) * sum(
        part.bytes * prod(layout.fragments(d) * layout.vector[d] for d in (part.kept | part.dims) - summed)
        for part in problem.reductions
    )
    held = accumulators + min(_read_bytes(problem, layout), _bytes_by_rows(problem, layout, pairs))
    registers = round(problem.register_scale * (BASE_REGISTERS + held / REGISTER_BYTES))
    return resident_blocks(layout.threads, allocated(registers), target)


def _read_bytes(problem: Problem, layout: BlockedLayout) -> int:
    """Bytes of a thread for all that it reads in a step, as narrow as it is read."""
    return sum(a.bytes * held_elements(a, layout) for a in problem.arrays if not a.written)


def _bytes_by_rows(problem: Problem, layout: BlockedLayout, pairs: list[tuple[int, int]]) -> float:
    """Bytes of a thread that has several rows of a window and takes them one after the other: for a row of windows, and
    all that is read of other arrays, as wide as it is computed with, and for further rows that are under way.
    """
    outer = {d for pair in pairs[1:] for d in pair}
    if not any(layout.repeats[tap] > 1 for _, tap in pairs[1:]):
        return inf
    row = replace(layout, repeats=tuple(1 if d in outer else n for d, n in enumerate(layout.repeats)))
    reads = [a for a in problem.arrays if not a.written]
    others = sum(max(REGISTER_BYTES, a.bytes) * held_elements(a, layout) for a in reads if not a.slides)
    rows = [(max(REGISTER_BYTES, a.bytes) + ROWS_AHEAD * a.bytes) * held_elements(a, row) for a in reads if a.slides]
    return others + sum(rows)


def _complete(
    problem: Problem, loop: PersistentLoopProblem, layout: BlockedLayout, blocks: int, target: Target
) -> Schedule | None:
    """The schedule of a layout with so many blocks an SM; None if it is illegal."""
    extents = [extent or 1 for extent in problem.extents]
    tile = tuple(n if d in loop.dims else min(extents[d], n) for d, n in enumerate(layout.extents))
    slices, most = -(-extents[problem.vector_dim] // tile[problem.vector_dim]), target.sms * blocks
    if slices > most or any(problem.vector_dim not in part.kept for part in problem.reductions):
        return None
    second_stage_tile, second_stage_layout, reads = choose_second_stage(problem, loop, layout, blocks, target, slices)
    plan = PersistentLoop(
        loop.dims,
        "grid_sync" if slices == 1 else "second_kernel",
        second_stage_tile,
        second_stage_layout,
        second_stage_reads=reads,
        period=PERIOD if loop.wide else 0,
        blocks=0 if slices == 1 else most - most % slices,
        consecutive=True,
        slices=slices,
    )
    return legal_schedule(problem, Schedule(tile, layout, blocks_per_sm=blocks, persistent_loop=plan), target)
