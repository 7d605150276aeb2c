"""The state that a running kernel's ops see: frames, thread blocks, clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlirfuse.interpreter.clocks import Clocks
from mlirfuse.interpreter.copies import Copies
from mlirfuse.interpreter.memory import MemRef


@dataclass
class Cluster:
    """Blocks that can reach each other's shared memory, and the barrier that they meet at.

    Attributes:
        size: number of blocks.
        blocks: its blocks, by rank.
    """

    size: int
    blocks: list[ThreadBlock] = field(default_factory=list)
    _arrived: list[np.ndarray] = field(default_factory=list)
    _joined: list[np.ndarray] = field(default_factory=list)

    def arrive(self, block: ThreadBlock) -> int:
        """Counts a block in at the barrier; returns the ticket of the phase that it waits for."""
        ticket = len(self._joined)
        self._arrived.append(block.release())
        if len(self._arrived) == self.size:
            self._joined.append(np.maximum.reduce(self._arrived))
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
    """One block: who it is, how far its clock is, and the shared memory that it owns.

    Args:
        index: linear block id.
        grid: number of blocks.
        shape: threads along x, y, z.
        cluster: the cluster that it is part of (one of size 1 where the kernel has none).
        rank: its rank there.
        checks: whether accesses are checked.
    """

    def __init__(

    Attributes:
        copies: what it copies in the background.
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
        self.seen = np.zeros(grid, np.int32)
        self.finished = False
        self._shared: dict[Any, MemRef] = {}

    def advance(self) -> None:
        """A barrier of the block: what any of its threads did before is ordered before what any does after."""
        self.copies = Copies()
        self.seen[self.index] = self.clock
        self.clock += 1

    def release(self) -> np.ndarray:
        """What a block that synchronises with this one learns: all accesses up to now, and all that it knows of."""
        self.advance()
        return self.seen.copy()

    def acquire(self, published: np.ndarray) -> None:
        """Orders what another block released before everything this one does from now on."""
        np.maximum(self.seen, published, out=self.seen)

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
    """

    __slots__ = ("block", "iteration", "mask", "values")

    def __init__(self, values: list[Any], block: ThreadBlock):
        self.values = values
        self.block = block
        self.mask: np.ndarray | None = None
        self.iteration: list[np.ndarray] = []


def host_block(*, checks: bool) -> ThreadBlock:
    """The single thread that runs host functions and the prologue of tile programs."""
    return ThreadBlock(0, 1, (1, 1, 1), Cluster(1), 0, checks=checks)
