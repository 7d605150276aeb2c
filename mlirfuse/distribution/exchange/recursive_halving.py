"""Recursive-halving shuffles: butterflies over lanes of several values at once, where the warps of a block are about to
exchange these.

A butterfly leaves its result in every lane, of which one writes it to shared memory. Where several values are to be
written, no lane need know all of them: in a first step the even lane of a pair takes over one value, the odd one
another, and each sends the other's half. Such steps halve what a lane has to do, until it has one value left, which
takes the remaining steps as usual: two values take 5 shuffles in a warp instead of 10, four take 6 instead of 20. Each
is combined in the order of a butterfly of its own, and is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.distribution.exchange.exchange import Exchange, Site, Values, positions
from mlirfuse.distribution.exchange.parts import Combine
from mlirfuse.distribution.exchange.slots import Room, Slots
from mlirfuse.distribution.threads.fragments import Key
from mlirfuse.distribution.threads.guard import Guard, both
from mlirfuse.distribution.threads.scalars import constant, divide, equals_zero, less, remainder
from mlirfuse.distribution.threads.shuffles import butterfly, lane_offsets

Member = tuple[int, Key]
"""The number of an exchange among those of a step, and one of its fragments."""


@dataclass(frozen=True)
class JointShuffle:
    """Values that are combined over lanes together.

    Attributes:
        group: the numbers of exchanges that are alike, of which the values are.
        members: the values; as many as a power of two, and more than one.
        value: what the thread's lane is left with: member n where the lane's number ends in n.
        lane: the lane's number along the reduced dimensions.
    """

    group: tuple[int, ...]
    members: Sequence[Member]
    value: ir.Value
    lane: ir.Value

    def store(self, d: Site, slots: dict[int, Slots]) -> None:
        """The first lanes write their warp's part of a member each."""
        own = slots[self.group[0]]
        is_writer = both(less(self.lane, constant(len(self.members))), d.threads.is_first(own.copies, "block"))
        with Guard(is_writer):
            places = [slots[number].own_index(key) for number, key in self.members]
            memref.StoreOp(self.value, own.buffers[0], [_of_lane(places, self.lane)])


def combine_over_lanes(d: Site, exchanges: Sequence[Exchange], values: Sequence[Values]) -> list[JointShuffle]:
    """Combines over lanes what the exchanges of a step want combined.

    Args:
        d: where code is emitted.
        exchanges: the exchanges.
        values: the fragments of each: those that are not members of a result become what every lane then has.
    """
    joints = []
    for group in _alike(exchanges):
        model = exchanges[group[0]]
        assert model.lanes is not None  # `_alike` looked
        offsets = lane_offsets(model.partials[0].layout, model.dims)
        lane = d.threads.linear(d.threads.lane, model.partials[0].layout.lanes, model.dims)
        members = [(number, key) for number in group for key in values[number]]
        while lane is not None and len(members) > 1 and _joins(model):
            taken = 1 << min(len(members).bit_length() - 1, len(offsets))
            own = [values[number][key][0] for number, key in members[:taken]]
            joints.append(JointShuffle(group, members[:taken], _halved(own, lane, offsets, model.lanes.combine), lane))
            members = members[taken:]
        for number, key in members:
            (value,) = values[number][key]
            values[number][key] = (_butterfly_reduce(value, offsets, model.lanes.combine),)
    return joints


def rooms(d: Site, exchanges: Sequence[Exchange], joints: Sequence[JointShuffle], copies: int) -> dict[int, Room]:
    """One array for all parts of each group that has joint values, as one store may write any of them."""
    found: dict[int, Room] = {}
    for group in dict.fromkeys(joint.group for joint in joints):
        sizes = [positions(exchanges[n].partials[0], exchanges[n].dims) * exchanges[n].warps for n in group]
        array = d.scratch(sum(sizes) * copies, exchanges[group[0]].partials[0].element_type)
        found.update((n, Room(array, sum(sizes[:i]), sum(sizes))) for i, n in enumerate(group))
    return found


def _alike(exchanges: Sequence[Exchange]) -> list[tuple[int, ...]]:
    """The exchanges with something to combine over lanes, in groups of those that do the same in the same layout."""
    groups: dict[object, list[int]] = {}
    for number, exchange in enumerate(exchanges):
        if exchange.lanes is not None:
            (partial,) = exchange.partials
            kind = (exchange.lanes.op_name, exchange.dims, partial.layout, partial.extents, partial.element_type)
            groups.setdefault(kind, []).append(number)
    return [tuple(numbers) for numbers in groups.values()]


def _joins(exchange: Exchange) -> bool:
    """Whether only a slot in the block's shared memory waits for each value."""
    return exchange.warps > 1 and exchange.blocks == 1 and exchange.partials[0].width == 1


def _butterfly_reduce(value: ir.Value, offsets: Sequence[int], combine: Combine) -> ir.Value:
    for offset in offsets:
        value = combine(value, butterfly(value, offset))
    return value


def _halved(values: Sequence[ir.Value], lane: ir.Value, offsets: Sequence[int], combine: Combine) -> ir.Value:
    """The value that is left to a lane, combined over the lanes at the xor distances that are given."""
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
    """Of as many values as a power of two the one whose number the lane's ends in."""
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
