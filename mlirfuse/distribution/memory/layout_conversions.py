"""The rule of `fuse.convert_layout`: moves tiles from one layout to another through shared memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import gcd, prod

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements, fragment_type
from mlirfuse.distribution.threads.scalars import add, constant, divide, multiply
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.errors import PassError
from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import BANK, BANKS_BYTES
from mlirfuse.support.dtypes import from_mlir

WIDEST = 16
"""Bytes of the widest access."""


@dataclass(frozen=True)
class Placement:
    """Placement of a tile's elements in shared memory: row-major, padded to avoid bank conflicts.

    Attributes:
        strides: elements from one index to the next in each dimension.
        padded_dim: the dimension along which padding is inserted.
        group: indices along `padded_dim` between two gaps.
        gap: elements of one gap.
        size: elements of the whole buffer, gaps included.
    """

    strides: tuple[int, ...]
    padded_dim: int
    group: int
    gap: int
    size: int

    def width(self, layout: BlockedLayout, element_bytes: int) -> int:
        """Elements of a thread's access in a layout: a vector, or what all vectors are aligned to."""
        along = layout.vector_dim
        if self.strides[along] != 1:
            return 1
        aligned = min(WIDEST, layout.vector[along] * element_bytes)
        for n, step in enumerate(self.strides):
            aligned = gcd(aligned, element_bytes * (step if n != along else layout.vector[along]))
        return max(1, gcd(aligned, self.gap * element_bytes) // element_bytes)

    def passes(self, layout: BlockedLayout, element_bytes: int) -> float:
        """Passes over the banks that accesses of a warp to all elements of a tile take in a layout."""
        width = self.width(layout, element_bytes)
        together = min(WARP, max(1, BANKS_BYTES // (width * element_bytes)))  # lanes of a pass without a conflict
        words: list[set[int]] = []
        for lane in range(WARP):
            if lane % together == 0:
                words.append(set())
            start = self._place(layout, lane) * element_bytes
            words[-1].update(range(start // BANK, (start + width * element_bytes - 1) // BANK + 1))
        banks = BANKS_BYTES // BANK
        each = sum(max(Counter(word % banks for word in part).values()) for part in words)
        return each * layout.elements_per_thread / width

    def _place(self, layout: BlockedLayout, lane: int) -> int:
        """The place of a lane's first element."""
        place = 0
        for n in reversed(range(layout.rank)):
            lane, own = divmod(lane, layout.lanes[n])
            index = own * layout.step(n)
            place += index * self.strides[n] + (index // self.group * self.gap if n == self.padded_dim else 0)
        return place

    def of(self, threads: Threads) -> Callable[[Key], ir.Value]:
        """A function from a fragment's key to its index in the buffer."""
        layout = threads.layout
        terms = [multiply(own, step) for own, step in zip(threads.own, self.strides, strict=True) if own is not None]
        straight = reduce(add, terms, constant(0))

        @cache
        def variable(ahead: int) -> ir.Value:
            """The summand of the index that depends on the thread, for fragments `ahead` elements into a group."""
            start = threads.own[self.padded_dim]
            if not self.gap or start is None:
                return straight
            return add(straight, multiply(divide(add(start, constant(ahead)), self.group), self.gap))

        def of_fragment(key: Key) -> ir.Value:
            offsets = [layout.offset(n, repeat) for n, repeat in enumerate(key)]
            groups, ahead = divmod(offsets[self.padded_dim], self.group)
            fixed = sum(offset * step for offset, step in zip(offsets, self.strides, strict=True)) + groups * self.gap
            return add(variable(ahead), constant(fixed))

        return of_fragment


@cache
def placement_between(one: BlockedLayout, other: BlockedLayout, element_bytes: int) -> Placement:
    """The placement of a tile that moves between two layouts, with few bank conflicts.

    One layout has its vectors along the last dimension, and its lanes access contiguous elements. The other has them
    along another dimension, and each access takes one element of each lane's vector, so lanes are a vector's rows
    apart. A gap after that many rows, as wide as the elements of a row that neighbouring lanes access, moves them to
    other banks. Where accesses of both layouts take fewer passes over the banks with another gap, that is taken: one
    that is less than a vector splits the vectors of rows.
    """
    extents = one.extents
    inner = max(n for n, extent in enumerate(extents) if extent > 1)
    outer = [n for n in range(len(extents)) if n != inner]
    reach = {n: max(layout.lanes[n] * layout.vector[n] for layout in (one, other)) for n in outer}
    padded_dim = max(outer, key=lambda n: (max(one.vector[n], other.vector[n]), reach[n]))
    group = max(one.vector[padded_dim], other.vector[padded_dim])
    strided = max((one, other), key=lambda layout: (layout.vector[padded_dim], layout.lanes[padded_dim]))
    wide = max(BANK, element_bytes * max(one.vector[inner], other.vector[inner], strided.lanes[inner]))
    row = prod(extents[padded_dim + 1 :])
    usual = (wide - group * row * element_bytes) % BANKS_BYTES
    gaps = dict.fromkeys((usual, *range(0, BANKS_BYTES, max(BANK, element_bytes))))
    found = [padded(extents, padded_dim, group, gap // element_bytes) for gap in gaps]
    return min(found, key=lambda each: sum(each.passes(layout, element_bytes) for layout in (one, other)))


def padded(extents: Sequence[int], dim: int, group: int, gap: int) -> Placement:
    """The row-major placement of a tile, with a gap of so many elements after each group of indices of a dimension."""
    strides = [prod(extents[n + 1 :]) for n in range(len(extents))]
    block = extents[dim] // group * gap
    strides = [step + block * prod(extents[n + 1 : dim]) if n < dim else step for n, step in enumerate(strides)]
    return Placement(tuple(strides), dim, group, gap, extents[0] * strides[0] + (block if dim == 0 else 0))


@rule("fuse.convert_layout")
def convert_layout(d: Distributor, op: ir.Operation) -> None:
    """Stores all tiles in the source layout, and loads them in the op's layout after a barrier."""
    d.flush()
    sources = [d.tiles[value] for value in op.operands]
    moved = [tile for tile in sources if isinstance(tile, Fragments)]
    places = [_placement(tile, d.layout) for tile in moved]
    buffers = [d.scratch(placement.size, tile.element_type) for placement, tile in zip(places, moved, strict=True)]
    for tile, placement, buffer in zip(moved, places, buffers, strict=True):
        start = placement.of(Threads(tile.layout, d.first_thread))
        for key in tile.keys():
            _store(tile, placement, tile.at(key), buffer, start(key))
    if moved:
        d.barrier()
    loaded = (_loaded(d, *each) for each in zip(moved, places, buffers, strict=True))
    for source, result in zip(sources, op.results, strict=True):
        d.tiles[result] = next(loaded) if isinstance(source, Fragments) else source
    if d.in_loop:
        d.barrier()  # the next iteration stores to the same places


def _placement(tile: Fragments, layout: BlockedLayout) -> Placement:
    for each in (tile.layout, layout):
        if each.extents != tile.extents or any(each.anywhere) or each.inner or each.run:
            raise PassError(
                f"a layout of extents {each.extents} does not cover a tile of {tile.extents} exactly, without padding",
                where=ir.Location.current,
                hint="fuse.convert_layout needs two layouts that do",
            )
    return placement_between(tile.layout, layout, from_mlir(tile.element_type).bytes)


def _loaded(d: Distributor, source: Fragments, placement: Placement, buffer: ir.Value) -> Fragments:
    """The tile in the current layout, loaded from the buffer."""
    tile = Fragments(d.layout, source.extents, source.element_type)
    start = placement.of(d.threads)
    for key in tile.keys():
        tile.values[key] = _load(tile, placement, buffer, start(key))
    return tile


def _store(tile: Fragments, placement: Placement, value: ir.Value, buffer: ir.Value, start: ir.Value) -> None:
    step, width, size = placement.strides[tile.layout.vector_dim], *_width(tile, placement)
    if width == tile.width > 1:
        vector.StoreOp(value, buffer, [start], alignment=width * size)
        return
    if width > 1:
        type_, values = fragment_type(width, tile.element_type), elements(value)
        for first in range(0, tile.width, width):
            part = vector.FromElementsOp(type_, values[first : first + width]).result
            vector.StoreOp(part, buffer, [add(start, constant(first))], alignment=width * size)
        return
    for number, element in enumerate(elements(value)):
        memref.StoreOp(element, buffer, [add(start, constant(number * step))])


def _load(tile: Fragments, placement: Placement, buffer: ir.Value, start: ir.Value) -> ir.Value:
    step, width, size = placement.strides[tile.layout.vector_dim], *_width(tile, placement)
    type_ = fragment_type(tile.width, tile.element_type)
    if width == tile.width > 1:
        return vector.LoadOp(type_, buffer, [start], alignment=width * size).result
    if width > 1:
        part, firsts = fragment_type(width, tile.element_type), range(0, tile.width, width)
        places = [[add(start, constant(first))] for first in firsts]
        parts = [vector.LoadOp(part, buffer, place, alignment=width * size).result for place in places]
        return vector.FromElementsOp(type_, [each for value in parts for each in elements(value)]).result
    loaded: Sequence[ir.Value] = [
        memref.LoadOp(buffer, [add(start, constant(number * step))]).result for number in range(tile.width)
    ]
    return loaded[0] if tile.width == 1 else vector.FromElementsOp(type_, loaded).result


def _width(tile: Fragments, placement: Placement) -> tuple[int, int]:
    """Elements of an access to a fragment in shared memory, and bytes of an element."""
    size = from_mlir(tile.element_type).bytes
    return min(tile.width, placement.width(tile.layout, size)), size
