"""The rule of `fuse.convert_layout`: tiles go from one layout to another through shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from math import prod

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements, fragment_type
from mlirfuse.distribution.threads.scalars import add, constant, divide, multiply
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.errors import PassError
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.dtypes import from_mlir

BANK, BANKS_BYTES = 4, 128
"""Bytes of a bank of shared memory, and of all banks: what a warp accesses at once, if no two lanes want one bank."""


@dataclass(frozen=True)
class Place:
    """Where the elements of a tile lie in shared memory: the last dimension fastest, with a gap now and then.

    Attributes:
        strides: elements from one index to the next in each dimension.
        padded_dim: the dimension along which the gaps are.
        group: indices of it after which there is one.
        gap: elements of one.
        size: elements of all.
    """

    strides: tuple[int, ...]
    padded_dim: int
    group: int
    gap: int
    size: int

    def of(self, threads: Threads) -> Callable[[Key], ir.Value]:
        """Where a thread's fragments lie, by their numbers."""
        layout = threads.layout
        terms = [multiply(own, step) for own, step in zip(threads.own, self.strides, strict=True) if own is not None]
        straight = reduce(add, terms, constant(0))

        @cache
        def variable(ahead: int) -> ir.Value:
            """What the thread's number decides, for fragments that begin so far into a group."""
            across = threads.own[self.padded_dim]
            if not self.gap or across is None:
                return straight
            return add(straight, multiply(divide(add(across, constant(ahead)), self.group), self.gap))

        def of_fragment(key: Key) -> ir.Value:
            offsets = [layout.offset(n, repeat) for n, repeat in enumerate(key)]
            groups, ahead = divmod(offsets[self.padded_dim], self.group)
            fixed = sum(offset * step for offset, step in zip(offsets, self.strides, strict=True)) + groups * self.gap
            return add(variable(ahead), constant(fixed))

        return of_fragment


def place_between(one: BlockedLayout, other: BlockedLayout, element_bytes: int) -> Place:
    """Where a tile lies whose elements go between two layouts, such that lanes meet few bank conflicts.

    One of the layouts has vectors along the last dimension, and accesses neighbours. The other has them along another
    dimension, and accesses one element of each lane's vector at a time: these are a vector's rows apart, and a gap
    behind so many rows shifts them to other banks. The gap is as wide as what lanes side by side access of a row.
    """
    extents = one.extents
    inner = max(n for n, extent in enumerate(extents) if extent > 1)
    outer = [n for n in range(len(extents)) if n != inner]
    reach = {n: max(layout.lanes[n] * layout.vector[n] for layout in (one, other)) for n in outer}
    padded_dim = max(outer, key=lambda n: (max(one.vector[n], other.vector[n]), reach[n]))
    group = max(one.vector[padded_dim], other.vector[padded_dim])
    across = max((one, other), key=lambda layout: (layout.vector[padded_dim], layout.lanes[padded_dim]))
    wide = max(BANK, element_bytes * max(one.vector[inner], other.vector[inner], across.lanes[inner]))
    row = prod(extents[padded_dim + 1 :])
    gap = (wide - group * row * element_bytes) % BANKS_BYTES // element_bytes
    strides = [prod(extents[n + 1 :]) for n in range(len(extents))]
    block = extents[padded_dim] // group * gap
    strides = [
        step + block * prod(extents[n + 1 : padded_dim]) if n < padded_dim else step for n, step in enumerate(strides)
    ]
    return Place(tuple(strides), padded_dim, group, gap, extents[0] * strides[0] + (block if padded_dim == 0 else 0))


@rule("fuse.convert_layout")
def convert_layout(d: Distributor, op: ir.Operation) -> None:
    """All threads store their fragments of all tiles, meet, and load those that they have in the op's layout."""
    d.flush()
    sources = [d.tiles[value] for value in op.operands]
    moved = [tile for tile in sources if isinstance(tile, Fragments)]
    places = [_place(tile, d.layout) for tile in moved]
    buffers = [d.scratch(place.size, tile.element_type) for place, tile in zip(places, moved, strict=True)]
    for tile, place, buffer in zip(moved, places, buffers, strict=True):
        start = place.of(Threads(tile.layout, d.first_thread))
        for key in tile.keys():
            _store(tile, place, tile.at(key), buffer, start(key))
    if moved:
        d.barrier()
    loaded = (_loaded(d, *each) for each in zip(moved, places, buffers, strict=True))
    for source, result in zip(sources, op.results, strict=True):
        d.tiles[result] = next(loaded) if isinstance(source, Fragments) else source
    if d.in_loop:
        d.barrier()  # the next step stores to the same places


def _place(tile: Fragments, layout: BlockedLayout) -> Place:
    for each in (tile.layout, layout):
        if each.extents != tile.extents or any(each.anywhere) or each.inner or each.run:
            raise PassError(
                f"a tile of {tile.extents} goes between layouts that cover it exactly, not {each.extents}",
                where=ir.Location.current,
            )
    return place_between(tile.layout, layout, from_mlir(tile.element_type).bytes)


def _loaded(d: Distributor, source: Fragments, place: Place, buffer: ir.Value) -> Fragments:
    """The tile in the layout at hand."""
    tile = Fragments(d.layout, source.extents, source.element_type)
    start = place.of(d.threads)
    for key in tile.keys():
        tile.values[key] = _load(tile, place, buffer, start(key))
    return tile


def _store(tile: Fragments, place: Place, value: ir.Value, buffer: ir.Value, start: ir.Value) -> None:
    step = place.strides[tile.layout.vector_dim]
    if tile.width > 1 and step == 1:
        vector.StoreOp(value, buffer, [start], alignment=_bytes(tile))
        return
    for number, part in enumerate(elements(value)):
        memref.StoreOp(part, buffer, [add(start, constant(number * step))])


def _load(tile: Fragments, place: Place, buffer: ir.Value, start: ir.Value) -> ir.Value:
    step = place.strides[tile.layout.vector_dim]
    type_ = fragment_type(tile.width, tile.element_type)
    if tile.width > 1 and step == 1:
        return vector.LoadOp(type_, buffer, [start], alignment=_bytes(tile)).result
    parts: Sequence[ir.Value] = [
        memref.LoadOp(buffer, [add(start, constant(number * step))]).result for number in range(tile.width)
    ]
    return parts[0] if tile.width == 1 else vector.FromElementsOp(type_, parts).result


def _bytes(tile: Fragments) -> int:
    """Size of a fragment, to which its place in shared memory is aligned, up to 16."""
    return min(16, tile.width * from_mlir(tile.element_type).bytes)
