"""Rules of the semaphore ops: one thread performs what a tile program does once a block."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import gpu, memref, scf

from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.cluster_store import cluster_store
from mlirfuse.dialect.semaphore_arrive import RELAXED, semaphore_arrive
from mlirfuse.dialect.semaphore_wait import semaphore_wait
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.threads.scalars import add, constant, equals_zero, multiply


@rule("fuse.semaphore_arrive")
def arrive(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.semaphore_arrive`.

    One thread arrives after all threads have written; if the op's result is used, all threads read it in shared memory.
    """
    semaphores, slot, limit = (d.scalars[operand] for operand in op.operands)
    relaxed = RELAXED in op.attributes
    d.force_all()  # delayed reads belong before the arrival
    shared_old = d.scratch(1, op.results[0].type) if list(op.results[0].uses) else None
    if not relaxed or (shared_old is not None and d.in_loop):  # releases writes, or orders reads of the previous value
        tile_barrier(d)
    first = scf.IfOp(_is_leader(d))
    with ir.InsertionPoint(first.then_block):
        old = semaphore_arrive(semaphores, slot, limit, relaxed=relaxed)
        if shared_old is not None:
            _broadcast(d, old, shared_old)
        scf.YieldOp([])
    if shared_old is not None:
        tile_barrier(d)
        d.scalars[op.results[0]] = memref.LoadOp(shared_old, [constant(0)]).result


def _broadcast(d: Distributor, value: ir.Value, shared_old: ir.Value) -> None:
    """Writes a value to the shared memory of every block of the cluster."""
    if d.layout.cluster == 1:
        memref.StoreOp(value, shared_old, [constant(0)])
        return
    for rank in range(d.layout.cluster):
        cluster_store(value, shared_old, constant(0), constant(rank))


@rule("fuse.semaphore_wait")
def wait(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.semaphore_wait`: one thread waits, and a barrier makes its acquire cover the other threads."""
    semaphores, slot, count = (d.scalars[operand] for operand in op.operands)
    d.force_all()
    first = scf.IfOp(_is_leader(d))
    with ir.InsertionPoint(first.then_block):
        semaphore_wait(semaphores, slot, count)
        scf.YieldOp([])
    tile_barrier(d)


def tile_barrier(d: Distributor) -> None:
    """A barrier of all threads that work on one tile: those of a block, or of a cluster."""
    if d.layout.cluster > 1:
        cluster_barrier()
    else:
        d.barrier()


def _is_leader(d: Distributor) -> ir.Value:
    """Whether the thread is the first of its block, in the first block of its cluster."""
    thread = gpu.ThreadIdOp(gpu.Dimension.x).result
    if d.layout.cluster == 1:
        return equals_zero(thread)
    rank = gpu.ClusterBlockIdOp(gpu.Dimension.x).result
    return equals_zero(add(thread, multiply(rank, d.layout.threads)))
