"""Numbers of threads, and of the warps that they are of: synchronisation is known by thread, by warp or by block.

What one thread did has its number, from 0 on. What several threads of one warp did has a negative number of the warp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WARP = 32
NOBODY, SEVERAL = -1, -2
"""No thread at all, and threads of which nothing more is known."""


def several_of(warp: Any) -> Any:
    """The number that stands for several threads of a warp (an int, or an array of them)."""
    return SEVERAL - 1 - warp


def warp_of(threads: Any) -> Any:
    """The warp of a thread or of several threads of it, -1 where there is none; of an int, or of each of an array."""
    if isinstance(threads, np.ndarray):
        return np.where(threads < SEVERAL, SEVERAL - 1 - threads, threads // WARP)
    return SEVERAL - 1 - threads if threads < SEVERAL else threads // WARP


def belong(threads: Any, to: int) -> Any:
    """Which threads are the thread `to`, or are of the warp that `to` stands for."""
    return threads == to if to >= 0 else warp_of(threads) == warp_of(to)


class WarpClocks:
    """What barriers of some warps have told each warp of a block: of every warp, the last clock ordered before.

    Several warps that access the same together, without a barrier, are one more that others know something of, behind
    the block's: what they know of all of them.

    Args:
        warps: how many warps the block has.
    """

    def __init__(self, warps: int):
        # The first row and column are of -1, as `warp_of` says where there is no single warp: nothing is known there.
        self._known = np.zeros((warps + 1, warps + 1), np.int32)
        self._together: dict[tuple[int, ...], int] = {}
        self._members: dict[int, tuple[int, ...]] = {}

    @property
    def columns(self) -> int:
        """How many warps, and groups of them, something may be known of, and one more for -1."""
        return self._known.shape[1]

    def together(self, warps: np.ndarray) -> int:
        """The number that stands for threads of several warps."""
        members = tuple(warps.tolist())
        if len(members) == 1:
            return int(several_of(members[0]))
        if members not in self._together:
            self._together[members] = number = int(several_of(self.columns - 1))
            self._members[number] = members
            self._known = np.hstack([self._known, self._of_all(members)[:, None]])
        return self._together[members]

    def members(self, threads: int) -> tuple[int, ...]:
        """The warps that a number stands for."""
        return self._members.get(threads, (int(warp_of(threads)),))

    def meet(self, warps: np.ndarray, clock: int) -> None:
        """Orders what the warps did up to a clock, and what each of them knew, before what any of them does next."""
        told = self._known[warps + 1].max(axis=0)
        told[warps + 1] = clock
        self._known[warps + 1] = told
        for number, members in self._members.items():
            self._known[:, warp_of(number) + 1] = self._of_all(members)

    def cover(self, threads: Any, others: Any, clocks: Any) -> Any:
        """Which accesses by `others`, each at a clock, are ordered before what `threads`, of a warp each, do now."""
        return clocks <= self._known[warp_of(threads) + 1, warp_of(others) + 1]

    def known_to(self, threads: Any) -> np.ndarray:
        """What a thread's warp knows, or by thread that of each: a clock a column; of several warps what all know."""
        if isinstance(threads, np.ndarray):
            return self._known[warp_of(threads) + 1]
        return self._known[np.array(self.members(threads)) + 1].min(axis=0)

    def _of_all(self, members: tuple[int, ...]) -> np.ndarray:
        """By row, what is known of all of some warps."""
        return self._known[:, np.array(members) + 1].min(axis=1)
