"""The partial results of one exchange, ready to be merged.

Few parts are merged by every thread for itself. Many would fill the registers, so each lane takes some and the lanes
merge them by a butterfly. Where parts are vectors, of which all lanes hold different ones already, a loop merges them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlir import ir
from mlir.dialects import arith, gpu, scf

from mlirfuse.distribution.threads.fragments import widen
from mlirfuse.distribution.threads.scalars import add, constant, less
from mlirfuse.distribution.threads.shuffles import butterfly

Combine = Callable[[ir.Value, ir.Value], ir.Value]

LOOPED_GROUP = 4
"""Parts that a step of a loop over parts loads before it merges them."""

LOOP_ANNOTATION = "llvm.loop_annotation"
"""What an `scf.for` tells LLVM and ptxas of itself."""


@dataclass(frozen=True)
class Part:
    """One sender's values.

    Attributes:
        values: its partial results.
        sender: its number, if that is known at compile time.
        sender_value: its number as a value, otherwise.
    """

    values: tuple[ir.Value, ...]
    sender: int | None = None
    sender_value: ir.Value | None = None


class Parts(Protocol):
    """All senders' parts."""

    def combine(self, of: Callable[[Part], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Combines `of(part)` over all parts, in a fixed order; every thread gets the result."""


@dataclass(frozen=True)
class ListedParts:
    """Parts that every thread holds."""

    parts: Sequence[Part]

    def combine(self, of: Callable[[Part], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """A pairwise tree."""
        return tree([of(part) for part in self.parts], combine)


@dataclass(frozen=True)
class LaneParts:
    """Parts of which each lane holds one, or one of every so many.

    Attributes:
        parts: the lane's parts; of a sender beyond the last it holds a copy of some part.
        senders: number of parts.
        offsets: xor distances that join the lanes.
    """

    parts: Sequence[Part]
    senders: int
    offsets: Sequence[int]

    def combine(self, of: Callable[[Part], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """A lane's own in a pairwise tree, then a butterfly over lanes; what no sender sent brings nothing."""
        lanes = 1 << len(self.offsets)
        values = []
        for start, part in zip(range(0, self.senders, lanes), self.parts, strict=True):
            value = of(part)
            if self.senders < start + lanes:
                assert part.sender_value is not None
                width = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
                is_sent = less(part.sender_value, constant(self.senders))
                value = arith.SelectOp(is_sent, value, widen(identity, width)).result
            values.append(value)
        value = tree(values, combine)
        for offset in self.offsets:
            value = combine(value, butterfly(value, offset))
        return value


@dataclass(frozen=True)
class LoopedParts:
    """Parts that every thread merges for itself, a few at a time.

    Attributes:
        load: loads the part of a sender, given as an index.
        senders: number of parts, more than one.
    """

    load: Callable[[ir.Value], Part]
    senders: int

    def combine(self, of: Callable[[Part], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Some parts in a pairwise tree, then the next ones.

        In straight code, and in a loop of known length that LLVM makes straight, ptxas puts all loads before the first
        addition, and spills. So the length is unknown: the block's number in y is 0, but no compiler can tell. Not
        knowing it, both would unroll the loop for the many steps that it never takes, and ptxas would take as long for
        that as for the rest of a kernel.
        """

        def group_at(start: ir.Value, size: int) -> ir.Value:
            senders = [add(start, constant(n)) if n else start for n in range(size)]
            return tree([of(self.load(sender)) for sender in senders], combine)

        first = self.senders % LOOPED_GROUP or LOOPED_GROUP
        total = group_at(constant(0), first)
        if first == self.senders:
            return total
        end = add(constant(self.senders), gpu.BlockIdOp(gpu.Dimension.y).result)
        loop = scf.ForOp(constant(first), end, constant(LOOPED_GROUP), [total])
        stay_looped(loop)
        with ir.InsertionPoint(loop.body):
            total = combine(loop.inner_iter_args[0], group_at(loop.induction_variable, LOOPED_GROUP))
            scf.YieldOp([total])
        return loop.results[0]


def stay_looped(loop: scf.ForOp) -> None:
    """Tells LLVM and ptxas not to unroll a loop; the bindings have no builder for the attribute."""
    stay = ir.Attribute.parse("#llvm.loop_annotation<unroll = <disable = true>>")
    loop.operation.attributes[LOOP_ANNOTATION] = stay


def tree(values: Sequence[ir.Value], combine: Combine) -> ir.Value:
    """Combines values pairwise."""
    level = list(values)
    while len(level) > 1:
        paired = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + (level[-1:] if len(level) % 2 else [])
    return level[0]
