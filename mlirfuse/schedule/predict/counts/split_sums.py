"""How long the blocks of a split take to add up their partial sums."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.contractions.grid import ContractionGrid

FLAGGED = 1.4
"""Time of a flag-in-data exchange to that of plain stores and loads: half of its words are flags, and readers ask again
until they have come."""


def meeting_seconds(grid: ContractionGrid) -> float:
    """Of all blocks of a tile: each stores a partial sum, and one of them, or each for a slice, reads these."""
    contraction, machine = grid.contraction, grid.machine
    if contraction.split == 1:
        return 0.0
    part = prod(grid.tile) * grid.problem.accumulator.bytes
    stored = part / machine.dram_bandwidth_per_sm
    if contraction.reduction == "cluster":
        return 2 * machine.cluster_barrier + part / machine.dsmem_bandwidth_per_sm
    if contraction.reduction in ("last_block", "serial"):
        # One block reads what all have stored; in `serial` each reads what those before it have added up.
        turns = contraction.split - 1 if contraction.reduction == "serial" else 1
        waits = turns * (machine.message_latency + machine.atomic_latency)
        return waits + stored + contraction.split * part / machine.dram_bandwidth_per_sm
    exchanged = max(
        stored + part / machine.l2_bandwidth_per_sm,
        2 * part * grid.blocks / machine.dram_bandwidth,
    )
    if contraction.reduction == "flagged":
        return machine.message_latency + FLAGGED * exchanged
    return machine.grid_barrier + machine.message_latency + machine.dram_latency + exchanged
