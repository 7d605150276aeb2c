"""Bandwidths in bytes a second, rates, and latencies in seconds, as measured on an H200: each fact once.

Heuristics take them for every target. Numbers on which heuristics disagree are in `disagreeing`.
"""

from __future__ import annotations

DRAM_BYTES, DRAM_BYTES_PER_SM = 4.1e12, 60e9
"""Bandwidth of device memory, for the whole device and for one SM alone."""

MAPPED_BYTES_PER_SM, MAPPED_SECTORS_BYTES_PER_SM, MAPPED_PIECES_BYTES_PER_SM = 138e9, 76e9, 55e9
"""Bandwidth of copies by tensor maps from the L2 to one SM: of rows of whole cache lines; of whole sectors; and of
rows that begin inside of sectors, of which each box row lies in two lines."""

ELEMENTS_BYTES_PER_SM = 17e9
"""Bandwidth of copies from the L2 to one SM that go through registers element by element."""

COMPUTING_FLOPS_PER_SM = 2.1e12
"""Operations a second of one SM by `mma`, as `InstructionFamily.flops_per_sm` has it, where each step waits at a second
barrier, behind operands that the kernel computes."""

FMA_FLOP, FMA_LOAD = 2.1e-12, 1.9e-12
"""Seconds of one SM for a multiply or an add of f32 in SIMT products, and for an element that a thread loads for it."""

COMPUTED_PER_SM = 30e9
"""Elements of operands a second that one SM computes between its products."""

LAST_BLOCK_BYTES = 57e9
"""Bandwidth at which one block adds up partials of other blocks."""

CLUSTERED_SMS = {1: 1.0, 2: 1.0, 4: 120 / 132}
"""Share of the SMs that have a block when blocks come in clusters of so many (`cuOccupancyMaxActiveClusters`)."""
