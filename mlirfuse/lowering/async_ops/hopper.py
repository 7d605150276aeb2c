"""Common parts of the lowerings of asynchronous ops: the check of the target, and the thread's warpgroup."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir
from mlir.dialects import arith, gpu, nvvm

from mlirfuse.errors import TargetError
from mlirfuse.lowering.kernel_func import kernels, target_of_kernel
from mlirfuse.schedule.model.machine import WARPGROUP
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import TARGETS, Target


def kernels_using(
    module: ir.Operation, names: frozenset[str], can: Callable[[Target], bool]
) -> list[tuple[gpu.GPUFuncOp, list[ir.Operation]]]:
    """The kernels of a module that have ops of the given names, each with its ops of these names.

    Args:
        module: the module.
        names: names of ops.
        can: whether an architecture has the ops, such as `lambda target: target.has_tma`.

    Raises:
        TargetError: a kernel is for an architecture without the ops.
    """
    found = []
    for func in kernels(module):
        ops = ops_named(func.operation, *names)
        if not ops:
            continue
        target = target_of_kernel(func)
        if not can(target):
            raise TargetError(
                f"kernel {func.attributes['sym_name']} uses {ops[0].name}, which {target.chip} does not have",
                where=func,
                hint=f"compile for {', '.join(filter(lambda name: can(TARGETS[name]), TARGETS))}, "
                f"or choose a schedule without {ops[0].name}",
            )
        found.append((func, ops))
    return found


def thread_number() -> ir.Value:
    """The thread's number in its block, i32."""
    return arith.index_cast(ir.IntegerType.get_signless(32), gpu.ThreadIdOp(gpu.Dimension.x).result)


def warpgroup_number() -> ir.Value:
    """The thread's warpgroup in its block, i32, in a form that ptxas knows to be uniform in a warp."""
    i32 = ir.IntegerType.get_signless(32)
    number = arith.shrui(thread_number(), arith.constant(i32, WARPGROUP.bit_length() - 1))
    full, zero, clamp = (arith.constant(i32, value) for value in (-1, 0, 31))
    return nvvm.shfl_sync(i32, full, number, zero, clamp, nvvm.ShflKind.idx)
