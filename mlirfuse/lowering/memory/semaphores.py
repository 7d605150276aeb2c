"""`lower-semaphores`: synchronisation between the blocks of a grid becomes atomics at device scope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, scf

from mlirfuse.dialect.semaphore_arrive import RELAXED
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.memory.addresses import global_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import erase, ops_named

ARRIVE, WAIT = "fuse.semaphore_arrive", "fuse.semaphore_wait"


@dataclass(frozen=True)
class LowerSemaphores(Pass):
    """Lowers `fuse.semaphore_arrive` to an atomic wrapping increment, and `fuse.semaphore_wait` to a loop of loads.

    The increment is `atom.acq_rel.gpu` (`atom.relaxed.gpu` where the op says so), or, where its result is unused, a
    `red.release.gpu`, for which no thread waits; the load is `ld.acquire.gpu`. Causality order in the PTX memory model
    is transitive through barriers, so that the arriving thread's release covers all writes of its block before the last
    `gpu.barrier`, and the next barrier passes on what a waiting thread acquires. The accesses are inline PTX, as the
    NVPTX backend prints `llvm.atomicrmw` without its ordering. Loads of the memory that semaphores guard must not take
    the read-only path, which `lower-kernel-abi` ensures for workspace arguments and for all memory that is written.

    ```mlir
    %old = "fuse.semaphore_arrive"(%s, %i, %limit) : (memref<?xi32>, index, i32) -> i32
    "fuse.semaphore_wait"(%s, %i, %count) : (memref<?xi32>, index, i32) -> ()
    // lower-semaphores
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %old = nvvm.inline_ptx "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;" ro(%p, %limit : !llvm.ptr<1>, i32) -> i32
    scf.while : () -> () {
      %seen = nvvm.inline_ptx "ld.acquire.gpu.global.u32 $0, [$1];" ro(%p : !llvm.ptr<1>) -> i32
      %early = arith.cmpi ult, %seen, %count : i32
      scf.condition(%early)
    } do {
      scf.yield
    }
    ```
    """

    name: ClassVar[str] = "lower-semaphores"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = ops_named(func.operation, ARRIVE, WAIT)
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    if op.name == ARRIVE:
                        _arrive(op)
                    else:
                        _wait(*op.operands)
                erase(op)
            if ops:
                remarks.applied(self, f"{len(ops)} semaphore ops lowered", func)


def _arrive(op: ir.Operation) -> None:
    semaphores, slot, limit = op.operands
    pointer, is_relaxed = global_pointer(semaphores, [slot]), RELAXED in op.attributes
    if not list(op.results[0].uses):  # an arrival whose result is unused acquires nothing
        order = "relaxed" if is_relaxed else "release"
        nvvm.InlinePtxOp([], [pointer, limit], [], f"red.{order}.gpu.global.inc.u32 [$0], $1;")
        return
    order = "relaxed" if is_relaxed else "acq_rel"
    text = f"atom.{order}.gpu.global.inc.u32 $0, [$1], $2;"
    op.results[0].replace_all_uses_with(nvvm.InlinePtxOp([limit.type], [pointer, limit], [], text).results[0])


def _wait(semaphores: ir.Value, slot: ir.Value, count: ir.Value) -> None:
    pointer = global_pointer(semaphores, [slot])
    loop = scf.WhileOp([], [])
    with ir.InsertionPoint(loop.before.blocks.append()):
        seen = nvvm.InlinePtxOp([count.type], [pointer], [], "ld.acquire.gpu.global.u32 $0, [$1];").results[0]
        scf.ConditionOp(arith.cmpi(arith.CmpIPredicate.ult, seen, count), [])
    with ir.InsertionPoint(loop.after.blocks.append()):
        scf.YieldOp([])
