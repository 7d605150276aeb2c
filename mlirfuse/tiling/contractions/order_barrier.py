"""The order barrier between ping-pong consumer groups: one group runs its products while the others run epilogues."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait
from mlirfuse.dialect.shared_memory import workgroup_memref


@dataclass(frozen=True)
class OrderBarrier:
    """Order barrier between ping-pong consumer groups, as in CUTLASS.

    A group signals the next group after all its stages have been full. No group therefore waits for a stage two phases
    of the ring ahead, which the parity of an mbarrier cannot distinguish.

    Attributes:
        barriers: one mbarrier for each consumer group; a phase completes when the group may start its products.
        consumer_groups: number of alternating consumer groups.
        warpgroups: warpgroups in a consumer group.
    """

    barriers: ir.Value
    consumer_groups: int
    warpgroups: int

    def first_parity(self, consumer_group: ir.Value) -> ir.Value:
        """Parity (i32) of a consumer group's first wait, chosen so that group 0 does not block on a fresh barrier."""
        is_first = arith.cmpi(arith.CmpIPredicate.eq, consumer_group, arith.constant(ir.IndexType.get(), 0))
        return arith.extui(ir.IntegerType.get_signless(32), is_first)

    def wait(self, consumer_group: ir.Value, parity: ir.Value) -> ir.Value:
        """Waits until a consumer group may start its products; returns the parity of its next wait."""
        mbarrier_wait(self.barriers, consumer_group, parity)
        return arith.xori(parity, arith.constant(ir.IntegerType.get_signless(32), 1))

    def pass_on(self, consumer_group: ir.Value) -> None:
        """Signals the next consumer group, which may then start its products."""
        index = ir.IndexType.get()
        following = arith.addi(consumer_group, arith.constant(index, 1))
        mbarrier_arrive(
            self.barriers, arith.remui(following, arith.constant(index, self.consumer_groups)), self.warpgroups
        )


def allocate_order_barrier(consumer_groups: int, warpgroups: int) -> OrderBarrier:
    """Allocates and initialises the mbarriers in shared memory; the caller must emit a block-wide barrier after it."""
    i64 = ir.IntegerType.get_signless(64)
    type_ = workgroup_memref([consumer_groups], i64)
    barriers = memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, 16)).result
    mbarrier_init(barriers, warpgroups)
    return OrderBarrier(barriers, consumer_groups, warpgroups)
