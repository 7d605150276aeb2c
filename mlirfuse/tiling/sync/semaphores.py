"""Protocols on the semaphores of a grid: barrier, last block, ticket, order. Each returns its semaphore to zero.

A semaphore counts modulo a limit that every arrival names (`fuse.semaphore_arrive`), so that no launch has to clear
what the one before it left. The members of a protocol are the thread blocks that arrive at one semaphore; `members` is
their number, an int or an index.
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
    """Waits until all members have arrived; what they wrote before is visible to what is emitted inside.

    On leaving, a member counts itself out without waiting: the second round of arrivals returns the semaphore to zero.
    All members must be resident at once.
    """
    limit = _count(members, 2, -1)
    semaphore_arrive(semaphores, slot, limit)
    semaphore_wait(semaphores, slot, _count(members))
    yield
    semaphore_arrive(semaphores, slot, limit, relaxed=True)


def last_block(semaphores: ir.Value, slot: ir.Value, members: Members) -> scf.IfOp:
    """The branch of the member that arrives last, to which all that the others wrote is visible."""
    last = _count(members, 1, -1)
    arrived = semaphore_arrive(semaphores, slot, last)
    return scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, arrived, last).result)


def take_ticket(semaphores: ir.Value, slot: ir.Value, members: Members) -> ir.Value:
    """How many members came before this one, an i32. It orders no memory."""
    return semaphore_arrive(semaphores, slot, _count(members, 1, -1), relaxed=True)


@contextmanager
def serial_order(semaphores: ir.Value, slot: ir.Value, member: ir.Value, members: int) -> Iterator[None]:
    """Waits until the members before `member`, an index, have left; what is emitted inside sees what they wrote."""
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
