"""`lower-carried-loads`: loads for the next step of a loop stay in flight while this step computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, math, nvvm

from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.memory.optimization_barriers import register_bits
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import makers, ops_named

_THREADS = ("gpu.thread_id", "gpu.lane_id", "nvvm.read.ptx.sreg.tid.x", "nvvm.read.ptx.sreg.laneid")


@dataclass(frozen=True)
class LowerCarriedLoads(Pass):
    """Makes numbers that all threads load for the next step of a loop look as if each thread had one of its own.

    A load of global memory from one address for all threads gives them one number, which ptxas likes to keep in a
    uniform register. Loads write to the registers of threads only, so that it moves the number behind the load, and
    the move waits: a step that loads what the next one needs would wait for the memory. So what the loop carries is the
    exclusive-or of the number and a zero that ptxas takes for one of each thread: of the bits of `%lanemask_eq` one is
    set, less one. The step ends with it, when the number has long arrived.

    Loads whose index depends on the thread already, and those with another use in the loop, stay as they are.

    ```mlir
    %r = scf.for ... iter_args(%mean = %first) -> (f32) {
      %next = memref.load %means[%row] : memref<?xf32>
      ...
      scf.yield %next : f32
    }
    ```
    becomes
    ```mlir
    %mask = nvvm.read.ptx.sreg.lanemask.eq : i32
    %ones = math.ctpop %mask : i32
    %zero = arith.subi %ones, %c1 : i32
    %r = scf.for ... iter_args(%mean = %first) -> (f32) {
      %next = memref.load %means[%row] : memref<?xf32>
      ...
      %bits = arith.bitcast %next : f32 to i32
      %own = arith.xori %bits, %zero : i32
      %n = arith.bitcast %own : i32 to f32
      scf.yield %n : f32
    }
    ```
    """

    name: ClassVar[str] = "lower-carried-loads"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            uniform = []
            for op in filter(_is_carried, ops_named(func.operation, "memref.load")):
                if _differs(op):
                    remarks.declined(self, "threads load from addresses of their own", op)
                else:
                    uniform.append(op)
            if not uniform:
                continue
            with ir.InsertionPoint.at_block_begin(func.operation.regions[0].blocks[0]), func.operation.location:
                zero = _zero()
            for op in uniform:
                _end_with_own(op.results[0], zero)
            remarks.applied(self, f"{len(uniform)} loads for the next step", func)


def _is_carried(load: ir.Operation) -> bool:
    """Whether a load of global memory is in a loop whose next step has its only uses."""
    if load.parent.name != "scf.for" or ir.MemRefType(load.operands[0].type).memory_space is not None:
        return False
    uses = list(load.results[0].uses)
    return bool(uses) and all(use.owner.name == "scf.yield" for use in uses)


def _differs(load: ir.Operation) -> bool:
    """Whether the index of a load is computed from the number of the thread, as far as its ops tell."""
    _, *place = load.operands
    return any(op.name in _THREADS for op in makers(place))


def _zero() -> ir.Value:
    """32 bits of zero, which depend on the lane for all that compilers know."""
    i32 = ir.IntegerType.get_signless(32)
    return arith.subi(math.ctpop(nvvm.LaneMaskEqOp(i32).result), arith.constant(i32, 1))


def _end_with_own(loaded: ir.Value, zero: ir.Value) -> None:
    """Lets the steps of the loop around a load yield the number of each thread."""
    bits = ir.IntegerType.get_signless(register_bits(loaded.type))
    (end,) = {use.owner.operation for use in loaded.uses}
    with ir.InsertionPoint(end), end.location:
        plain = loaded if loaded.type == bits else arith.bitcast(bits, loaded)
        mixed = arith.xori(plain, _as_wide(zero, bits))
        own = mixed if loaded.type == bits else arith.bitcast(loaded.type, mixed)
    for number, operand in enumerate(end.operands):
        if operand == loaded:
            end.operands[number] = own


def _as_wide(zero: ir.Value, bits: ir.IntegerType) -> ir.Value:
    if bits.width == 32:
        return zero
    return arith.trunci(bits, zero) if bits.width < 32 else arith.extui(bits, zero)
