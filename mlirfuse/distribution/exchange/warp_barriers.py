"""Named barriers of some warps of a block, for tiles with several rows that have warps of their own.

In a loop, the warps of one row then need not wait for those of another: one row computes while another waits.

All steps of a loop synchronise the same groups of warps: a step that alternates between two copies of its memory
relies on the barrier of the step in between, which must not order fewer warps. And all named barriers of a kernel are
those of groups of one size, as groups of two sizes would share numbers. So the barriers are emitted once all steps are
known (`settle`).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from math import lcm, prod

from mlir import ir
from mlir.dialects import arith, gpu, nvvm

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


class WarpBarriers:
    """The barriers of a kernel's steps in loops, which `settle` emits."""

    def __init__(self) -> None:
        self._steps: list[tuple[gpu.BarrierOp, int | None]] = []

    def add(self, warps: int | None) -> None:
        """Marks the place of a barrier among each `warps` consecutive warps at least; None for all of the block."""
        self._steps.append((gpu.BarrierOp(), warps))

    def settle(self, thread: ir.Value, block_warps: int) -> None:
        """Makes all barriers those of the smallest groups that serve every step.

        Args:
            thread: the thread's number, an index.
            block_warps: the warps of a block.
        """
        loops: dict[ir.Operation, list[tuple[gpu.BarrierOp, int | None]]] = {}
        for barrier, warps in self._steps:
            loops.setdefault(_outermost(barrier.operation), []).append((barrier, warps))
        apart = [steps for steps in loops.values() if all(warps is not None for _, warps in steps)]
        warps = lcm(*(warps for steps in apart for _, warps in steps if warps is not None))
        if warps == block_warps:
            return
        for barrier, _ in chain.from_iterable(apart):
            with ir.InsertionPoint(barrier), barrier.location:
                _warp_barrier(thread, warps)
            barrier.operation.erase()


def _outermost(op: ir.Operation) -> ir.Operation:
    """The op around `op` that lies in the kernel's own block."""
    while op.parent.name != "gpu.func":
        op = op.parent
    return op


def _warp_barrier(thread: ir.Value, warps: int) -> None:
    i32 = ir.IntegerType.get_signless(32)
    number = arith.index_cast(i32, add(divide(thread, WARP * warps), constant(1)))  # gpu.barrier uses 0
    nvvm.barrier(None, barrier_id=number, number_of_threads=arith.constant(i32, WARP * warps))
