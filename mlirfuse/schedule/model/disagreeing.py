"""Numbers on which heuristics disagree, side by side: one fact each, under the name of who believes it.

They were fitted one heuristic at a time. Choices of schedules depend on them, so that they stay until one cost model
replaces the heuristics, and the fact moves to `speeds`. Times are in seconds, on an H200.
"""

from __future__ import annotations

# A kernel's launch.
CONTRACTION_LAUNCH = 3.0e-6
"""Of a contraction, and of a kernel that computes an operand before it."""
SECOND_KERNEL_LAUNCH = 2.0e-6
"""Of a second kernel, which adds up partials or has half of a fused kernel's work."""

# Blocks that meet because they have partials of one result.
LAST_BLOCK_MEETING = 3.5e-6
"""Of a split contraction whose last block of a tile adds up all partials, beside reading these."""
SLICES_MEETING = 1.4e-6
"""Of a split contraction whose blocks add up a slice of the tile each, behind a grid barrier."""
FLAGGED_MEETING = 0.3e-6
"""The same through a flag-in-data exchange, without a barrier."""
LOOP_MEETING, LOOP_CLUSTER_MEETING = 1.8e-6, 0.4e-6
"""Of a persistent loop against kernels that need none: the launch of a resident grid, storing partials, the grid
barrier and the first read (`speeds.GRID_SYNC` and `speeds.GRID_READ` are two of these); and more for each doubling of
the blocks that share a row."""

# What clusters cost.
CONTRACTION_CLUSTERS = 2.0e-6
"""Latency that clusters add to a contraction; `speeds.CLUSTER_LAUNCH` is what rows are taken to lose."""

# The L2.
L2_BYTES = 5.5e12
"""Bandwidth of the L2, at which partials are taken to be stored and read again."""
CP_ASYNC_BYTES_PER_SM = 42e9
"""The same for one SM whose threads copy by `cp.async`: 5.5e12 over 132 SMs is 41.7e9."""

# Bytes in flight on an SM that keep device memory busy.
ROWS_IN_FLIGHT = 28 * 1024
"""Of rows that resident blocks hold in registers, each loaded at once."""
TILES_IN_FLIGHT = 48 * 1024
"""Of tiles of a persistent loop whose warps never wait for each other."""

# Blocks of an SM that registers allow: see `residency.resident_blocks` and `residency.blocks_by_registers`.
BLOCK_WARPS_ALLOCATED = 4
"""Warps to which a persistent loop's heuristic rounds up a block, where the machine rounds up what each of an SM's
partitions has."""

# Registers of a contraction's consumers.
CONSUMER_REGISTERS = 472
"""Of one thread of each consumer warpgroup together. `contraction_registers.warpgroup_registers` rounds as the machine
does, and finds fewer for several warpgroups."""
