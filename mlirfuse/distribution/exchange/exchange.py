"""Combines partial results of the warps of a block, and of the blocks of a cluster, through shared memory.

This file defines an exchange; `exchange/slots.py` lays out its shared memory, and `exchange/steps.py` runs several
exchanges in one step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from mlir import ir

from mlirfuse.distribution.exchange.partials import Combine, Partials
from mlirfuse.distribution.threads.fragments import Fragments, Key
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.support.dtypes import from_mlir

Merge = Callable[[Partials, str], tuple[ir.Value, ...]]
Deliver = Callable[[Key, tuple[ir.Value, ...]], None]


class Site(Protocol):
    """What an exchange needs from the kernel that contains it, as a protocol; `Distributor` implements it.

    Attributes:
        threads: the current thread's coordinates.
        in_loop: whether the code being emitted is inside a loop.
        phases: in a loop with exchanges, for each level an index that counts the level's steps, modulo `STEPS[level]`.
    """

    threads: Threads
    in_loop: bool
    phases: dict[str, ir.Value]

    def scratch(self, size: int, element_type: ir.Type) -> ir.Value:
        """A new array in the block's shared memory."""

    def barrier(self) -> None:
        """A barrier of the block's threads that run the code being emitted."""

    def loop_barrier(self, warps: int | None) -> None:
        """A barrier in a loop, of which each group of that many consecutive warps needs no other; None for all."""

    def mbarriers(self) -> ir.Value:
        """The two mbarriers of the current loop, each for one arrival; every block of the cluster may signal them."""


@dataclass(frozen=True)
class LaneReduction:
    """A reduction over lanes.

    Attributes:
        op_name: the commutative `arith` op that combines two values.
        combine: emits that op.
    """

    op_name: str
    combine: Combine


@dataclass(frozen=True)
class Receivers:
    """The threads that receive each merged value, where a warp needs other values than those it sent partials of.

    Attributes:
        tile: the merged value, in the layout in which threads receive it.
        threads: the current thread's coordinates in that layout.
    """

    tile: Fragments
    threads: Threads


@dataclass
class Exchange:
    """A reduction's partial results, which differ between warps and blocks, and between lanes if `lanes` is set.

    Attributes:
        partials: fragments to exchange: one for a reduction, more for statistics that merge jointly.
        dims: the reduced dimensions.
        merge: merges the partials of all warps of a block (`level` is "warps"), of all blocks of a cluster ("blocks"),
            or of all warps of a cluster, block by block ("cluster"), in order.
        deliver: receives the merged values of one fragment.
        lanes: how lanes along `dims` first combine the one partial result; None if they hold the same value already.
        receivers: the threads that receive each merged value; None if every thread receives the values it sent partials
            of.
    """

    partials: tuple[Fragments, ...]
    dims: tuple[int, ...]
    merge: Merge
    deliver: Deliver
    lanes: LaneReduction | None = None
    receivers: Receivers | None = None

    @property
    def warps(self) -> int:
        return prod(self.partials[0].layout.warps[d] for d in self.dims)

    @property
    def blocks(self) -> int:
        return prod(self.partials[0].layout.blocks[d] for d in self.dims)

    @property
    def needed(self) -> bool:
        return self.warps > 1 or self.blocks > 1


Values = dict[Key, tuple[ir.Value, ...]]


def positions(partial: Fragments, dims: Sequence[int]) -> int:
    """Number of results per block: positions along the kept dimensions, each with slots of its own."""
    layout = partial.layout
    kept = [n for n in range(layout.rank) if n not in dims and partial.varies(n)]
    return prod(layout.repeats[n] * layout.repeat_stride(n) for n in kept)


def slot_bytes(exchange: Exchange, senders: int) -> int:
    """Bytes of shared memory of one exchange with this many senders."""
    return (
        positions(exchange.partials[0], exchange.dims)
        * senders
        * sum(from_mlir(p.element_type).bytes for p in exchange.partials)
    )


def vector_elements(exchange: Exchange) -> int:
    """Elements that a thread holds of one sender's partial results, where these are vectors."""
    return sum(p.width * len(list(p.keys())) for p in exchange.partials if p.width > 1)
