"""What an SM holds at once of blocks that are alike: registers and shared memory shared out, and resident blocks."""

from __future__ import annotations

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import PARTITIONS, REGISTER_STEP, RESERVED_SHARED
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import Target

SHARED_RESERVE = 2048
"""Bytes of shared memory that rows in registers leave at least: for exchanges between warps, and for what the system
takes (`RESERVED_SHARED`)."""


def allocated(registers: int) -> int:
    """Registers that a thread is given that needs so many."""
    return -(-registers // REGISTER_STEP) * REGISTER_STEP


def resident_blocks(threads: int, registers: int, target: Target) -> int:
    """Blocks of an SM that its registers and threads allow; 0 if not even one.

    Each of an SM's four partitions has a quarter of the registers and takes whole warps.

    Args:
        threads: of a block.
        registers: that a thread is given.
        target: the architecture.
    """
    if registers > target.max_registers_per_thread:
        return 0
    warps = PARTITIONS * (target.registers_per_sm // PARTITIONS // (registers * WARP))
    return min(warps * WARP // threads, target.threads_per_sm // threads, target.blocks_per_sm)


def estimated_blocks(problem: Problem, layout: BlockedLayout, registers: float, target: Target) -> int:
    """Blocks of an SM whose threads are estimated to take so many registers; 0 if not even one.

    The assembler's reports correct the estimate (`Problem.register_scale`).
    """
    return resident_blocks(layout.threads, allocated(round(problem.register_scale * registers)), target)


def blocks_by_memory(threads: int, shared_bytes: int, target: Target) -> int:
    """Blocks of an SM that its threads and its shared memory allow, whatever registers they take.

    Args:
        threads: of a block.
        shared_bytes: of a block, without what the system takes.
        target: the architecture.
    """
    by_shared = target.shared_per_sm // (shared_bytes + RESERVED_SHARED)
    return min(target.blocks_per_sm, target.threads_per_sm // threads, by_shared)


def shared_left(blocks: int, target: Target) -> int:
    """Bytes of shared memory that each of so many blocks of an SM may allocate."""
    return min(target.shared_per_block, target.shared_per_sm // blocks - RESERVED_SHARED)


def registers_shared_out(threads: int, blocks: int, target: Target) -> int:
    """Registers of a thread where so many blocks share all of an SM, which may exceed what a thread can address."""
    warps = -(-threads * blocks // (WARP * PARTITIONS))  # of a partition
    return target.registers_per_sm // PARTITIONS // (warps * WARP) // REGISTER_STEP * REGISTER_STEP


def registers_left(threads: int, blocks: int, target: Target) -> int:
    """Registers that a thread may take where an SM is to hold so many blocks, which `resident_blocks` allows."""
    return min(registers_shared_out(threads, blocks, target), target.max_registers_per_thread)
