"""The state of a running kernel: frames, thread blocks and clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirfuse.interpreter.state.clocks import Clocks
from mlirfuse.interpreter.state.copies import Copies
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.rings import Rings
from mlirfuse.interpreter.state.shadow import warp_of
from mlirfuse.schedule.layout import WARP


@dataclass
class Cluster:
    """The blocks of a cluster, which can access each other's shared memory, and the cluster's barrier.

    Attributes:
        size: number of blocks.
        blocks: the blocks, by rank.
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
        """Orders all accesses of all blocks before the barrier before the block's later accesses."""
        block.acquire(self._joined[ticket])

    @property
    def arrived(self) -> int:
        """Number of blocks that have arrived in the current phase of the barrier."""
        return len(self._arrived)


class ThreadBlock:
    """A thread block, with its clock and its shared memory.

    Args:
        index: linear block id.
        grid: number of blocks.
        shape: threads along x, y, z.
        cluster: the block's cluster, of size 1 in a kernel without clusters.
        rank: the block's rank in the cluster.
        checks: whether accesses are checked.

    Attributes:
        copies: the block's asynchronous copies in flight.
        rings: the block's mbarriers, and the operations in flight that fill and read the stages of its rings.
        has_waited: whether the kernel has waited for its predecessor in the stream, and may access global memory.
        barriers: by thread, the number of the last named barrier; None before the first.
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
        # By warp, the last clock of this block whose accesses by the warp are ordered before its present.
        self._met = np.zeros(-(-self.threads // WARP), np.int32)
        self._ahead: dict[int, Clocks] = {}
        self.finished = False
        self.has_waited = True
        self.barriers: np.ndarray | None = None
        self.copies = Copies()
        self.rings = Rings()
        self._shared: dict[Any, MemRef] = {}

    @property
    def seen(self) -> np.ndarray:
        """By block, the last clock whose accesses are ordered before the present of all threads of this block."""
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

    def meet_warps(self, active: np.ndarray | None) -> None:
        """A barrier of each warp whose threads are active: orders its threads' accesses among each other alone."""
        met = slice(None) if active is None else np.unique(self.lanes[active] // WARP)
        self._met[met] = self.clock
        self.clock += 1

    def release(self) -> Clocks:
        """The clock that another block acquires: this block's accesses up to now, and all that are ordered before."""
        self.advance()
        return self.known.copy()

    def acquire(self, published: Clocks) -> None:
        """Orders the accesses that another block released before all later accesses of this block."""
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
        self.clock += 1  # the thread's later accesses are not released; `seen` stays as after the last barrier
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
        """Orders the accesses that another block released before later ones of one thread.

        For the block's other threads, the order holds after the next barrier.
        """
        if self.threads == 1:
            self.acquire(published)
        elif thread in self._ahead:
            self._ahead[thread].join(published)
        else:
            self._ahead[thread] = published.copy()

    def orders(
        self, blocks: np.ndarray, others: np.ndarray, clocks: np.ndarray, threads: np.ndarray | int
    ) -> np.ndarray:
        """Whether each access, by `others` of `blocks`, is ordered before the present of this block's `threads`."""
        ordered = self.known.cover(blocks, others, clocks)
        for thread, ahead in self._ahead.items():
            ordered = ordered | ((threads == thread) & ahead.cover(blocks, others, clocks))
        if self._met.any():
            warp = warp_of(threads)
            alike = (blocks == self.index) & (warp >= 0) & (warp_of(others) == warp)
            ordered = ordered | (alike & (clocks <= self._met[np.maximum(warp, 0)]))
        return ordered

    def shared(self, key: Any, make: Callable[[], MemRef]) -> MemRef:
        """The block's shared-memory allocation with a key, made by `make` on first use."""
        memref = self._shared.get(key)
        if memref is None:
            memref = self._shared[key] = make()
        return memref

    def shared_like(self, memref: MemRef, peer: ThreadBlock) -> MemRef | None:
        """The peer's allocation with the same key as this block's `memref`; None if the peer has not allocated it."""
        for key, own in self._shared.items():
            if own.buffer is memref.buffer and key in peer._shared:
                return MemRef(
                    peer._shared[key].buffer, memref.dtype, memref.offset, memref.shape, memref.strides, memref.text
                )
        return None

    def shared_buffers(self) -> list[MemRef]:
        """All shared-memory allocations of the block."""
        return list(self._shared.values())


class Frame:
    """One activation of a function, for all threads of a block at once.

    Attributes:
        values: values by slot: arrays whose first axis is the thread (`lanes.py`), memrefs, and tensors.
        block: the block that runs the function.
        mask: a mask of the active threads; None for all.
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
        """The same activation with another mask, for warps that run concurrently."""
        frame = Frame(self.values, self.block)
        frame.mask, frame.iteration, frame.consumer_group = mask, self.iteration, self.consumer_group
        return frame

    def for_consumer_group(self, consumer_group: int) -> Frame:
        """A copy of the activation for one of several consumer groups that run the same code."""
        frame = Frame(list(self.values), self.block)
        frame.mask, frame.iteration, frame.consumer_group = self.mask, self.iteration, consumer_group
        return frame


def host_block(*, checks: bool) -> ThreadBlock:
    """The single thread that runs host functions and the prologue of tile programs."""
    return ThreadBlock(0, 1, (1, 1, 1), Cluster(1), 0, checks=checks)
