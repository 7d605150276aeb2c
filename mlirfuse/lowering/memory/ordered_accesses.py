"""`lower-ordered-accesses`: accesses marked `fuse.in_order` become relaxed ones, which ptxas leaves in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.dialect.attributes import IN_ORDER
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.lowering.kernel_func import kernels
from mlirfuse.lowering.memory.addresses import GLOBAL, SHARED
from mlirfuse.lowering.memory.inline_accesses import buffer_of, inline_load, inline_store, why_not_inline
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import nested

INSTRUCTIONS = {
    ("vector.load", GLOBAL): "ld.relaxed.cta.global.L1::no_allocate",
    ("vector.store", SHARED): "st.relaxed.cta.shared",
}
"""The instruction for an access of an address space. Data to be spilled to shared memory is loaded once, and need not
stay in L1."""

UNORDERED = "only vector loads of global and vector stores to shared memory keep their order"


@dataclass(frozen=True)
class LowerOrderedAccesses(Pass):
    """Lowers vector loads of global memory and stores to shared memory that are marked `fuse.in_order` to relaxed ones.

    ptxas reorders plain accesses: it moves loads of fragments up and the stores that spill them to shared memory down,
    until no registers are left. It keeps relaxed accesses of a thread in order. An access is lowered where it is 4, 8
    or 16 bytes wide and its `alignment` says so; any other stays as it is, with a remark.

    ```mlir
    %v = vector.load %x[%i] {alignment = 16 : i64, fuse.in_order} : memref<?xf16>, vector<8xf16>
    // lower-ordered-accesses
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %r:4 = nvvm.inline_ptx "ld.relaxed.cta.global.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];"
        ro(%p : !llvm.ptr<1>) -> i32, i32, i32, i32
    %w = vector.from_elements %r#0, %r#1, %r#2, %r#3 : vector<4xi32>
    %v = vector.bitcast %w : vector<4xi32> to vector<8xf16>
    ```
    """

    name: ClassVar[str] = "lower-ordered-accesses"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            marked = [op for op in nested(func.operation) if IN_ORDER in op.attributes]
            done = 0
            for op in marked:
                space = _space(op)
                instruction = INSTRUCTIONS.get((op.name, space))
                reason = why_not_inline(op) if instruction else UNORDERED
                if instruction is None or reason:
                    remarks.declined(self, f"{op.name} may be moved: {reason}", op)
                    continue
                with ir.InsertionPoint(op), op.location:
                    (inline_load if op.name == "vector.load" else inline_store)(op, instruction, space)
                done += 1
            if done:
                remarks.applied(self, f"{done} accesses stay in order", func)


def _space(op: ir.Operation) -> int:
    """The address space of a vector access; 0 where it is neither of the two, or the op is no such access."""
    if op.name not in ("vector.load", "vector.store"):
        return 0
    type_ = ir.MemRefType(buffer_of(op).type)
    if is_workgroup(type_):
        return SHARED
    return GLOBAL if type_.memory_space is None else 0
