"""The partial results of one exchange, loaded for merging.

With few senders, every thread merges all partials itself. With more, each lane loads some of them and the lanes merge
by a butterfly, which needs fewer registers. Partials that are vectors differ from lane to lane, so a loop merges them.
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
"""Partials that one iteration of `LoopedPartials` loads before it merges them."""

LOOP_ANNOTATION = "llvm.loop_annotation"
"""Attribute of an `scf.for` with loop metadata for LLVM and ptxas."""


@dataclass(frozen=True)
class Partial:
    """One sender's partial results.

    Attributes:
        values: the partial results.
        sender: the sender's number, if known at compile time.
        sender_value: the sender's number as a value, otherwise.
    """

    values: tuple[ir.Value, ...]
    sender: int | None = None
    sender_value: ir.Value | None = None


class Partials(Protocol):
    """The partial results of all senders."""

    def combine(self, of: Callable[[Partial], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Combines `of(partial)` over all senders in a fixed order; every thread gets the result."""


@dataclass(frozen=True)
class ListedPartials:
    """Partial results that every thread holds in full."""

    partials: Sequence[Partial]

    def combine(self, of: Callable[[Partial], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Combines the partials in a pairwise tree."""
        return tree([of(partial) for partial in self.partials], combine)


@dataclass(frozen=True)
class LanePartials:
    """Partial results distributed over lanes: each lane holds those of every n-th sender, for n lanes.

    Attributes:
        partials: the lane's partials; for a sender number past the last, a copy of another sender's.
        senders: number of senders.
        offsets: xor distances of the butterfly over the lanes.
    """

    partials: Sequence[Partial]
    senders: int
    offsets: Sequence[int]

    def combine(self, of: Callable[[Partial], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Combines a lane's own partials in a pairwise tree, then the lanes by a butterfly. Copies for missing senders
        are replaced by `identity`.
        """
        lanes = 1 << len(self.offsets)
        values = []
        for start, partial in zip(range(0, self.senders, lanes), self.partials, strict=True):
            value = of(partial)
            if self.senders < start + lanes:
                assert partial.sender_value is not None
                width = value.type.shape[0] if isinstance(value.type, ir.VectorType) else 1
                is_sent = less(partial.sender_value, constant(self.senders))
                value = arith.SelectOp(is_sent, value, widen(identity, width)).result
            values.append(value)
        value = tree(values, combine)
        for offset in self.offsets:
            value = combine(value, butterfly(value, offset))
        return value


@dataclass(frozen=True)
class LoopedPartials:
    """Partial results that every thread merges itself in a loop, a few at a time.

    Attributes:
        load: loads the partial results of a sender, given as an index.
        senders: number of senders, more than one.
    """

    load: Callable[[ir.Value], Partial]
    senders: int

    def combine(self, of: Callable[[Partial], ir.Value], combine: Combine, identity: ir.Value) -> ir.Value:
        """Combines groups of partials in a pairwise tree, one group an iteration.

        The loop's bound depends on the block's y coordinate, which is always 0 but unknown to the compilers: with a
        known bound the loop would be unrolled, and ptxas would hoist all loads before the first addition and spill
        registers. Unrolling is also disabled, because it would lengthen compilation for iterations that never run.
        """

        def group_at(start: ir.Value, size: int) -> ir.Value:
            senders = [add(start, constant(n)) if n else start for n in range(size)]
            return tree([of(self.load(sender)) for sender in senders], combine)

        first = self.senders % LOOPED_GROUP or LOOPED_GROUP
        result = group_at(constant(0), first)
        if first == self.senders:
            return result
        end = add(constant(self.senders), gpu.BlockIdOp(gpu.Dimension.y).result)
        loop = scf.ForOp(constant(first), end, constant(LOOPED_GROUP), [result])
        forbid_unrolling(loop)
        with ir.InsertionPoint(loop.body):
            result = combine(loop.inner_iter_args[0], group_at(loop.induction_variable, LOOPED_GROUP))
            scf.YieldOp([result])
        return loop.results[0]


def forbid_unrolling(loop: scf.ForOp) -> None:
    """Marks a loop as not to be unrolled by LLVM and ptxas; the bindings have no builder for the attribute."""
    annotation = ir.Attribute.parse("#llvm.loop_annotation<unroll = <disable = true>>")
    loop.operation.attributes[LOOP_ANNOTATION] = annotation


def unroll(loop: ir.Operation, count: int) -> None:
    """Has LLVM make one step of `count` steps of a loop."""
    loop.attributes[LOOP_ANNOTATION] = ir.Attribute.parse(f"#llvm.loop_annotation<unroll = <count = {count} : i32>>")


def tree(values: Sequence[ir.Value], combine: Combine) -> ir.Value:
    """Combines values pairwise."""
    level = list(values)
    while len(level) > 1:
        paired = [combine(a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + (level[-1:] if len(level) % 2 else [])
    return level[0]
