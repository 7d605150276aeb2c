"""The order barrier between ping-pong consumer groups: while one group's products run, the others finish tiles."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.mbarrier_arrive import mbarrier_arrive
from mlirfuse.dialect.mbarrier_init import mbarrier_init
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait


@dataclass(frozen=True)
class OrderBarrier:
    """Order barrier between ping-pong consumer groups.

    A group passes the barrier on when it has seen all its stages full. So nobody waits for a stage that is two phases
    of the ring ahead, of which a barrier's parity could not tell.

    Attributes:
        barriers: one a consumer group, whose phase ends when its products may start.
        consumer_groups: how many alternate.
        warpgroups: of a consumer group.
    """

    barriers: ir.Value
    consumer_groups: int
    warpgroups: int

    def first_parity(self, consumer_group: ir.Value) -> ir.Value:
        """Parity (i32) with which a consumer group waits the first time; the first consumer group passes a fresh
        barrier.
        """
        is_first = arith.cmpi(arith.CmpIPredicate.eq, consumer_group, arith.constant(ir.IndexType.get(), 0))
        return arith.extui(ir.IntegerType.get_signless(32), is_first)

    def wait(self, consumer_group: ir.Value, parity: ir.Value) -> ir.Value:
        """Waits until a consumer group may start its products; the parity of the next wait."""
        mbarrier_wait(self.barriers, consumer_group, parity)
        return arith.xori(parity, arith.constant(ir.IntegerType.get_signless(32), 1))

    def pass_on(self, consumer_group: ir.Value) -> None:
        """Lets the next consumer group start its products."""
        index = ir.IndexType.get()
        following = arith.addi(consumer_group, arith.constant(index, 1))
        mbarrier_arrive(
            self.barriers, arith.remui(following, arith.constant(index, self.consumer_groups)), self.warpgroups
        )


def allocate_order_barrier(consumer_groups: int, warpgroups: int) -> OrderBarrier:
    """Allocates the barriers in shared memory and initialises them; a barrier of the block must follow."""
    space, i64 = ir.Attribute.parse("#gpu.address_space<workgroup>"), ir.IntegerType.get_signless(64)
    type_ = ir.MemRefType.get([consumer_groups], i64, memory_space=space)
    barriers = memref.AllocOp(type_, [], [], alignment=ir.IntegerAttr.get(i64, 16)).result
    mbarrier_init(barriers, warpgroups)
    return OrderBarrier(barriers, consumer_groups, warpgroups)
