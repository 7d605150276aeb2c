"""The part of a schedule that a contraction adds: how its k-loop runs, and on which instructions."""

from __future__ import annotations

from dataclasses import dataclass

INSTRUCTIONS = ("fma", "mma", "wgmma")
"""What multiplies: scalar multiply-adds on any type, `mma.sync` (sm_80), or `wgmma` fed by tensor maps (sm_90a)."""

REDUCTIONS = ("turnstile", "last_arriver")
"""How the partial tiles of a split meet: added one after another in order, or all by the block that comes last."""


@dataclass(frozen=True)
class ContractionSchedule:
    """How the k-loop of a contraction runs.

    Attributes:
        k: elements of the contracted dimension in one step.
        instruction: one of `INSTRUCTIONS`.
        stages: slots of the shared-memory ring that the operands pass through.
        split: blocks that share the contracted dimension of one tile.
        reduction: one of `REDUCTIONS`; without a split it means nothing.
    """

    k: int
    instruction: str
    stages: int = 2
    split: int = 1
    reduction: str = "last_arriver"
