"""`lower-streaming-accesses`: accesses marked `nontemporal` become PTX with cache hints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from mlir import ir

from mlirfuse.analysis.memory.buffers import is_nontemporal, root
from mlirfuse.lowering.kernel_func import kernels, parameters
from mlirfuse.lowering.memory.addresses import GLOBAL
from mlirfuse.lowering.memory.inline_accesses import buffer_of, inline_load, inline_store, why_not_inline
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import ops_named

# The PTX qualifiers of each hint: the cache operator, which precedes `.nc`, and the eviction priority after it.
_QUALIFIERS = {
    "no-allocate": ("", ".L1::no_allocate"),
    "evict-first": ("", ".L1::evict_first"),
    "cs": (".cs", ""),
    "cg": (".cg", ""),
}


@dataclass(frozen=True)
class LowerStreamingAccesses(Pass):
    """Lowers `nontemporal` vector loads and stores of global memory to inline PTX with cache hints.

    The NVPTX backend drops `nontemporal`. Data that the grid touches once should not displace what it reads again, so
    loads go to the L2 alone and stores are evicted first. An access is lowered where it is 4, 8 or 16 bytes wide and
    its `alignment` says so; any other stays as it is, with a remark. A load goes through the read-only path (`.nc`)
    where the kernel's argument is marked `llvm.noalias` and `llvm.readonly`, which `lower-kernel-abi` does.

    `load-hint` and `store-hint` name the cache hint (`none` leaves those accesses alone).

    ```mlir
    %v = vector.load %x[%i] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
    // lower-streaming-accesses
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %r:4 = nvvm.inline_ptx "ld.global.cg.nc.v4.b32 {$0, $1, $2, $3}, [$4];"
        ro(%p : !llvm.ptr<1>) -> i32, i32, i32, i32
    %w = vector.from_elements %r#0, %r#1, %r#2, %r#3 : vector<4xi32>
    %v = vector.bitcast %w : vector<4xi32> to vector<8xf16>
    ```
    """

    name: ClassVar[str] = "lower-streaming-accesses"

    load_hint: Literal["no-allocate", "evict-first", "cs", "cg", "none"] = "cg"
    store_hint: Literal["no-allocate", "evict-first", "cs", "cg", "none"] = "cs"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        hints = {"vector.load": self.load_hint, "vector.store": self.store_hint}
        for func in kernels(module):
            read_only = read_only_arguments(func)
            done = 0
            for op in ops_named(func.operation, *hints):
                if hints[op.name] == "none" or not is_nontemporal(op):
                    continue
                reason = _why_not(op)
                if reason:
                    remarks.declined(self, f"{op.name} stays plain: {reason}", op)
                    continue
                cache, priority = _QUALIFIERS[hints[op.name]]
                with ir.InsertionPoint(op), op.location:
                    if op.name == "vector.load":
                        path = ".nc" if root(op.operands[0]) in read_only else ""
                        inline_load(op, f"ld.global{cache}{path}{priority}", GLOBAL)
                    else:
                        inline_store(op, f"st.global{cache}{priority}", GLOBAL)
                done += 1
            if done:
                remarks.applied(self, f"{done} accesses carry cache hints", func)


def _why_not(op: ir.Operation) -> str | None:
    """Why an access cannot be lowered, or None."""
    space = ir.MemRefType(buffer_of(op).type).memory_space
    return why_not_inline(op) if space is None else f"memory space {space} is not global memory"


def read_only_arguments(func: ir.OpView) -> set[ir.Value]:
    """The arguments of a lowered kernel that may be read through the read-only path."""
    values = list(func.regions[0].blocks[0].arguments)
    marks = ("llvm.noalias", "llvm.readonly")
    return {v for v, p in zip(values, parameters(func), strict=False) if all(mark in p.attributes for mark in marks)}
