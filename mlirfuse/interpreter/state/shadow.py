"""Shadow memory: records written elements, and detects unordered accesses.

Time is counted in clocks. A block starts at clock 1, and each barrier increments its clock. `ThreadBlock.seen[b]` is
the last clock of block b whose accesses are ordered before the block's present; the block's own entry is less than its
clock. So an earlier access by another thread races exactly if its clock is above the entry of the block that made the
access. The rule is the same for two threads of a block (ordered by `gpu.barrier`) and for two blocks (ordered by a
cluster barrier or a semaphore). One thread of a block operates on semaphores, and is ordered after more or fewer
accesses than the block's other threads until the next barrier; `ThreadBlock.orders` takes account of that.

State is kept for each granule, the smallest element size of all accesses to the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mlirfuse.schedule.layout import WARP

if TYPE_CHECKING:
    from mlirfuse.interpreter.state.machine import ThreadBlock

NOBODY, SEVERAL = -1, -2
OF_WARP = -3
"""Several threads of warp w are `OF_WARP - w`."""


def warp_of(threads: np.ndarray | int) -> np.ndarray:
    """The warp of each thread, or of several threads of one warp; -1 for nobody, and of several warps."""
    known = np.asarray(threads)
    return np.where(known >= 0, known // WARP, np.where(known <= OF_WARP, OF_WARP - known, -1))


@dataclass(frozen=True)
class Violation:
    """A check that failed.

    Attributes:
        position: number of the element among those of the access.
        kind: `unwritten` or `race`.
        earlier: for a race, the other access, such as `write by block 0, thread 3`.
        thread: for a race with a thread of the same block, that thread.
    """

    position: int
    kind: str
    earlier: str = ""
    thread: int = NOBODY


class _Log:
    """The last access to each granule: its block, its thread, and the block's clock, which is 0 before any access.

    Attributes:
        by: the only block with accesses, so that most logs need no look at `block`; NOBODY or SEVERAL.
    """

    def __init__(self, size: int):
        self.by = NOBODY
        self.thread = self.block = self.clock = np.zeros(size, np.int32)

    def refine(self, factor: int) -> None:
        for name in ("thread", "block", "clock"):
            setattr(self, name, np.repeat(getattr(self, name), factor))

    def late(self, where: np.ndarray, block: ThreadBlock) -> np.ndarray | None:
        """Whether no barrier or acquired clock orders the access at `where` before the present of `block`; None if one
        orders all of them.
        """
        if self.by == NOBODY:
            return None
        late = self.clock[where] > block.seen[self.by if self.by >= 0 else self.block[where]]
        return late if np.count_nonzero(late) else None

    def unordered(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> np.ndarray | None:
        """Whether the logged access is unordered with each access at `where`, made now by `threads` of `block`; None if
        all are ordered.
        """
        late = self.late(where, block)
        if late is None:
            return None
        logged = self.block[where]
        late &= ~((logged == block.index) & (self.thread[where] == threads) & (np.asarray(threads) != SEVERAL))
        if np.count_nonzero(late):
            late &= ~block.orders(logged, self.thread[where], self.clock[where], threads)
        return late if np.count_nonzero(late) else None

    def record(self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock) -> None:
        if self.by == NOBODY:
            size = len(self.clock)
            self.thread, self.clock = np.full(size, NOBODY, np.int32), np.zeros(size, np.int32)
            self.block, self.by = np.full(size, block.index, np.int32), block.index
        elif self.by != block.index:
            self.by = SEVERAL
        if self.by == SEVERAL:
            self.block[where] = block.index
        self.thread[where] = threads
        self.clock[where] = block.clock

    def collisions(self, where: np.ndarray, threads: np.ndarray | int) -> np.ndarray | None:
        """Where another of `threads` has recorded the same granule last, in one step; None if nowhere."""
        if isinstance(threads, int):
            return None
        collided = self.thread[where] != threads
        return collided if np.count_nonzero(collided) else None

    def share(self, where: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
        """Records that threads of two warps, or of one, have accessed granules."""
        alike = (one == other) & (one >= 0)
        self.thread[where[alike]] = OF_WARP - one[alike]
        self.thread[where[~alike]] = SEVERAL

    def describe(self, granule: int) -> str:
        thread = int(self.thread[granule])
        who = "several threads" if thread < 0 else f"thread {thread}"
        return f"block {int(self.block[granule])}, {who}"


class Shadow:
    """The shadow of one buffer.

    Args:
        nbytes: the buffer's size.
        written: whether the buffer is initialised.
        races: whether accesses are logged; not needed for private memory, nor for inputs, which nothing writes.
    """

    def __init__(self, nbytes: int, *, written: bool = False, races: bool = True):
        self._nbytes = nbytes
        self._initial = written
        self._races = races
        self._granule = 0
        self.written = np.zeros(0, bool)
        self._writes, self._reads = _Log(0), _Log(0)
        # The clock of each block's last read of a granule that other blocks read too, unordered.
        self._reader_clocks: dict[int, np.ndarray] = {}
        # Atomic updates, by block, which race with plain accesses but not with each other.
        self._updates: dict[int, _Log] = {}

    def _granules(self, elements: np.ndarray, itemsize: int) -> tuple[np.ndarray, int]:
        """Granule numbers of elements of `itemsize` bytes, and the number of granules of an element."""
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
        """Granule numbers of elements, their threads (or one for all), and the number of granules of an element."""
        where, per_element = self._granules(elements, itemsize)
        return where, np.repeat(threads, per_element) if isinstance(threads, np.ndarray) else threads, per_element

    def _unwritten(self, where: np.ndarray, per_element: int) -> Violation | None:
        ok = self.written[where]
        return None if np.count_nonzero(ok) == ok.size else Violation(int(np.argmin(ok)) // per_element, "unwritten")

    def read(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int, block: ThreadBlock
    ) -> Violation | None:
        """Records reads of elements by `threads`; returns what is wrong with the reads, or None."""
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
        """Records writes of elements by `threads`; returns what is wrong with the writes, or None."""
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
        # If two threads write one element in the same step, the later one has overwritten the earlier one's entry.
        if (collided := self._writes.collisions(where, threads)) is not None:
            first = int(np.argmax(collided))
            return Violation(first // per_element, "race", f"write by {self._writes.describe(where[first])}")
        return None

    def update(
        self, elements: np.ndarray, itemsize: int, threads: np.ndarray | int, block: ThreadBlock
    ) -> Violation | None:
        """Records atomic updates of elements by `threads`; returns what is wrong with the updates, or None."""
        where, threads, per_element = self._places(elements, itemsize, threads)
        if (violation := self._unwritten(where, per_element)) is not None or not self._races:
            return violation
        if (violation := self._changes_race(where, threads, block, per_element)) is not None:
            return violation
        log = self._updates.setdefault(block.index, _Log(len(self.written)))
        together = (log.clock[where] == block.clock) & (log.thread[where] != threads)
        log.record(where, threads, block)
        log.thread[where[together | (log.thread[where] != threads)]] = SEVERAL
        return None

    def forget_accesses(self) -> None:
        """Orders all accesses so far before all later ones; written elements stay written."""
        size = len(self._writes.block)
        self._writes, self._reads = _Log(size), _Log(size)
        self._reader_clocks, self._updates = {}, {}

    def mark_written(self, elements: np.ndarray, itemsize: int) -> None:
        """Counts elements as initialised before the kernel starts."""
        where, _ = self._granules(elements, itemsize)
        self.written[where] = True

    def unordered_remote_writer(self, block: ThreadBlock) -> int | None:
        """A block whose write into this buffer is unordered with the owner, `block`; None if there is none."""
        if self._writes.by in (NOBODY, block.index):
            return None
        logged = self._writes.block
        late = (logged != block.index) & (self._writes.clock > block.seen[logged])
        return int(logged[np.argmax(late)]) if late.any() else None

    def written_elements(self, count: int, itemsize: int) -> np.ndarray:
        """Whether each of `count` elements of `itemsize` bytes was written entirely."""
        where, per_element = self._granules(np.arange(count), itemsize)
        return self.written[where].reshape(count, per_element).all(axis=1)

    def _race(
        self, log: _Log, kind: str, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock, per_element: int
    ) -> Violation | None:
        late = log.unordered(where, threads, block)
        if late is None:
            return None
        first = int(np.argmax(late))
        granule = where[first]
        other = int(log.thread[granule]) if log.block[granule] == block.index else NOBODY
        return Violation(first // per_element, "race", f"{kind} by {log.describe(granule)}", other)

    def _changes_race(
        self, where: np.ndarray, threads: np.ndarray | int, block: ThreadBlock, per_element: int
    ) -> Violation | None:
        """A race of changes of elements with earlier plain accesses, or None."""
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
        log, together, earlier = self._reads, None, self._reads.thread[where]
        if (late := log.late(where, block)) is not None:
            logged, clocks = log.block[where], log.clock[where]
            foreign = late & (logged != block.index)
            together = late & ~foreign & (log.thread[where] != threads)
            if np.count_nonzero(foreign):
                for reader in {*np.unique(logged[foreign]).tolist(), block.index}:
                    table = self._reader_clocks.setdefault(reader, np.zeros(len(self.written), np.int32))
                    mine = reader == block.index
                    table[where[foreign if mine else foreign & (logged == reader)]] = (
                        block.clock if mine else clocks[foreign & (logged == reader)]
                    )
        log.record(where, threads, block)
        own = np.broadcast_to(warp_of(threads), where.shape)
        if together is not None:
            log.share(where[together], warp_of(earlier[together]), own[together])
        if (collided := log.collisions(where, threads)) is not None:
            log.share(where[collided], warp_of(log.thread[where[collided]]), own[collided])
