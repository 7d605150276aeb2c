"""Who accessed what last: one half of shadow memory, which asks of each access what it may run beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mlirfuse.interpreter.warps import NOBODY, SEVERAL, several_of, warp_of

if TYPE_CHECKING:
    from mlirfuse.interpreter.machine import ThreadBlock


def _at(threads: np.ndarray | int, where: np.ndarray) -> np.ndarray | int:
    """The threads of some accesses, where they are given for each."""
    return threads[where] if isinstance(threads, np.ndarray) else threads


class AccessLog:
    """The last access a granule: by which thread of which block, at which clock of that block.

    Accesses that do not race with each other may have been made by several threads since something ordered all of the
    block. Where its warps know different things, each warp's last such access is in a table of that block, which has
    the columns of `WarpClocks`.

    Args:
        size: how many granules there are.

    Attributes:
        thread: by granule, the thread, or the number of several (warps.py).
        block: by granule, its block.
        clock: by granule, that block's clock.
    """

    def __init__(self, size: int):
        self._tables: dict[int, np.ndarray] = {}
        self.thread = np.full(size, NOBODY, np.int32)
        self.block = np.full(size, NOBODY, np.int32)
        self.clock = np.zeros(size, np.int32)

    def refine(self, factor: int) -> None:
        """Makes each granule `factor` smaller ones."""
        for name in ("thread", "block", "clock"):
            setattr(self, name, np.repeat(getattr(self, name), factor))
        self._tables = {block: np.repeat(table, factor, axis=0) for block, table in self._tables.items()}

    def unordered(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> np.ndarray:
        """Which of the accesses at `where`, made now by `threads` of `block`, the logged one may run beside."""
        logged = self.block[where]
        late = (logged != NOBODY) & (self.clock[where] > block.seen[logged])
        late &= ~((logged == block.index) & (self.thread[where] == threads) & (np.asarray(threads) >= 0))
        if late.any():
            rows = np.flatnonzero(late)
            late[rows] = self._unordered_late(where[rows], _at(threads, rows), block)
        return late

    def _unordered_late(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> np.ndarray:
        """The same of accesses that nothing has told all of the block about."""
        logged, earlier, unordered = self.block[where], self.thread[where], np.zeros(len(where), bool)
        several = (earlier == SEVERAL) & bool(self._tables)
        for owner in self._tables:
            rows = np.flatnonzero(several & (logged == owner))
            unordered[rows] = self._unordered_several(owner, where[rows], _at(threads, rows), block)
        rest = np.flatnonzero(~several)
        if rest.size:
            clocks = self.clock[where[rest]]
            unordered[rest] = ~block.orders(logged[rest], earlier[rest], clocks, _at(threads, rest))
        return unordered

    def _unordered_several(
        self, owner: int, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock
    ) -> np.ndarray:
        """The same of accesses by several threads of a block that has a table."""
        table = self._table(block) if owner == block.index else self._tables[owner]
        clocks = table[where]
        late = clocks > block.seen[owner]
        if owner == block.index and block.warps is not None:
            late &= clocks > block.warps.known_to(threads)
        if owner != block.index or block.has_more:
            row, column = np.nonzero(late)
            by = several_of(column - 1)
            late[row, column] = ~block.orders(np.full_like(row, owner), by, clocks[row, column], _at(threads, row))
        return late.any(axis=1)

    def record(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> None:
        """Makes these the last accesses."""
        self.thread[where] = threads
        self.block[where] = block.index
        self.clock[where] = block.clock

    def share(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> None:
        """Records accesses that may run beside those of the block's other threads."""
        logged, clocks, earlier = self.block[where], self.clock[where], self.thread[where]
        together = (logged == block.index) & (clocks > block.seen[block.index]) & (earlier != threads)
        if block.warps is not None and together.any():
            rows = np.flatnonzero(together)
            together[rows] = self._unordered_late(where[rows], _at(threads, rows), block)
        self.record(where, threads, block)
        self.thread[where[together | (self.thread[where] != threads)]] = SEVERAL
        if block.warps is None:
            return
        several = self.thread[where] == SEVERAL
        if several.any():
            table = self._table(block)
            first = together & (earlier != SEVERAL)  # of several ones the table has each already
            table[where[first], warp_of(earlier[first]) + 1] = clocks[first]
            table[where[several], warp_of(_at(threads, several)) + 1] = block.clock

    def _table(self, block: ThreadBlock) -> np.ndarray:
        assert block.warps is not None
        table = self._tables.get(block.index, np.zeros((len(self.block), 0), np.int32))
        if missing := block.warps.columns - table.shape[1]:
            table = self._tables[block.index] = np.pad(table, ((0, 0), (0, missing)))
        return table

    def describe(self, granule: int) -> str:
        """Who made the last access."""
        thread = int(self.thread[granule])
        who = "several threads" if thread < 0 else f"thread {thread}"
        return f"block {int(self.block[granule])}, {who}"
