"""`lower-masked-loads`: loads that a condition masks as a whole become predicated loads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.memory.buffers import root
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.memory.addresses import GLOBAL
from mlirfuse.lowering.memory.inline_accesses import predicated_load, why_not_inline
from mlirfuse.lowering.memory.streaming_accesses import read_only_arguments
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import defining_op, ops_named

MASKED = "vector.maskedload"


@dataclass(frozen=True)
class LowerMaskedLoads(Pass):
    """Lowers masked loads of global memory whose mask is one condition to inline PTX that is predicated.

    Upstream lowers them to a branch for each element. The registers of a predicated load hold what the op passes
    through before it, zeros of padding for example: nothing is selected afterwards, and no address has to be valid. A
    load is lowered where it is 4, 8 or 16 bytes wide and its `alignment` says so; any other stays as it is, with a
    remark.

    ```mlir
    %m = vector.broadcast %inside : i1 to vector<2xi1>
    %v = vector.maskedload %x[%i], %m, %zeros {alignment = 4 : i64} : memref<?xf16>, vector<2xi1>, vector<2xf16> ...
    // lower-masked-loads
    %w = llvm.inline_asm has_side_effects "@$2 ld.global.b32 $0, [$1];", "=r,l,b,0" %p, %inside, %c0 : ... -> i32
    ```
    """

    name: ClassVar[str] = "lower-masked-loads"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            read_only = read_only_arguments(func)
            done = 0
            for op in ops_named(func.operation, MASKED):
                condition, reason = _condition(op), _why_not(op)
                if condition is None or reason:
                    remarks.declined(self, f"stays masked: {reason or 'its mask is no single condition'}", op)
                    continue
                path = ".nc" if root(op.operands[0]) in read_only else ""
                with ir.InsertionPoint(op), op.location:
                    predicated_load(op, condition, f"ld.global{path}", GLOBAL)
                done += 1
            if done:
                remarks.applied(self, f"{done} loads are predicated", func)


def _condition(op: ir.Operation) -> ir.Value | None:
    """The condition that all elements of a load's mask are; None where they may differ."""
    rank = ir.MemRefType(op.operands[0].type).rank
    maker = defining_op(op.operands[1 + rank])
    if maker is None or maker.name != "vector.broadcast" or isinstance(maker.operands[0].type, ir.VectorType):
        return None
    return maker.operands[0]


def _why_not(op: ir.Operation) -> str | None:
    """Why a load cannot be one predicated load, or None."""
    space = ir.MemRefType(op.operands[0].type).memory_space
    return why_not_inline(op) if space is None else f"memory space {space} is not global memory"
