"""Barriers of some warps of a block, where the rows of a tile lie side by side and each has warps of its own.

In a loop, the warps of one row need not wait for those of another, step by step: rows run apart, and one computes while
another waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from mlir import ir
from mlir.dialects import arith, nvvm

from mlirfuse.distribution.exchange.exchange import Exchange
from mlirfuse.distribution.threads.scalars import add, constant, divide
from mlirfuse.schedule.layout import WARP

MOST_BARRIERS = 15
"""Barriers that a block has besides that of all its threads."""


def warps_that_meet(exchanges: Iterable[Exchange]) -> int | None:
    """How many warps that follow each other exchange with no others; None where all do, or more groups than barriers.

    Warps are numbered with the last dimension fastest, so those along the reduced dimensions follow each other where no
    kept dimension behind the first of these has warps. What all warps along a kept dimension hold the same, one of them
    writes for the others.
    """
    meeting = {_warps_of(exchange) for exchange in exchanges}
    return meeting.pop() if len(meeting) == 1 else None


def _warps_of(exchange: Exchange) -> int | None:
    if exchange.takers is not None:  # who takes a value need not be among those who sent it
        return None
    model = exchange.partials[0]
    warps = model.layout.warps
    spread = [d for d, count in enumerate(warps) if count > 1]
    kept = [d for d in spread if d not in exchange.dims]
    reduced = [d for d in spread if d in exchange.dims]
    groups = prod(warps[d] for d in kept)
    follow = all(k < r for k in kept for r in reduced)
    own = all(model.varies(d) for d in kept)
    return exchange.warps if follow and own and 1 < groups <= MOST_BARRIERS else None


def warp_barrier(thread: ir.Value, warps: int) -> None:
    """A barrier of each `warps` warps that follow each other; `thread` is the thread's number, an index."""
    i32 = ir.IntegerType.get_signless(32)
    number = arith.index_cast(i32, add(divide(thread, WARP * warps), constant(1)))  # 0 is that of gpu.barrier
    nvvm.barrier(None, barrier_id=number, number_of_threads=arith.constant(i32, WARP * warps))
