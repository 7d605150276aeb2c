"""Named barriers of some warps of a block, for tiles with several rows that have warps of their own.

In a loop, the warps of one row then need not wait for those of another: one row computes while another waits.
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
"""Named barriers of a block, without barrier 0, which `gpu.barrier` uses."""


def independent_warps(exchanges: Iterable[Exchange]) -> int | None:
    """Number of consecutive warps that exchange values only among themselves; None if all warps do, or if there are
    more than `MOST_BARRIERS` such groups.

    Warps are numbered with the last dimension fastest, so the warps along the reduced dimensions are consecutive only
    if no kept dimension after the first reduced one has warps. Where warps along a kept dimension hold the same values,
    one warp writes for all, so that groups are not independent.
    """
    counts = {_warps_of(exchange) for exchange in exchanges}
    return counts.pop() if len(counts) == 1 else None


def _warps_of(exchange: Exchange) -> int | None:
    if exchange.receivers is not None:  # the receivers of a value need not be among its senders
        return None
    model = exchange.partials[0]
    warps = model.layout.warps
    split = [d for d, count in enumerate(warps) if count > 1]
    kept = [d for d in split if d not in exchange.dims]
    reduced = [d for d in split if d in exchange.dims]
    groups = prod(warps[d] for d in kept)
    consecutive = all(k < r for k in kept for r in reduced)
    distinct = all(model.varies(d) for d in kept)
    return exchange.warps if consecutive and distinct and 1 < groups <= MOST_BARRIERS else None


def warp_barrier(thread: ir.Value, warps: int) -> None:
    """Emits a barrier of each group of `warps` consecutive warps; `thread` is the thread's number, an index."""
    i32 = ir.IntegerType.get_signless(32)
    number = arith.index_cast(i32, add(divide(thread, WARP * warps), constant(1)))  # gpu.barrier uses 0
    nvvm.barrier(None, barrier_id=number, number_of_threads=arith.constant(i32, WARP * warps))
