"""Helpers of the lowerings of Hopper's asynchronous ops: the check of the target, and the thread's warpgroup."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, gpu, nvvm

from mlirfuse.errors import TargetError
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.rewriting import ops_named

CHIP = "sm_90a"  # wgmma and setmaxnreg are in no other architecture; TMA and mbarriers came with sm_90


MBARRIERS = 90
"""The first compute capability whose mbarriers count bytes."""


def hopper_kernels(
    module: ir.Operation, names: frozenset[str], since: int | None = None
) -> list[tuple[gpu.GPUFuncOp, list[ir.Operation]]]:
    """The kernels that have ops of these names, each with them.

    Args:
        module: where to look.
        names: names of ops.
        since: the compute capability from which on all architectures have the ops; None where only sm_90a does.

    Raises:
        TargetError: a kernel is for an architecture without them.
    """
    found = []
    for func in kernels(module):
        ops = ops_named(func.operation, *names)
        if not ops:
            continue
        target = target_of_kernel(func)
        if target.chip != CHIP and (since is None or target.capability < since):
            raise TargetError(
                f"kernel {func.attributes['sym_name']} uses {ops[0].name}, which {target.chip} does not have",
                where=func,
                hint=f"compile for {CHIP}, or choose a schedule without it",
            )
        found.append((func, ops))
    return found


def thread_number() -> ir.Value:
    """The thread's number in its block, i32."""
    return arith.index_cast(ir.IntegerType.get_signless(32), gpu.ThreadIdOp(gpu.Dimension.x).result)


def warpgroup_number() -> ir.Value:
    """The thread's warpgroup in its block, i32, in a form that ptxas sees to be the same throughout the warp."""
    i32 = ir.IntegerType.get_signless(32)
    number = arith.shrui(thread_number(), arith.constant(i32, WARPGROUP.bit_length() - 1))
    full, zero, clamp = (arith.constant(i32, value) for value in (-1, 0, 31))
    return nvvm.shfl_sync(i32, full, number, zero, clamp, nvvm.ShflKind.idx)
