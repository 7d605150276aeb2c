"""What an SM holds at once of blocks that are alike."""

from __future__ import annotations

from mlirfuse.schedule.layout import WARP
from mlirfuse.target import Target

SHARED_RESERVE = 2048
"""Shared memory left for the exchange between warps, bytes."""

PARTITIONS = 4
"""Partitions of an SM, each with a scheduler and registers of its own."""


def allocated(registers: int) -> int:
    """Registers are given to threads eight at a time."""
    return -(-registers // 8) * 8


def resident_blocks(threads: int, registers: int, target: Target) -> int:
    """Blocks of an SM that its registers and threads allow; 0 if not even one.

    Each of an SM's four partitions has a quarter of the registers and takes whole warps.
    """
    if registers > target.max_registers_per_thread:
        return 0
    warps = PARTITIONS * (target.registers_per_sm // PARTITIONS // (registers * WARP))
    return min(warps * WARP // threads, target.threads_per_sm // threads, target.blocks_per_sm)
