"""Recursive-halving shuffles: combine several values over the lanes of a warp before the warps exchange them.

A butterfly leaves its result in every lane, although only one lane writes the result to shared memory. With 2^n values,
the first n steps instead halve the values of each lane: the even lane of a pair keeps one half and the odd lane the
other, and each sends what the other keeps. The remaining steps are a butterfly of the one value left, so two values
take 5 shuffles in a warp instead of 10, and four take 6 instead of 20. Each value is combined in the order of its own
butterfly, with the same bits as a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.distribution.exchange.exchange import Exchange, Site, Values, positions
from mlirfuse.distribution.exchange.partials import Combine
from mlirfuse.distribution.exchange.slots import ArrayRange, Slots
from mlirfuse.distribution.threads.fragments import Key
from mlirfuse.distribution.threads.guard import Guard, both
from mlirfuse.distribution.threads.scalars import constant, divide, equals_zero, less, remainder
from mlirfuse.distribution.threads.shuffles import butterfly, lane_offsets

Member = tuple[int, Key]
"""The number of an exchange in its step, and the key of one of its fragments."""


@dataclass(frozen=True)
class HalvingShuffle:
    """Values that are combined over lanes together.

    Attributes:
        group: the numbers of the exchanges that the values belong to; they have one operation and layout.
        members: the values; their number is a power of two, at least 2.
        value: the value left in the thread's lane: member n where the low bits of the lane's number are n.
        lane: the lane's number along the reduced dimensions.
    """

    group: tuple[int, ...]
    members: Sequence[Member]
    value: ir.Value
    lane: ir.Value

    def store(self, d: Site, slots: dict[int, Slots]) -> None:
        """Stores the warp's partial results: each of the first lanes writes one member."""
        own = slots[self.group[0]]
        is_writer = both(less(self.lane, constant(len(self.members))), d.threads.is_first(own.copies, "block"))
        with Guard(is_writer):
            indices = [slots[number].local_index(key) for number, key in self.members]
            memref.StoreOp(self.value, own.buffers[0], [_of_lane(indices, self.lane)])


def combine_over_lanes(d: Site, exchanges: Sequence[Exchange], values: Sequence[Values]) -> list[HalvingShuffle]:
    """Combines the fragments of a step's exchanges over lanes; returns the values that are combined together.

    Args:
        d: the kernel.
        exchanges: the exchanges.
        values: the fragments of each exchange. Fragments that are no member of a `HalvingShuffle` are replaced by their
            result, which every lane then holds.
    """
    shuffles = []
    for group in _groups(exchanges):
        model = exchanges[group[0]]
        assert model.lanes is not None  # `_groups` leaves out others
        offsets = lane_offsets(model.partials[0].layout, model.dims)
        lane = d.threads.linear(d.threads.lane, model.partials[0].layout.lanes, model.dims)
        members = [(number, key) for number in group for key in values[number]]
        while lane is not None and len(members) > 1 and _can_halve(model):
            count = 1 << min(len(members).bit_length() - 1, len(offsets))
            own = [values[number][key][0] for number, key in members[:count]]
            shuffles.append(
                HalvingShuffle(group, members[:count], _halved(own, lane, offsets, model.lanes.combine), lane)
            )
            members = members[count:]
        for number, key in members:
            (value,) = values[number][key]
            values[number][key] = (_butterfly_reduce(value, offsets, model.lanes.combine),)
    return shuffles


def allocate_ranges(
    d: Site, exchanges: Sequence[Exchange], shuffles: Sequence[HalvingShuffle], copies: int
) -> dict[int, ArrayRange]:
    """Allocates one array for all partials of a group of exchanges, as one store may write a partial of any of them."""
    found: dict[int, ArrayRange] = {}
    for group in dict.fromkeys(shuffle.group for shuffle in shuffles):
        sizes = [positions(exchanges[n].partials[0], exchanges[n].dims) * exchanges[n].warps for n in group]
        array = d.scratch(sum(sizes) * copies, exchanges[group[0]].partials[0].element_type)
        found.update((n, ArrayRange(array, sum(sizes[:i]), sum(sizes))) for i, n in enumerate(group))
    return found


def _groups(exchanges: Sequence[Exchange]) -> list[tuple[int, ...]]:
    """Groups the exchanges that combine over lanes by operation and layout."""
    groups: dict[object, list[int]] = {}
    for number, exchange in enumerate(exchanges):
        if exchange.lanes is not None:
            (partial,) = exchange.partials
            kind = (exchange.lanes.op_name, exchange.dims, partial.layout, partial.extents, partial.element_type)
            groups.setdefault(kind, []).append(number)
    return [tuple(numbers) for numbers in groups.values()]


def _can_halve(exchange: Exchange) -> bool:
    """Whether the values of an exchange are only stored to slots in the block's own shared memory."""
    return exchange.warps > 1 and exchange.blocks == 1 and exchange.partials[0].width == 1


def _butterfly_reduce(value: ir.Value, offsets: Sequence[int], combine: Combine) -> ir.Value:
    for offset in offsets:
        value = combine(value, butterfly(value, offset))
    return value


def _halved(values: Sequence[ir.Value], lane: ir.Value, offsets: Sequence[int], combine: Combine) -> ir.Value:
    """The value left in a lane after recursive halving over the given xor distances."""
    for bit, offset in enumerate(offsets):
        if len(values) == 1:
            return _butterfly_reduce(values[0], offsets[bit:], combine)
        is_even = _is_even(lane, bit)
        pairs = list(zip(values[::2], values[1::2], strict=True))
        kept = [arith.SelectOp(is_even, first, second).result for first, second in pairs]
        given = [arith.SelectOp(is_even, second, first).result for first, second in pairs]
        values = [combine(own, butterfly(other, offset)) for own, other in zip(kept, given, strict=True)]
    return values[0]


def _of_lane(values: Sequence[ir.Value], lane: ir.Value) -> ir.Value:
    """The value whose number equals the low bits of the lane's number; the number of values is a power of two."""
    bit = 0
    while len(values) > 1:
        is_even = _is_even(lane, bit)
        values = [
            arith.SelectOp(is_even, first, second).result
            for first, second in zip(values[::2], values[1::2], strict=True)
        ]
        bit += 1
    return values[0]


def _is_even(lane: ir.Value, bit: int) -> ir.Value:
    """Whether a bit of the lane's number is 0."""
    return equals_zero(remainder(divide(lane, 1 << bit), 2))
