"""The shared memory of an exchange: the slot that each sender writes, and the slots that each thread reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from math import prod

from mlir import ir
from mlir.dialects import arith, memref, vector

from mlirfuse.dialect.cluster_send import cluster_send
from mlirfuse.dialect.cluster_store import cluster_store
from mlirfuse.distribution.exchange.exchange import Exchange, Site, Values, positions
from mlirfuse.distribution.exchange.partials import (
    LOOPED_GROUP,
    LanePartials,
    ListedPartials,
    LoopedPartials,
    Partial,
    Partials,
)
from mlirfuse.distribution.threads.fragments import Fragments, Key, elements, fragment_alignment
from mlirfuse.distribution.threads.guard import Guard, both
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum, multiply, remainder
from mlirfuse.distribution.threads.shuffles import lane_offsets
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.support.dtypes import from_mlir

MOST_LISTED = 2
"""Most senders whose partials a thread merges alone, where each sends several values; more would need too many
registers.
"""

MOST_LISTED_ALONE = 8
"""Most senders whose partials a thread merges alone, where each sends one scalar: two loads of four, and no shuffles.
"""

MOST_LISTED_ELEMENTS = 64
"""Most vector elements, of all senders of a step, that a thread loads at once. The second stage of a grid reduction has
registers for that many, because the persistent loop's are free by then.
"""


@dataclass(frozen=True)
class ArrayRange:
    """A range of a shared-memory array that several exchanges share.

    Attributes:
        array: the array.
        start: first element of the exchange's range.
        size: elements of the whole array; a second copy of the same size follows in a loop.
    """

    array: ir.Value
    start: int
    size: int


class Slots:
    """Shared memory of one exchange: a slot for each sender at each position of the kept dimensions.

    `looped` says that the vectors of all senders do not fit a thread's registers, so that a loop merges them.
    """

    def __init__(
        self,
        d: Site,
        exchange: Exchange,
        senders: int,
        phase: ir.Value | None,
        array_range: ArrayRange | None = None,
        looped: bool = True,
    ):
        self.d = d
        self.phase = phase
        self.exchange = exchange
        self.senders = senders
        self.looped = looped
        self.model = exchange.partials[0]
        layout = self.model.layout
        # A vector's elements are contiguous: its dimension comes last.
        inner = layout.vector_dim
        kept = [n for n in range(layout.rank) if n not in exchange.dims and self.model.varies(n)]
        self.kept = sorted(kept, key=lambda n: n == inner)
        # Along these dimensions all threads hold the same partial result, and one of them writes it.
        self.copies = [n for n in range(layout.rank) if n not in exchange.dims and not self.model.varies(n)]
        self.positions = positions(self.model, exchange.dims)
        self.size = self.positions * senders
        copies = 1 if phase is None else 2
        self.array_range = array_range
        self.buffers = (
            [d.scratch(self.size * copies, p.element_type) for p in exchange.partials]
            if array_range is None
            else [array_range.array]
        )

    def store_local(self, values: Values) -> None:
        """Stores each warp's partial results, from the warp's first lane along the reduced dimensions."""
        threads = self.d.threads
        first = threads.is_first(self.exchange.dims, "warp")
        with Guard(both(first, threads.is_first(self.copies, "block"))):
            for key, fragments in values.items():
                for fragment, buffer in zip(fragments, self.buffers, strict=True):
                    index = self.local_index(key)
                    if isinstance(fragment.type, ir.VectorType):
                        vector.StoreOp(fragment, buffer, [index], alignment=fragment_alignment(fragment.type))
                    else:
                        memref.StoreOp(fragment, buffer, [index])

    def local_index(self, key: Key) -> ir.Value:
        """Index of the slot that the thread's warp writes for a position."""
        threads = self.d.threads
        return self.index(key, threads.linear(threads.warp, self.model.layout.warps, self.exchange.dims))

    def store_remote(self, values: Values) -> None:
        """Stores each position's value in the shared memory of every block along the reduced dimensions.

        A cluster may also extend over kept dimensions, where a kernel reduces some dimensions at a time. Blocks with
        other coordinates there hold other positions, or copies of their own.
        """
        threads = self.d.threads
        layout = self.model.layout
        own = threads.linear(threads.block, layout.blocks, self.exchange.dims)
        lane = threads.linear(threads.lane, layout.lanes, self.exchange.dims)
        warp = threads.linear(threads.warp, layout.warps, self.exchange.dims)
        lanes = prod(layout.lanes[n] for n in self.exchange.dims)
        # Each lane writes to one receiving block if there are enough lanes; otherwise the first lane writes to all
        # blocks.
        has_lane_each = lanes >= self.senders
        condition = less(lane, constant(self.senders)) if has_lane_each and lane is not None else None
        for other in (warp, None if has_lane_each else lane):
            if other is not None:
                zero = arith.CmpIOp(arith.CmpIPredicate.eq, other, constant(0)).result
                condition = zero if condition is None else arith.AndIOp(condition, zero).result
        condition = both(condition, threads.is_first(self.copies, "block"))
        numbers = [lane] if has_lane_each and lane is not None else [constant(n) for n in range(self.senders)]
        receivers = [threads.peer(number, self.exchange.dims) for number in numbers]
        with Guard(condition):
            for key, fragments in values.items():
                for fragment, buffer in zip(fragments, self.buffers, strict=True):
                    for receiver in receivers:
                        for offset, element in enumerate(elements(fragment)):
                            index = self.index(key, own)
                            cluster_store(element, buffer, add(index, constant(offset)) if offset else index, receiver)

    def sent_bytes(self, values: Values) -> int:
        """Bytes that all warps of the cluster together send to one block."""
        layout = self.model.layout
        places = len(values) * prod(layout.warps[n] * layout.lanes[n] for n in self.kept)
        return places * self.senders * sum(from_mlir(p.element_type).bytes for p in self.exchange.partials)

    def send(self, values: Values, barriers: ir.Value, number: ir.Value) -> None:
        """Sends the warp's partial results to every block of the cluster: each of the first lanes along the reduced
        dimensions sends to one block.
        """
        threads, layout, dims = self.d.threads, self.model.layout, self.exchange.dims
        warp = threads.linear(threads.warp, layout.warps, dims)
        block = threads.linear(threads.block, layout.blocks, dims)
        receiver = threads.linear(threads.lane, layout.lanes, dims)
        assert block is not None
        assert receiver is not None
        sender = multiply(block, self.exchange.warps)
        sender = sender if warp is None else add(sender, warp)
        for key, fragments in values.items():
            for fragment, buffer in zip(fragments, self.buffers, strict=True):
                cluster_send(
                    fragment, buffer, self.index(key, sender), receiver, barriers, number, self.exchange.blocks
                )

    def load(self, key: Key) -> Partials:
        """Loads the partial results of every sender at a position."""
        layout = self.model.layout
        offsets = lane_offsets(layout, self.exchange.dims)
        bits = min((self.senders - 1).bit_length(), len(offsets))
        lanes = 1 << bits
        if bits and self._is_for_lanes(lanes):
            lane = self.d.threads.linear(self.d.threads.lane, layout.lanes, self.exchange.dims)
            assert lane is not None  # bits > 0: there are lanes
            first = lane if len(offsets) == bits else remainder(lane, lanes)
            partials = [self._lane_partial(key, first, start, lanes) for start in range(0, self.senders, lanes)]
            return LanePartials(partials, self.senders, offsets[:bits])
        if self._is_long:
            return LoopedPartials(partial(self._load_partial, key), self.senders)
        columns = [
            self._load_column(key, buffer, p) for buffer, p in zip(self.buffers, self.exchange.partials, strict=True)
        ]
        return ListedPartials([Partial(values, sender=n) for n, values in enumerate(zip(*columns, strict=True))])

    @property
    def _is_long(self) -> bool:
        """Whether the vectors of all senders need more registers than a thread can spare."""
        return self.looped and self.senders > MOST_LISTED and self.model.width > 1

    def _is_for_lanes(self, lanes: int) -> bool:
        """Whether the partials are distributed over this many lanes; for vectors, where that avoids a loop over all
        senders.
        """
        if self.model.width == 1:
            return self.senders > (MOST_LISTED_ALONE if len(self.buffers) == 1 else MOST_LISTED)
        held = -(-self.senders // lanes) * len(self.buffers) * self.model.width
        return self._is_long and self.senders > LOOPED_GROUP and lanes > 2 and held <= MOST_LISTED_ELEMENTS

    def _lane_partial(self, key: Key, lane: ir.Value, start: int, lanes: int) -> Partial:
        """Loads the partials of sender `start + lane`, or of the last sender if that number is too large."""
        sender = add(lane, constant(start)) if start else lane
        slot = sender if start + lanes <= self.senders else minimum(sender, constant(self.senders - 1))
        return replace(self._load_partial(key, slot), sender_value=sender)

    def _load_partial(self, key: Key, sender: ir.Value) -> Partial:
        """Loads the partial results of one sender."""
        types = [p.type for p in self.exchange.partials]
        index = self._receiver_index(key, sender)
        return Partial(
            tuple(
                vector.LoadOp(t, buffer, [index], alignment=fragment_alignment(t)).result
                if isinstance(t, ir.VectorType)
                else memref.LoadOp(buffer, [index]).result
                for t, buffer in zip(types, self.buffers, strict=True)
            ),
            sender_value=sender,
        )

    def _load_column(self, key: Key, buffer: ir.Value, partial: Fragments) -> list[ir.Value]:
        if partial.width > 1:
            return [
                vector.LoadOp(
                    partial.type,
                    buffer,
                    [self._receiver_index(key, constant(n))],
                    alignment=fragment_alignment(partial.type),
                ).result
                for n in range(self.senders)
            ]
        # The slots of one position are contiguous, so four are loaded at a time.
        group = 4 if self.senders % 4 == 0 and str(partial.element_type) in ("f32", "i32") else 1
        values: list[ir.Value] = []
        for start in range(0, self.senders, group):
            index = self._receiver_index(key, constant(start) if start else None)
            if group == 1:
                values.append(memref.LoadOp(buffer, [index]).result)
            else:
                loaded = vector.LoadOp(ir.VectorType.get([group], partial.element_type), buffer, [index], alignment=16)
                values += elements(loaded.result)
        return values

    def index(self, key: Key, sender: ir.Value | None) -> ir.Value:
        """Index of a sender's slot for a position; the elements of a vector are contiguous."""
        return self._index(self._position(key, self.d.threads), sender)

    def _receiver_index(self, key: Key, sender: ir.Value | None) -> ir.Value:
        """Index of a sender's slot for a position that the thread receives; threads that receive nothing get the last
        position.
        """
        receivers = self.exchange.receivers
        position = (
            self._position(key, self.d.threads)
            if receivers is None
            else self._position(key, receivers.threads, receivers.tile)
        )
        return self._index(position, sender)

    def _index(self, position: ir.Value | None, sender: ir.Value | None) -> ir.Value:
        if self.model.width > 1:
            slot = None if sender is None else multiply(sender, self.positions)
        else:
            slot = sender
            position = None if position is None else multiply(position, self.senders)
        copy = (
            None
            if self.phase is None
            else multiply(self.phase, self.array_range.size if self.array_range else self.size)
        )
        start = constant(self.array_range.start) if self.array_range and self.array_range.start else None
        terms = [t for t in (position, slot, start, copy) if t is not None]
        return reduce(add, terms) if terms else constant(0)

    def _position(self, key: Key, threads: Threads, tile: Fragments | None = None) -> ir.Value | None:
        """Linear position of a thread's fragment; a fragment past the end of `tile` gets the last position inside."""
        layout = self.model.layout
        position, step = None, 1
        for dim in reversed(self.kept):
            if threads.own[dim] is not None or key[dim]:
                index = threads.index(dim, key[dim], in_block=True)
                if tile is not None and tile.padded(key, dim):
                    index = minimum(index, constant(tile.extents[dim] - layout.vector[dim]))
                term = multiply(index, step)
                position = term if position is None else add(term, position)
            step *= layout.repeats[dim] * layout.repeat_stride(dim)
        return position
