"""Numbers on which heuristics disagree, side by side: one fact each, under the name of who believes it.

They were fitted one heuristic at a time. Choices of schedules depend on them, so that they stay until one cost model
replaces the heuristics, and the fact moves to `speeds`. Times are in seconds, on an H200.
"""

from __future__ import annotations

# A kernel's launch.
CONTRACTION_LAUNCH = 3.0e-6
"""Of a contraction, and of a kernel that computes an operand before it."""

# Blocks that meet because they have partials of one result.
LAST_BLOCK_MEETING = 3.5e-6
"""Of a split contraction whose last block of a tile adds up all partials, beside reading these."""
SLICES_MEETING = 1.4e-6
"""Of a split contraction whose blocks add up a slice of the tile each, behind a grid barrier."""
FLAGGED_MEETING = 0.3e-6
"""The same through a flag-in-data exchange, without a barrier."""

# What clusters cost.
CONTRACTION_CLUSTERS = 2.0e-6
"""Latency that clusters add to a contraction; the machine model has another one."""

# The L2.
CP_ASYNC_BYTES_PER_SM = 42e9
"""Bandwidth of the L2 to one SM whose threads copy by `cp.async`: 5.5e12 over 132 SMs is 41.7e9."""

# Registers of a contraction's consumers.
CONSUMER_REGISTERS = 472
"""Of one thread of each consumer warpgroup together. `contraction_registers.warpgroup_registers` rounds as the machine
does, and finds fewer for several warpgroups."""
