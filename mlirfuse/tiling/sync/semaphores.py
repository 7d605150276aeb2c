"""Protocols on the semaphores of a grid: barrier, last block, ticket, order. Each returns its semaphore to zero.

A semaphore counts modulo a limit that every arrival passes (`fuse.semaphore_arrive`), so that no launch has to reset
the semaphores. The members of a protocol are the thread blocks that arrive at one semaphore; `members` is the number of
members, an int or an index.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from mlir import ir
from mlir.dialects import affine, arith, scf

from mlirfuse.dialect.semaphore_arrive import semaphore_arrive
from mlirfuse.dialect.semaphore_wait import semaphore_wait

Members: TypeAlias = "int | ir.Value"


@contextmanager
def grid_barrier(semaphores: ir.Value, slot: ir.Value, members: Members) -> Iterator[None]:
    """Waits until all members have arrived; code emitted inside sees all of the members' earlier writes.

    On exit, a member arrives a second time without waiting, and the last of these arrivals resets the semaphore to
    zero. All members must be resident at once.
    """
    limit = _count(members, 2, -1)
    semaphore_arrive(semaphores, slot, limit)
    semaphore_wait(semaphores, slot, _count(members))
    yield
    semaphore_arrive(semaphores, slot, limit, relaxed=True)


def arrive_last(semaphores: ir.Value, slot: ir.Value, members: Members) -> ir.Value:
    """Whether a member arrives as the last one, which sees all earlier writes of the other members; an i1."""
    last = _count(members, 1, -1)
    arrived = semaphore_arrive(semaphores, slot, last)
    return arith.CmpIOp(arith.CmpIPredicate.eq, arrived, last).result


def last_block(semaphores: ir.Value, slot: ir.Value, members: Members) -> scf.IfOp:
    """The branch of the member that arrives last."""
    return scf.IfOp(arrive_last(semaphores, slot, members))


def take_ticket(semaphores: ir.Value, slot: ir.Value, members: Members) -> ir.Value:
    """The number of members that took a ticket before this one, an i32. A ticket does not order memory."""
    return semaphore_arrive(semaphores, slot, _count(members, 1, -1), relaxed=True)


@contextmanager
def serial_order(semaphores: ir.Value, slot: ir.Value, member: ir.Value, members: int) -> Iterator[None]:
    """Waits until the members before `member` (an index) have left; code emitted inside sees these members' writes."""
    semaphore_wait(semaphores, slot, arith.IndexCastOp(ir.IntegerType.get_signless(32), member).result)
    yield
    semaphore_arrive(semaphores, slot, _count(members, 1, -1))


def _count(members: Members, factor: int = 1, offset: int = 0) -> ir.Value:
    """`factor * members + offset` as an i32."""
    i32 = ir.IntegerType.get_signless(32)
    if isinstance(members, int):
        return arith.ConstantOp(i32, factor * members + offset).result
    if (factor, offset) != (1, 0):
        expr = factor * ir.AffineExpr.get_dim(0) + offset
        members = affine.AffineApplyOp(ir.AffineMap.get(1, 0, [expr]), [members]).result
    return arith.IndexCastOp(i32, members).result
