"""Shadow memory: records written elements, and detects unordered accesses.

Time is counted in clocks. Every block starts at clock 1 and moves on at each barrier; `ThreadBlock.seen[b]` is the last
clock of block b whose accesses are ordered before the block's present (its own entry trails its clock). An earlier
access by another thread therefore races exactly when its clock is above `seen` of the block that made it. The rule is
the same for two threads of a block (ordered by `gpu.barrier`) and for two blocks (ordered by a cluster barrier or by a
semaphore). Semaphores are handled by one thread, which for a while is ahead of its block, or behind: `orders` knows.

State is kept a granule, which is the smallest element size that the buffer has been accessed with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mlirfuse.interpreter.state.machine import ThreadBlock

NOBODY, SEVERAL = -1, -2


@dataclass(frozen=True)
class Violation:
    """A check that failed.

    Attributes:
        position: which of the access's elements it is.
        kind: `unwritten` or `race`.
        earlier: for a race, what the other access was, such as `write by block 0, thread 3`.
        thread: for a race, the other thread, where it is one of the same block.
    """

    position: int
    kind: str
    earlier: str = ""
    thread: int = NOBODY


class _Log:
    """The last access a granule: by which thread of which block, at which clock of that block."""

    def __init__(self, size: int):
        self.thread = np.full(size, NOBODY, np.int32)
        self.block = np.full(size, NOBODY, np.int32)
        self.clock = np.zeros(size, np.int32)

    def refine(self, factor: int) -> None:
        for name in ("thread", "block", "clock"):
            setattr(self, name, np.repeat(getattr(self, name), factor))

    def unordered(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> np.ndarray:
        """Which of the accesses at `where`, made now by `threads` of `block`, the logged one may run beside."""
        logged = self.block[where]
        late = self.clock[where] > block.seen[logged]  # never where nobody is logged: the clock is 0 there
        if not late.any():
            return late
        late &= ~((logged == block.index) & (self.thread[where] == threads) & (np.asarray(threads) != SEVERAL))
        if late.any():
            late &= ~block.orders(logged, self.thread[where], self.clock[where], threads)
        return late

    def record(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> None:
        self.thread[where] = threads
        self.block[where] = block.index
        self.clock[where] = block.clock

    def describe(self, granule: int) -> str:
        thread = int(self.thread[granule])
        who = "several threads" if thread == SEVERAL else f"thread {thread}"
        return f"block {int(self.block[granule])}, {who}"


class Shadow:
    """The shadow of one buffer.

    Args:
        nbytes: the buffer's size.
        written: whether the buffer starts out initialised.
        races: whether accesses are logged; off for private memory and for inputs, which nothing writes.
    """

    def __init__(self, nbytes: int, *, written: bool = False, races: bool = True):
        self._nbytes = nbytes
        self._initial = written
        self._races = races
        self._granule = 0
        self.written = np.zeros(0, bool)
        self._writes, self._reads = _Log(0), _Log(0)
        # Blocks that read one granule with nothing to order them: the clock of each block's last such read.
        self._reader_clocks: dict[int, np.ndarray] = {}
        # Atomic updates, by block: they race with plain accesses, and never with each other.
        self._updates: dict[int, _Log] = {}

    def _granules(self, elements: np.ndarray, itemsize: int) -> tuple[np.ndarray, int]:
        """Granule numbers of elements of `itemsize` bytes, and how many granules an element has."""
        if not self._granule:
            self._granule = itemsize
            size = -(-self._nbytes // itemsize)
            self.written = np.full(size, self._initial)
            if self._races:
                self._writes, self._reads = _Log(size), _Log(size)
        if itemsize < self._granule:
            factor = self._granule // itemsize
            self._granule = itemsize
            self.written = np.repeat(self.written, factor)
            self._writes.refine(factor)
            self._reads.refine(factor)
            for log in self._updates.values():
                log.refine(factor)
            self._reader_clocks = {b: np.repeat(clocks, factor) for b, clocks in self._reader_clocks.items()}
        per_element = itemsize // self._granule
        if per_element == 1:
            return elements, 1
        return (elements[:, None] * per_element + np.arange(per_element)).ravel(), per_element

    def _places(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int
    ) -> tuple[np.ndarray, np.ndarray | int, int]:
        """Granule numbers of elements, the thread of each (or of all), and how many granules an element has."""
        where, per_element = self._granules(elements, itemsize)
        return where, np.repeat(threads, per_element) if isinstance(threads, np.ndarray) else threads, per_element

    def _unwritten(self, where: np.ndarray, per_element: int) -> Violation | None:
        ok = self.written[where]
        return None if ok.all() else Violation(int(np.argmin(ok)) // per_element, "unwritten")

    def read(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int, block: ThreadBlock
    ) -> Violation | None:
        """Records reads of elements, `threads` giving each one's thread; returns what is wrong with them."""
        where, threads, per_element = self._places(elements, itemsize, threads)
        if (violation := self._unwritten(where, per_element)) is not None or not self._races:
            return violation
        for log, kind in ((self._writes, "write"), *((log, "atomic update") for log in self._updates.values())):
            if (violation := self._race(log, kind, where, threads, block, per_element)) is not None:
                return violation
        self._record_reads(where, threads, block)
        return None

    def write(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int, block: ThreadBlock
    ) -> Violation | None:
        """Records writes of elements, `threads` giving each one's thread; returns what is wrong with them."""
        where, threads, per_element = self._places(elements, itemsize, threads)
        self.written[where] = True
        if not self._races:
            return None
        if (violation := self._changes_race(where, threads, block, per_element)) is not None:
            return violation
        for log in self._updates.values():
            if (violation := self._race(log, "atomic update", where, threads, block, per_element)) is not None:
                return violation
        self._writes.record(where, threads, block)
        # Two threads that write one element in the same lock step: the later one has overwritten the earlier's mark.
        collided = self._writes.thread[where] != threads
        if collided.any():
            first = int(np.argmax(collided))
            return Violation(first // per_element, "race", f"write by {self._writes.describe(where[first])}")
        return None

    def update(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int, block: ThreadBlock
    ) -> Violation | None:
        """Records atomic updates of elements, `threads` giving each one's thread; returns what is wrong with them."""
        where, threads, per_element = self._places(elements, itemsize, threads)
        if (violation := self._unwritten(where, per_element)) is not None or not self._races:
            return violation
        if (violation := self._changes_race(where, threads, block, per_element)) is not None:
            return violation
        log = self._updates.setdefault(block.index, _Log(len(self.written)))
        together = (log.block[where] != NOBODY) & (log.clock[where] == block.clock) & (log.thread[where] != threads)
        log.record(where, threads, block)
        log.thread[where[together | (log.thread[where] != threads)]] = SEVERAL
        return None

    def forget_accesses(self) -> None:
        """Orders all accesses so far before everything to come; what was written stays written."""
        size = len(self._writes.block)
        self._writes, self._reads = _Log(size), _Log(size)
        self._reader_clocks, self._updates = {}, {}

    def mark_written(self, elements: np.ndarray, itemsize: int) -> None:
        """Counts elements as initialised before the kernel starts."""
        where, _ = self._granules(elements, itemsize)
        self.written[where] = True

    def unordered_remote_writer(self, block: ThreadBlock) -> int | None:
        """A block, other than the owner `block`, whose write into this buffer the owner is not ordered after."""
        if not self._granule:
            return None
        logged = self._writes.block
        late = (logged != NOBODY) & (logged != block.index) & (self._writes.clock > block.seen[logged])
        return int(logged[np.argmax(late)]) if late.any() else None

    def written_elements(self, count: int, itemsize: int) -> np.ndarray:
        """A bool an element (of `itemsize` bytes, `count` of them): whether all of it was written."""
        where, per_element = self._granules(np.arange(count), itemsize)
        return self.written[where].reshape(count, per_element).all(axis=1)

    def _race(
        self, log: _Log, kind: str, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock, per_element: int
    ) -> Violation | None:
        late = log.unordered(where, threads, block)
        if not late.any():
            return None
        first = int(np.argmax(late))
        granule = where[first]
        other = int(log.thread[granule]) if log.block[granule] == block.index else NOBODY
        return Violation(first // per_element, "race", f"{kind} by {log.describe(granule)}", other)

    def _changes_race(
        self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock, per_element: int
    ) -> Violation | None:
        """What is wrong with changing elements beside the plain accesses so far."""
        for log, kind in ((self._writes, "write"), (self._reads, "read")):
            if (violation := self._race(log, kind, where, threads, block, per_element)) is not None:
                return violation
        for reader, clocks in self._reader_clocks.items():
            late = clocks[where] > block.seen[reader]
            if late.any():
                late &= ~block.orders(np.full_like(where, reader), np.full_like(where, NOBODY), clocks[where], threads)
            if reader != block.index and late.any():
                return Violation(int(np.argmax(late)) // per_element, "race", f"read by block {reader}")
        return None

    def _record_reads(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> None:
        log = self._reads
        logged, clocks, earlier = log.block[where], log.clock[where], log.thread[where]
        late = clocks > block.seen[logged]  # never where nobody is logged: the clock is 0 there
        foreign = late & (logged != block.index) if late.any() else late
        if foreign.any():
            for reader in {*np.unique(logged[foreign]).tolist(), block.index}:
                table = self._reader_clocks.setdefault(reader, np.zeros(len(self.written), np.int32))
                mine = reader == block.index
                table[where[foreign if mine else foreign & (logged == reader)]] = (
                    block.clock if mine else clocks[foreign & (logged == reader)]
                )
        together = late & ~foreign & (earlier != threads)
        log.record(where, threads, block)
        several = together | (log.thread[where] != threads)
        log.thread[where[several]] = SEVERAL
