"""Combining partial results of the warps of a block, and of the blocks of a cluster, through shared memory.

What an exchange is; `exchange.slots` has its shared memory, and `exchange.steps` runs some together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

from mlir import ir

from mlirfuse.distribution.exchange.parts import Combine, Parts
from mlirfuse.distribution.threads.fragments import Fragments, Key
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.support.dtypes import from_mlir

Merge = Callable[[Parts, str], tuple[ir.Value, ...]]
Deliver = Callable[[Key, tuple[ir.Value, ...]], None]


class Site(Protocol):
    """What an exchange asks of the kernel it stands in; the `Distributor` is one.

    Attributes:
        threads: the current thread's coordinates.
        in_loop: whether the code being emitted runs more than once.
        phases: in a loop with exchanges, for each level an index that counts its steps, modulo `STEPS[level]`.
    """

    threads: Threads
    in_loop: bool
    phases: dict[str, ir.Value]

    def scratch(self, size: int, element_type: ir.Type) -> ir.Value:
        """A new array in the block's shared memory."""

    def barrier(self, warps: int | None = None) -> None:
        """A meeting of the block's threads that run the code being emitted, or at least of each `warps` warps."""

    def mbarriers(self) -> ir.Value:
        """The two mbarriers of the loop at hand, for one arrival each, which the whole cluster may use."""


@dataclass(frozen=True)
class LaneReduction:
    """An operation over lanes.

    Attributes:
        op_name: the `arith` op that combines two values, in either order.
        combine: emits it.
    """

    op_name: str
    combine: Combine


@dataclass(frozen=True)
class Takers:
    """Who takes what of merged values, where warps do not all take what each of them has sent a part of.

    Attributes:
        tile: the merged value, in the layout in which it is taken.
        threads: the current thread's coordinates in that layout.
    """

    tile: Fragments
    threads: Threads


@dataclass
class Exchange:
    """Partial results that differ between warps and blocks, and between lanes where there are `lanes` to combine.

    Attributes:
        partials: fragments to exchange; one for a reduction, more where they merge jointly.
        dims: the reduced dimensions.
        merge: merges the parts of all warps of a block (`level` is "warps"), of all blocks ("blocks"), or of all warps
            of all blocks ("cluster", a block's warps together), given in order.
        deliver: takes the merged values of one fragment.
        lanes: how the lanes along `dims` combine the one partial result first; None where they hold the same already.
        takers: which of the block's warps take what; None where all take everything.
    """

    partials: tuple[Fragments, ...]
    dims: tuple[int, ...]
    merge: Merge
    deliver: Deliver
    lanes: LaneReduction | None = None
    takers: Takers | None = None

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
    """Positions inside the block that an exchange keeps apart."""
    layout = partial.layout
    kept = [n for n in range(layout.rank) if n not in dims and partial.varies(n)]
    return prod(layout.repeats[n] * layout.repeat_stride(n) for n in kept)


def slot_bytes(exchange: Exchange, senders: int) -> int:
    """Shared memory of one exchange."""
    return (
        positions(exchange.partials[0], exchange.dims)
        * senders
        * sum(from_mlir(p.element_type).bytes for p in exchange.partials)
    )


def vector_elements(exchange: Exchange) -> int:
    """Elements of vectors that a thread has of one sender's partial results."""
    return sum(p.width * len(list(p.keys())) for p in exchange.partials if p.width > 1)
