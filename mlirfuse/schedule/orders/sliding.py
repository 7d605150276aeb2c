"""Schedules of elementwise kernels that read windows: a thread has neighbours, whose windows overlap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.model.residency import estimated_blocks
from mlirfuse.schedule.parts.array_access import ArrayAccess
from mlirfuse.schedule.predict.counts.accesses import held_elements
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

LONGEST_RUN = 14
"""Neighbours of a thread along one dimension, at most: of more the first window's loads are a small part."""

MOST_ROWS = 8
"""Neighbours along the next dimension outwards, at most."""

MOST_PRODUCTS = 3072
"""Taps of all results of a thread, at most: its code, which no loop repeats, is to stay in an SM's instruction cache,
and takes seconds to assemble."""

BASE_REGISTERS = 24
"""Registers of a thread beside its results and what it computes them from: addresses, and which windows leave."""


def sliding_schedules(problem: Problem, threads: int, most_read: int, target: Target) -> Iterator[Schedule]:
    """Layouts in which a thread has a run along the innermost dimension in which windows overlap, or along two.

    Runs divide the extents, so that no index along them is clamped, and equal loads are seen to be equal. Lanes do too,
    or a warp's lie along the vectors' dimension, past its end where they must.

    Args:
        problem: the kernel, whose vectors are as wide as its `vector`.
        threads: of a block, at most.
        most_read: bytes that a thread reads at most.
        target: the architecture.
    """
    windows = [a for a in problem.arrays if a.taps > 1]
    if not windows or problem.transposed is not None:
        return
    slid = [d for d in windows[0].order if d != problem.vector_dim and _overlaps(windows[0], d)]
    if not slid:
        return
    for run in _divisors(problem.extents[slid[0]], LONGEST_RUN):
        for rows in _divisors(problem.extents[slid[1]], MOST_ROWS) if len(slid) > 1 else (1,):
            runs = [1] * problem.rank
            runs[slid[0]] = run
            if len(slid) > 1:
                runs[slid[1]] = rows
            for layout in dict.fromkeys(_layout(problem, runs, threads, whole=whole) for whole in (False, True)):
                held = sum(a.bytes * held_elements(a, layout) for a in _full(problem))
                blocks = estimated_blocks(problem, layout, _registers(problem, layout, slid), target)
                taps = max(a.taps for a in windows) * layout.elements_per_thread
                if run * rows > 1 and held <= most_read and blocks and taps <= MOST_PRODUCTS:
                    yield Schedule(problem.tile_of(layout), layout, blocks_per_sm=blocks)


def _registers(problem: Problem, layout: BlockedLayout, slid: Sequence[int]) -> float:
    """Registers of a thread that takes the taps of its windows one row after the other, for all of its own rows at
    once: its sums, and of windows the elements of a row of taps, as narrow as they are read; those of one of its own
    rows as wide as it computes with them too.
    """
    vector, own_row = layout.vector[problem.vector_dim], replace(layout, run=_without(layout.run, slid[1:]))
    held = 0.0
    for array in (a for a in _full(problem) if a.taps > 1):
        windows = zip(array.dims, array.windows, strict=True)
        row = replace(array, windows=tuple((step, (0,) if d in slid[1:] else own) for d, (step, own) in windows))
        each = max(REGISTER_BYTES, vector * array.bytes) / REGISTER_BYTES / vector
        held += each * held_elements(row, layout)
        held += held_elements(row, own_row) if each < 1 else 0
    results = sum(max(1, a.bytes // REGISTER_BYTES) for a in problem.arrays if a.written)
    return BASE_REGISTERS + held + results * layout.elements_per_thread


def _without(run: tuple[int, ...], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(1 if d in dims else n for d, n in enumerate(run))


def tap_bytes(problem: Problem) -> int:
    """Bytes that an element of the space reads, whatever its neighbours read."""
    return max(problem.read_bytes, sum(a.bytes * a.taps for a in _full(problem)))


def _full(problem: Problem) -> list[ArrayAccess]:
    """The arrays that are read over the whole space."""
    return [a for a in problem.whole_arrays if not a.written]


def _overlaps(array: ArrayAccess, dim: int) -> bool:
    step, offsets = array.windows[array.dims.index(dim)]
    return len(offsets) > len({offset % step for offset in offsets})


def _divisors(extent: int | None, most: int) -> list[int]:
    return [n for n in range(1, most + 1) if extent is not None and extent % n == 0] or [1]


def _layout(problem: Problem, runs: list[int], threads: int, *, whole: bool) -> BlockedLayout:
    """Lanes and warps along the vector's dimension first, then outwards, as far as they divide what is left; `whole`
    gives that dimension a warp's lanes, if it has work for so many.
    """
    order = problem.outwards(range(problem.rank))
    fill = LayoutBuilder(problem.extents, problem.vector_dim, problem.vector)
    fill.run = list(runs)
    if whole and fill.left(problem.vector_dim) >= WARP:
        fill.add_lanes(problem.vector_dim)
    fill.divide_lanes(*order)
    fill.rest_of_lanes(order[-1])
    for d in order:
        room = max(1, threads // WARP // prod(fill.warps))
        left = fill.left(d)
        fill.warps[d] = room if problem.extents[d] is None else max(n for n in range(1, room + 1) if left % n == 0)
    return fill.layout()
