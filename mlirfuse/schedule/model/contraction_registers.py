"""Registers of a thread of a contraction: what accumulators take, and what is left beside them."""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES, REGISTER_STEP, WARPGROUP, WARPGROUP_ROWS
from mlirfuse.schedule.model.residency import registers_shared_out
from mlirfuse.target import Target

PRODUCT_REGISTERS = 26
"""Registers beside its accumulators that ptxas wants for a `wgmma` (it refuses kernels with fewer: C7602)."""

MOST_CONSUMER_REGISTERS, PRODUCER_REGISTERS = 240, 40
"""Registers that `setmaxnreg` gives a consumer's thread at most, and a producer's thread."""

CONSUMER_REGISTERS = 472
"""Of one thread of each consumer warpgroup together, as schedules are proposed. `warpgroup_registers` rounds as the
machine does, and finds fewer for several warpgroups."""

OTHER_REGISTERS = 40
"""Registers of a consumer's thread, or of a SIMT product's, that are no accumulators."""

PROMOTED_STEP_SETS, PROMOTED_SETS = 3, 2
"""Sets of accumulators of a thread: where every step's sums are promoted while the next step's are under way, and where
sums are promoted after several steps."""


def warpgroup_registers(consumers: int, producers: int, blocks_per_sm: int, target: Target) -> tuple[int, int]:
    """Registers of a consumer's and of a producer's threads: blocks have all of the SM's.

    Args:
        consumers: warpgroups of a block that multiply.
        producers: warpgroups of a block that copy.
        blocks_per_sm: blocks that share an SM.
        target: the architecture.
    """
    warpgroups = consumers + producers
    start = registers_shared_out(warpgroups * WARPGROUP, blocks_per_sm, target)
    left = (start * warpgroups - PRODUCER_REGISTERS * producers) // consumers
    return min(left // REGISTER_STEP * REGISTER_STEP, MOST_CONSUMER_REGISTERS), PRODUCER_REGISTERS


def consumer_registers(warpgroups: int) -> int:
    """Registers of a consumer's thread as heuristics take them, where so many warpgroups multiply."""
    return min(MOST_CONSUMER_REGISTERS, CONSUMER_REGISTERS // warpgroups)


def accumulator_registers(layout: BlockedLayout, accumulator_bytes: int) -> int:
    """Registers of a thread's accumulators, of so many bytes each."""
    return layout.elements_per_thread * accumulator_bytes // REGISTER_BYTES


def fits_promoted(m: int, n: int, sets: int) -> bool:
    """Whether threads have registers for several sets of the accumulators of a tile of m x n.

    A warpgroup has 64 rows, of which a thread has n / 2 elements.
    """
    return sets * n // 2 + OTHER_REGISTERS <= consumer_registers(m // WARPGROUP_ROWS)


def fits_simt(layout: BlockedLayout, accumulator_bytes: int, target: Target) -> bool:
    """Whether threads of SIMT products have registers for their accumulators, and for the sums of one step."""
    most = min(target.max_registers_per_thread, target.registers_per_sm // layout.threads)
    return 2 * accumulator_registers(layout, accumulator_bytes) + OTHER_REGISTERS <= most
