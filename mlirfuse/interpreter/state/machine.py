"""The state that a running kernel's ops see: frames, thread blocks, clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirfuse.interpreter.state.clocks import Clocks
from mlirfuse.interpreter.state.copies import Copies
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.rings import Rings


@dataclass
class Cluster:
    """The blocks of a cluster, which can access each other's shared memory, and the cluster's barrier.

    Attributes:
        size: number of blocks.
        blocks: its blocks, by rank.
    """

    size: int
    blocks: list[ThreadBlock] = field(default_factory=list)
    _arrived: list[Clocks] = field(default_factory=list)
    _joined: list[Clocks] = field(default_factory=list)

    def arrive(self, block: ThreadBlock) -> int:
        """Records a block's arrival at the barrier; returns the ticket of the phase that the block waits for."""
        ticket = len(self._joined)
        self._arrived.append(block.release())
        if len(self._arrived) == self.size:
            joined, *others = self._arrived
            for other in others:
                joined.join(other)
            self._joined.append(joined)
            self._arrived = []
        return ticket

    def passed(self, ticket: int) -> bool:
        """Whether all blocks have arrived in that phase."""
        return len(self._joined) > ticket

    def depart(self, block: ThreadBlock, ticket: int) -> None:
        """Orders everything before the barrier, in any block, before what the block does next."""
        block.acquire(self._joined[ticket])

    @property
    def arrived(self) -> int:
        """How many blocks are at the barrier now."""
        return len(self._arrived)


class ThreadBlock:
    """One block: its number, its clock, and its shared memory.

    Args:
        index: linear block id.
        grid: number of blocks.
        shape: threads along x, y, z.
        cluster: the cluster that it is part of (one of size 1 where the kernel has none).
        rank: its rank there.
        checks: whether accesses are checked.

    Attributes:
        copies: its asynchronous copies.
        rings: its mbarriers, and what fills and reads the stages of its rings.
        has_waited: whether what came before the kernel in the stream has ended, so that it may touch global memory.
    """

    def __init__(
        self, index: int, grid: int, shape: tuple[int, int, int], cluster: Cluster, rank: int, *, checks: bool
    ):
        self.index = index
        self.grid = grid
        self.shape = shape
        self.cluster = cluster
        self.rank = rank
        self.checks = checks
        self.threads = shape[0] * shape[1] * shape[2]
        self.lanes = np.arange(self.threads)
        self.clock = 1
        self.known = Clocks(np.zeros(grid, np.int32))
        self._ahead: dict[int, Clocks] = {}
        self.finished = False
        self.has_waited = True
        self.copies = Copies()
        self.rings = Rings()
        self._shared: dict[Any, MemRef] = {}

    @property
    def seen(self) -> np.ndarray:
        """By block, the last clock of which all threads of this one know that it is over; shadow.py has the rule."""
        return self.known.blocks

    def advance(self) -> None:
        """A barrier of the block: orders all accesses before it, and all acquired clocks, before the block's later
        accesses.
        """
        self.seen[self.index] = self.clock
        self.clock += 1
        for ahead in self._ahead.values():
            self.known.join(ahead)
        self._ahead = {}

    def release(self) -> Clocks:
        """The clock that a block acquires from this one: all its accesses up to now, and all that are ordered before
        these.
        """
        self.advance()
        return self.known.copy()

    def acquire(self, published: Clocks) -> None:
        """Orders what another block released before everything this one does from now on."""
        self.known.join(published)

    def release_by(self, thread: int) -> Clocks:
        """The clock that one thread releases: accesses ordered before it by a barrier, its own accesses, and acquired
        ones.
        """
        if self.threads == 1:
            return self.release()
        published = self.known.copy()
        if thread in self._ahead:
            published.join(self._ahead[thread])
        published.threads[self.index, thread] = self.clock
        self.clock += 1  # its accesses from now on are not released; `seen` stays where the last barrier left it
        return published

    def release_all(self) -> Clocks:
        """The clock that all threads together release, without ordering among them: all accesses up to now."""
        published = self.known.copy()
        for ahead in self._ahead.values():
            published.join(ahead)
        published.blocks[self.index] = self.clock
        self.clock += 1
        return published

    def acquire_by(self, thread: int, published: Clocks) -> None:
        """Orders what another block released before what one thread does; the others know after the next barrier."""
        if self.threads == 1:
            self.acquire(published)
        elif thread in self._ahead:
            self._ahead[thread].join(published)
        else:
            self._ahead[thread] = published.copy()

    def orders(
        self, blocks: np.ndarray, others: np.ndarray, clocks: np.ndarray, threads: np.ndarray | int
    ) -> np.ndarray:
        """Which accesses, by threads `others` of `blocks`, are ordered before what `threads` of this block do now."""
        ordered = self.known.cover(blocks, others, clocks)
        for thread, ahead in self._ahead.items():
            ordered = ordered | ((threads == thread) & ahead.cover(blocks, others, clocks))
        return ordered

    def shared(self, key: Any, make: Callable[[], MemRef]) -> MemRef:
        """The block's shared allocation of that key, made on first use."""
        memref = self._shared.get(key)
        if memref is None:
            memref = self._shared[key] = make()
        return memref

    def shared_like(self, memref: MemRef, peer: ThreadBlock) -> MemRef | None:
        """The peer's shared memory under the same name as this block's `memref`; None if it has none yet."""
        for key, own in self._shared.items():
            if own.buffer is memref.buffer and key in peer._shared:
                return MemRef(
                    peer._shared[key].buffer, memref.dtype, memref.offset, memref.shape, memref.strides, memref.text
                )
        return None

    def shared_buffers(self) -> list[MemRef]:
        """All of its shared allocations."""
        return list(self._shared.values())


class Frame:
    """One activation of a function, for all threads of a block at once.

    Attributes:
        values: by slot; arrays whose first axis is the thread, of extent 1 where all threads agree; memrefs; tensors.
        block: the block that runs.
        mask: which threads are active, or None for all of them.
        iteration: inside a linalg body, the index arrays of the iteration space.
        consumer_group: at the tile level, the number of the consumer group that runs.
    """

    __slots__ = ("block", "consumer_group", "iteration", "mask", "values")

    def __init__(self, values: list[Any], block: ThreadBlock):
        self.values = values
        self.block = block
        self.mask: np.ndarray | None = None
        self.iteration: list[np.ndarray] = []
        self.consumer_group = 0

    def masked(self, mask: np.ndarray | None) -> Frame:
        """A view of the same activation with a mask of its own, for warps that run concurrently."""
        frame = Frame(self.values, self.block)
        frame.mask, frame.iteration, frame.consumer_group = mask, self.iteration, self.consumer_group
        return frame

    def for_consumer_group(self, consumer_group: int) -> Frame:
        """A copy of the activation, for a consumer group that runs the same code as others."""
        frame = Frame(list(self.values), self.block)
        frame.mask, frame.iteration, frame.consumer_group = self.mask, self.iteration, consumer_group
        return frame


def host_block(*, checks: bool) -> ThreadBlock:
    """The single thread that runs host functions and the prologue of tile programs."""
    return ThreadBlock(0, 1, (1, 1, 1), Cluster(1), 0, checks=checks)
