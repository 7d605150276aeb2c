"""`lower-mbarriers`: mbarrier ops become NVVM's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, scf

from mlirfuse.dialect.async_load import peers_of
from mlirfuse.dialect.mbarrier_wait import CLUSTER
from mlirfuse.lowering.async_ops.hopper import kernels_using, thread_number
from mlirfuse.lowering.async_ops.shared_address import element_address, shared_pointer
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.rewriting import erase


@dataclass(frozen=True)
class LowerMbarriers(Pass):
    """Lowers `fuse.mbarrier_init`, `_arrive`, `_expect` and `_wait` to NVVM ops on addresses in shared memory.

    Requires a target of compute capability 90. Thread 0 initialises the barriers, and a fence makes this visible to the
    asynchronous proxy and to the cluster. The first thread of each warpgroup arrives for its warpgroup. A wait is a
    loop of `try_wait`, each of which suspends the thread in hardware for a while. Arrivals have the default scope, the
    block: cluster scope would put a fence of the whole GPU into the main loop. Waits have that scope too, except those
    marked `cluster`, which invalidate the L1.

    ```mlir
    "fuse.mbarrier_arrive"(%empty, %stage) {warpgroups = 2 : i64} : (memref<4xi64, ...>, index) -> ()
    "fuse.mbarrier_wait"(%full, %stage, %parity) : (memref<4xi64, ...>, index, i32) -> ()
    ```
    becomes
    ```mlir
    scf.if %first_of_warpgroup {
      nvvm.mbarrier.arrive %empty_stage : !llvm.ptr<3>
    }
    scf.while : () -> () {
      %done = nvvm.mbarrier.try_wait %full_stage, %parity : !llvm.ptr<3>, i32 -> i1
      %again = arith.xori %done, %true : i1
      scf.condition(%again)
    } do {
      scf.yield
    }
    ```

    Raises `TargetError` for another target.
    """

    name: ClassVar[str] = "lower-mbarriers"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in kernels_using(module, frozenset(_LOWERINGS), lambda target: target.has_tma):
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _LOWERINGS[op.name](op)
                erase(op)
            remarks.applied(self, f"{len(ops)} mbarrier ops lowered", func)


def _init(op: ir.Operation) -> None:
    i32 = ir.IntegerType.get_signless(32)
    barriers = op.operands[0]
    first = arith.cmpi(arith.CmpIPredicate.eq, thread_number(), arith.constant(i32, 0))
    branch = scf.IfOp(first)
    with ir.InsertionPoint(branch.then_block):
        arrivals = arith.constant(i32, ir.IntegerAttr(op.attributes["arrivals"]).value)
        for i in range(ir.MemRefType(barriers.type).shape[0]):
            index = arith.constant(ir.IndexType.get(), i)
            nvvm.mbarrier_init(shared_pointer(element_address(barriers, index)), arrivals)
        nvvm.fence_mbarrier_init()
        scf.YieldOp([])


def _arrive(op: ir.Operation) -> None:
    i32 = ir.IntegerType.get_signless(32)
    in_warpgroup = arith.andi(thread_number(), arith.constant(i32, WARPGROUP - 1))
    peers = peers_of(op)
    branch = scf.IfOp(arith.cmpi(arith.CmpIPredicate.ult, in_warpgroup, arith.constant(i32, peers)))
    with ir.InsertionPoint(branch.then_block):
        barrier = _barrier(op)
        if peers > 1:
            barrier = nvvm.mapa(ir.Type.parse("!llvm.ptr<7>"), barrier, in_warpgroup)
        nvvm.mbarrier_arrive(None, barrier)
        scf.YieldOp([])


def _expect(op: ir.Operation) -> None:
    count = arith.constant(ir.IntegerType.get_signless(32), ir.IntegerAttr(op.attributes["bytes"]).value)
    nvvm.mbarrier_arrive_expect_tx(None, _barrier(op), count)


def _wait(op: ir.Operation) -> None:
    i1, barrier = ir.IntegerType.get_signless(1), _barrier(op)
    loop = scf.WhileOp([], [])
    before, after = (region.blocks.append() for region in loop.operation.regions)
    with ir.InsertionPoint(before):
        scope = nvvm.MemScopeKind.CLUSTER if CLUSTER in op.attributes else None
        done = nvvm.mbarrier_try_wait(i1, barrier, op.operands[2], scope=scope)
        scf.ConditionOp(arith.xori(done, arith.constant(i1, 1)), [])
    with ir.InsertionPoint(after):
        scf.YieldOp([])


def _barrier(op: ir.Operation) -> ir.Value:
    return shared_pointer(element_address(op.operands[0], op.operands[1]))


_LOWERINGS: dict[str, Callable[[ir.Operation], None]] = {
    "fuse.mbarrier_init": _init,
    "fuse.mbarrier_arrive": _arrive,
    "fuse.mbarrier_expect": _expect,
    "fuse.mbarrier_wait": _wait,
}
