"""`lower-warpgroup-control`: election, register budgets and barriers of warpgroups become NVVM ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm

from mlirfuse.dialect.group_barrier import first_of
from mlirfuse.lowering.async_ops.hopper import kernels_using
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.rewriting import erase

MIN_BLOCKS = "nvvm.minctasm"
GROUP_BARRIER = 1  # number of the first warpgroup's hardware barrier; 0 is that of gpu.barrier


@dataclass(frozen=True)
class LowerWarpgroupControl(Pass):
    """Lowers `fuse.elect_one`, `fuse.set_registers` and `fuse.group_barrier`.

    Requires a target of sm_90a. A kernel that sets registers and has no `nvvm.minctasm` gets `nvvm.minctasm = 1`: ptxas
    ignores `setmaxnreg` where it does not know with how many registers a thread starts.

    ```mlir
    %chosen = "fuse.elect_one"() : () -> i1
    "fuse.set_registers"() {count = 40 : i64, action = "decrease"} : () -> ()
    "fuse.group_barrier"() {warpgroups = 2 : i64} : () -> ()
    ```
    becomes
    ```mlir
    %chosen = nvvm.elect.sync -> i1
    nvvm.setmaxregister decrease 40
    nvvm.barrier id = %c1 number_of_threads = %c256
    ```

    Raises `TargetError` for another target.
    """

    name: ClassVar[str] = "lower-warpgroup-control"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func, ops in kernels_using(module, frozenset(_LOWERINGS), lambda target: target.has_setmaxnreg):
            sets_registers = any(op.name == "fuse.set_registers" for op in ops)
            for op in ops:
                with ir.InsertionPoint(op), op.location:
                    _LOWERINGS[op.name](op)
                erase(op)
            if sets_registers and MIN_BLOCKS not in func.operation.attributes:
                i32 = ir.IntegerType.get_signless(32)
                func.operation.attributes[MIN_BLOCKS] = ir.IntegerAttr.get(i32, 1)
            remarks.applied(self, f"{len(ops)} ops lowered", func)


def _elect(op: ir.Operation) -> None:
    op.results[0].replace_all_uses_with(nvvm.elect_sync(ir.IntegerType.get_signless(1)))


def _set_registers(op: ir.Operation) -> None:
    action = nvvm.SetMaxRegisterAction[ir.StringAttr(op.attributes["action"]).value]
    nvvm.setmaxregister(ir.IntegerAttr(op.attributes["count"]).value, action)


def _group_barrier(op: ir.Operation) -> None:
    i32 = ir.IntegerType.get_signless(32)
    threads = WARPGROUP * ir.IntegerAttr(op.attributes["warpgroups"]).value
    number = arith.constant(i32, GROUP_BARRIER + first_of(op))
    nvvm.barrier(None, barrier_id=number, number_of_threads=arith.constant(i32, threads))


_LOWERINGS: dict[str, Callable[[ir.Operation], None]] = {
    "fuse.elect_one": _elect,
    "fuse.set_registers": _set_registers,
    "fuse.group_barrier": _group_barrier,
}
