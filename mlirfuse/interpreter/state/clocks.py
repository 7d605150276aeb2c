"""Vector clocks: which accesses are ordered before a point."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Clocks:
    """A vector clock: the accesses that are ordered before a point of the program.

    These are all accesses of each block up to a clock, and later accesses of single threads: a thread that synchronises
    with another block by itself also releases its own accesses since the block's last barrier.

    Attributes:
        blocks: by block, the last clock whose accesses, of all of the block's threads, are ordered before the point.
        threads: by (block, thread), the last clock whose accesses, of that thread, are ordered before the point.
    """

    blocks: np.ndarray
    threads: dict[tuple[int, int], int] = field(default_factory=dict)

    def copy(self) -> Clocks:
        """An independent copy."""
        return Clocks(self.blocks.copy(), dict(self.threads))

    def join(self, other: Clocks) -> None:
        """Adds the accesses that are ordered before another point."""
        np.maximum(self.blocks, other.blocks, out=self.blocks)
        for (block, thread), clock in other.threads.items():
            if clock > self.blocks[block]:
                self.threads[block, thread] = max(clock, self.threads.get((block, thread), 0))

    def cover(self, blocks: np.ndarray, threads: np.ndarray, clocks: np.ndarray) -> np.ndarray:
        """Whether each access, made by a thread of a block at a clock of that block, is ordered before the point."""
        ordered = clocks <= self.blocks[blocks]
        for (block, thread), clock in self.threads.items():
            ordered = ordered | ((blocks == block) & (threads == thread) & (clocks <= clock))
        return ordered
