"""What an SM holds at once of blocks that are alike."""

from __future__ import annotations

from mlirfuse.schedule.layout import WARP
from mlirfuse.target import Target

SHARED_RESERVE = 2048
"""Shared memory left for the exchange between warps, bytes."""

REGISTER_STEP = 8
"""Registers are given to threads so many at a time."""

PARTITIONS = 4
"""Partitions of an SM, each with a scheduler and registers of its own."""


def allocated(registers: int) -> int:
    """Registers that a thread is given that needs so many."""
    return -(-registers // REGISTER_STEP) * REGISTER_STEP


def resident_blocks(threads: int, registers: int, target: Target) -> int:
    """Blocks of an SM that its registers and threads allow; 0 if not even one.

    Each of an SM's four partitions has a quarter of the registers and takes whole warps.
    """
    if registers > target.max_registers_per_thread:
        return 0
    warps = PARTITIONS * (target.registers_per_sm // PARTITIONS // (registers * WARP))
    return min(warps * WARP // threads, target.threads_per_sm // threads, target.blocks_per_sm)


def registers_left(threads: int, blocks: int, target: Target) -> int:
    """Registers that a thread may take where an SM is to hold so many blocks, which `resident_blocks` allows."""
    warps = -(-threads * blocks // (WARP * PARTITIONS))  # of a partition
    most = target.registers_per_sm // PARTITIONS // (warps * WARP)
    return min(most // REGISTER_STEP * REGISTER_STEP, target.max_registers_per_thread)
