"""Schedules of kernels that reduce nothing: a tile a block, of one vector a thread or a few.

Arrays that are contiguous along different dimensions are read and written in square tiles through shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from types import MappingProxyType

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.layout_builder import LayoutBuilder, halves
from mlirfuse.schedule.model.machine import BLOCK_THREADS, REGISTER_BYTES
from mlirfuse.schedule.model.residency import registers_left
from mlirfuse.schedule.orders.sliding import sliding_schedules, tap_bytes
from mlirfuse.schedule.parts.transposed_tiles import MOST_TRANSPOSED, TransposedTiles
from mlirfuse.schedule.problem import Problem, TransposedProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR, Target

VECTORS = (1, 2, 4)
"""Vectors of a thread, which a block's width lies between."""

FEWEST_LANES = 4
"""Lanes along a row, at least: with vectors of 4 bytes and more these read whole sectors."""

TRANSPOSED_ELEMENTS = 32
"""Elements of a row that a thread accesses side by side where its neighbours are in other rows: two sectors of 16-bit
elements, or more."""

MOST_READ_BYTES = 800
"""Bytes that a thread of an elementwise kernel reads at most, by narrower accesses where arrays are many: ptxas has all
loads under way at once, and spills. Threads of a block that leaves each fewer registers read as much less."""

SIDE = 64
"""Elements of a tile's row, if these are a line: smaller tiles have too few loads under way."""


Repeats = Mapping[int, int]
"""Vectors of a thread along some dimensions."""


def elementwise_schedules(problem: Problem, target: Target) -> Iterator[Schedule]:
    """With vectors of every width, blocks of a few sizes, and with and without tiles transposed in shared memory.

    Tiles fill dimensions from the inside out, and a dimension of run time has room for any; where an extent is
    expected, others go on with the next dimension behind it.
    """
    yield from _filled(problem, target)
    if problem.expected != problem.extents:
        yield from _filled(replace(problem, extents=problem.expected, hints=()), target)


def _filled(problem: Problem, target: Target) -> Iterator[Schedule]:
    for vector in halves(problem.vector):
        narrow = replace(problem, vector=vector)
        for threads in BLOCK_THREADS:
            most_read = most_read_bytes(threads, target)
            if transposed := transposed_schedule(narrow, threads):
                yield transposed
            for repeats in (*_unpadded_repeats(narrow, most_read), *_sharing_repeats(narrow, most_read)):
                yield elementwise_schedule(narrow, threads=threads, vectors=1, most_read=most_read, repeats=repeats)
            for vectors in VECTORS if problem.transposed is None else (1,):
                if vectors == 1 or vectors * vector * tap_bytes(problem) <= most_read:
                    yield elementwise_schedule(narrow, threads=threads, vectors=vectors, most_read=most_read)
            yield from sliding_schedules(narrow, threads, most_read, target)


def _unpadded_repeats(problem: Problem, most_read: int) -> Iterator[Repeats]:
    """Vectors of a thread along a row that fewer lanes than a warp has cover exactly, where a warp's lanes do not; and
    rows of a thread, of few that are no power of two. A thread does not read too much, nor lanes less than a sector.
    """
    row = problem.vector_dim
    extent = problem.extents[row]
    if extent is None or extent % problem.vector or problem.transposed is not None:
        return
    vectors = extent // problem.vector
    if vectors >= WARP or vectors & -vectors < FEWEST_LANES:
        return
    found = [{row: _odd(vectors)}]
    outer = next((d for d in reversed(range(problem.rank)) if d != row and problem.extents[d] != 1), None)
    if outer is not None and (rows := problem.extents[outer]) is not None and rows < WARP and _odd(rows) > 1:
        found.append({row: _odd(vectors), outer: _odd(rows)})
    for repeats in found:
        held = prod(repeats.values())
        if held > 1 and problem.vector * held * tap_bytes(problem) <= most_read:
            yield repeats


def _sharing_repeats(problem: Problem, most_read: int) -> Iterator[Repeats]:
    """Vectors of a thread along a dimension that arrays are broadcast along, which it then reads once for all of them:
    of a rotary embedding's angles, which positions have alone, those of several heads.
    """
    if problem.transposed is not None:
        return
    of_tables = sum(table.bytes for table in problem.tables)
    for d in problem.sharing_dims:
        for n in VECTORS[1:]:
            read = problem.vector * (n * tap_bytes(problem) + of_tables)
            if (problem.extents[d] or n) >= n and read <= most_read:
                yield {d: n}


def _odd(extent: int) -> int:
    """The largest odd factor of an extent."""
    return extent // (extent & -extent)


def most_read_bytes(threads: int, target: Target) -> int:
    """Bytes that a thread reads at most where a block has so many threads, one block an SM."""
    lacking = target.max_registers_per_thread - registers_left(threads, 1, target)
    return MOST_READ_BYTES - lacking * REGISTER_BYTES


def elementwise_schedule(
    problem: Problem,
    *,
    threads: int = BLOCK_THREADS[0],
    vectors: int = 1,
    most_read: int = MOST_READ_BYTES,
    repeats: Repeats = MappingProxyType({}),
) -> Schedule:
    """Vectors of a thread, threads along the contiguous dimension first and then outwards.

    Where arrays are contiguous along different dimensions, lanes lie along one of them and vectors along the other, so
    that a warp accesses whole sectors of both.

    Args:
        problem: the kernel.
        threads: of a block.
        vectors: of a thread.
        most_read: bytes that a thread reads at most, unless one element of each array is more.
        repeats: vectors of a thread along some dimensions, whose lanes are as many fewer.
    """
    vector = problem.vector
    while vector > 1 and vector * tap_bytes(problem) > most_read:
        vector //= 2
    fill = LayoutBuilder(problem.extents, problem.vector_dim, vector)
    across = problem.transposed.dim if problem.transposed else None
    for d, n in repeats.items():
        fill.repeats[d] = n
    outwards = [d for d in reversed(range(problem.rank)) if d not in (problem.vector_dim, across)]
    order = [problem.vector_dim, *outwards]
    if across is not None:
        order.insert(0, across)
        most = min(TRANSPOSED_ELEMENTS, most_read // max(1, problem.read_bytes)) // vector
        fill.repeats[problem.vector_dim] = max(1, min(most, fill.left(problem.vector_dim)))
    fill.add_lanes(*order)
    fill.add_warps(*order, most=threads // WARP)
    fill.add_repeats(*order, most=vectors)
    fill.rest_of_lanes(order[-1])
    layout = fill.layout()
    return Schedule(problem.tile_of(layout), layout)


def transposed_schedule(problem: Problem, threads: int) -> Schedule | None:
    """Square tiles whose rows are whole lines, along both dimensions in which arrays are contiguous; a block has so
    many threads at most.

    None where no array is transposed, or rows of one are shorter than a sector.
    """
    transposed = problem.transposed
    if transposed is None:
        return None
    dims, side = (problem.vector_dim, transposed.dim), max(SIDE, LINE // transposed.narrowest)
    while side > 1 and _is_too_large(side, problem, transposed, threads):
        side //= 2
    if min(min(side, problem.extents[d] or side) for d in dims) * transposed.narrowest < SECTOR:
        return None
    sides = [min(side, _power_of_two_from(problem.extents[d])) for d in dims]
    tile = [1] * problem.rank
    for d, extent in zip(dims, sides, strict=True):
        tile[d] = extent
    widest = max(problem.vector, transposed.vector)
    warps = min(threads, sides[0] * sides[1] // widest) // WARP
    if not warps:
        return None
    straight = _layout(tile, problem.vector_dim, transposed.dim, problem.vector, warps)
    across = _layout(tile, transposed.dim, problem.vector_dim, transposed.vector, warps)
    transposed_tiles = TransposedTiles(transposed.dim, across, transposed.mirrored)
    if transposed_tiles.check_mirrored(tuple(tile), problem.extents):
        transposed_tiles = replace(transposed_tiles, mirrored=False)
    return Schedule(tuple(tile), straight, transposed=transposed_tiles)


def _is_too_large(side: int, problem: Problem, transposed: TransposedProblem, threads: int) -> bool:
    elements = side * side
    return elements * transposed.bytes > MOST_TRANSPOSED or elements // threads * problem.read_bytes > MOST_READ_BYTES


def _power_of_two_from(extent: int | None) -> int:
    """The smallest power of two that is not less than an extent."""
    return 1 << 30 if extent is None else 1 << (extent - 1).bit_length()


def _layout(tile: list[int], along: int, across: int, vector: int, warps: int) -> BlockedLayout:
    """The layout of a tile whose warps access rows along a dimension, as long as lanes reach, and as many as are left.

    All numbers are powers of two, and a thread has a vector at least.
    """
    fill = LayoutBuilder(tile, along, vector)
    fill.add_lanes(along)
    fill.rest_of_lanes(across)
    fill.add_warps(across, along, most=warps)
    fill.rest_in_repeats(across, along)
    return fill.layout()
