"""Barriers that have a number and a count of threads (PTX `bar.sync a, b`): some warps of a block meet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mlirfuse.interpreter.warps import WARP, several_of

if TYPE_CHECKING:
    from mlirfuse.interpreter.machine import ThreadBlock

BARRIERS = 16
"""How many a block has."""


@dataclass(eq=False)
class Phase:
    """One use of a barrier, from the first arrival to the last.

    Attributes:
        count: threads that it waits for.
        warps: those that have arrived.
        ended: the block's clock when the last one came; 0 before.
    """

    count: int
    warps: list[int] = field(default_factory=list)
    ended: int = 0

    @property
    def arrived(self) -> int:
        """Threads that have arrived; hardware counts whole warps, even one that the block has only a part of."""
        return WARP * len(self.warps)


class NumberedBarriers:
    """The barriers of one block, each in its latest phase."""

    def __init__(self) -> None:
        self._phases: dict[int, Phase] = {}

    def arrive(self, block: ThreadBlock, number: int, count: int, warps: list[int]) -> Phase | str:
        """Counts warps in at a barrier; the phase that they wait for, or why what happens is undefined."""
        if not 0 <= number < BARRIERS:
            return f"there is no barrier {number}: a block has {BARRIERS}"
        if count <= 0 or count % WARP:
            return f"barrier {number} waits for {count} threads, which are no whole warps"
        phase = self._phases.get(number)
        if phase is None or phase.ended:
            if phase is not None and (early := self._unaware(block, phase, warps)):
                return f"warp {early[0]} may reach barrier {number} in the phase before, of other warps"
            phase = self._phases[number] = Phase(count)
        if phase.count != count:
            return f"barrier {number} waits for {phase.count} threads and for {count} in one phase"
        phase.warps += warps
        if phase.arrived > count:
            return f"{phase.arrived} threads meet at barrier {number}, which waits for {count}"
        if phase.arrived == count:
            phase.ended = block.clock
            block.meet(np.array(phase.warps))
        return phase

    def _unaware(self, block: ThreadBlock, phase: Phase, warps: list[int]) -> list[int]:
        """The warps that nothing tells that a phase, in which they were not, has ended: none of its warps after it."""
        members = several_of(np.array(phase.warps))
        own, after = np.full_like(members, block.index), np.full_like(members, phase.ended + 1)
        others = [warp for warp in warps if warp not in phase.warps]
        return [warp for warp in others if not block.orders(own, members, after, several_of(warp)).any()]
