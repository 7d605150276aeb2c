"""`lower-streaming-accesses`: accesses marked `nontemporal` become PTX with cache hints."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

from mlir import ir
from mlir.dialects import nvvm, vector

from mlirfuse.dtypes import from_mlir
from mlirfuse.lowering.addresses import global_pointer
from mlirfuse.lowering.kernel_func import kernels, parameters
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.rewriting import ops_named

WIDTHS = (4, 8, 16)  # bytes that one thread can access at once, in 32-bit registers
VIEWS = (
    "memref.cast",
    "memref.reinterpret_cast",
    "memref.subview",
    "memref.collapse_shape",
    "memref.expand_shape",
    "memref.transpose",
)

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
    loads do not allocate in L1 and stores are evicted first. An access is lowered where it is 4, 8 or 16 bytes wide and
    its `alignment` says so; any other stays as it is, with a remark. A load goes through the read-only path (`.nc`)
    where the kernel's argument is marked `llvm.noalias` and `llvm.readonly`, which `lower-kernel-abi` does.

    `load-hint` and `store-hint` name the cache hint (`none` leaves those accesses alone).

    ```mlir
    %v = vector.load %x[%i] {alignment = 16 : i64, nontemporal = true} : memref<?xf16>, vector<8xf16>
    // lower-streaming-accesses
    %p = llvm.inttoptr %address : i64 to !llvm.ptr<1>
    %r:4 = nvvm.inline_ptx "ld.global.nc.L1::no_allocate.v4.b32 {$0, $1, $2, $3}, [$4];"
        ro(%p : !llvm.ptr<1>) -> i32, i32, i32, i32
    %w = vector.from_elements %r#0, %r#1, %r#2, %r#3 : vector<4xi32>
    %v = vector.bitcast %w : vector<4xi32> to vector<8xf16>
    ```
    """

    name: ClassVar[str] = "lower-streaming-accesses"

    load_hint: Literal["no-allocate", "evict-first", "cs", "cg", "none"] = "no-allocate"
    store_hint: Literal["no-allocate", "evict-first", "cs", "cg", "none"] = "cs"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        hints = {"vector.load": self.load_hint, "vector.store": self.store_hint}
        for func in kernels(module):
            read_only = _read_only_arguments(func)
            done = 0
            for op in ops_named(func.operation, *hints):
                if hints[op.name] == "none" or not _is_nontemporal(op):
                    continue
                reason = _why_not(op)
                if reason:
                    remarks.declined(self, f"{op.name} stays plain: {reason}", op)
                    continue
                with ir.InsertionPoint(op), op.location:
                    if op.name == "vector.load":
                        _lower_load(op, self.load_hint, _root(op.operands[0]) in read_only)
                    else:
                        _lower_store(op, self.store_hint)
                op.erase()
                done += 1
            if done:
                remarks.applied(self, f"{done} accesses carry cache hints", func)


def _is_nontemporal(op: ir.Operation) -> bool:
    return "nontemporal" in op.attributes and ir.BoolAttr(op.attributes["nontemporal"]).value


def _why_not(op: ir.Operation) -> str | None:
    """Why an access cannot be lowered, or None."""
    base = op.operands[0] if op.name == "vector.load" else op.operands[1]
    space = ir.MemRefType(base.type).memory_space
    if space is not None:
        return f"memory space {space} is not global memory"
    if _fragment(op).rank != 1:
        return f"{_fragment(op)} is not one-dimensional"
    width = _bytes(_fragment(op))
    if width not in WIDTHS:
        return f"{width} bytes is none of {', '.join(map(str, WIDTHS))}"
    aligned = ir.IntegerAttr(op.attributes["alignment"]).value if "alignment" in op.attributes else 0
    return None if aligned >= width else f"its alignment is not known to be {width} bytes"


def _fragment(op: ir.Operation) -> ir.VectorType:
    return ir.VectorType(op.results[0].type if op.name == "vector.load" else op.operands[0].type)


def _bytes(fragment: ir.VectorType) -> int:
    """Size of a fragment in memory; 0 for `i1`, which has no bytes until `lower-kernel-abi` gives it some."""
    dtype = from_mlir(fragment.element_type)
    return 0 if dtype.kind == "bool" else prod(fragment.shape) * dtype.bytes


def _read_only_arguments(func: ir.OpView) -> set[ir.Value]:
    values = list(func.regions[0].blocks[0].arguments)
    marks = ("llvm.noalias", "llvm.readonly")
    return {v for v, p in zip(values, parameters(func), strict=False) if all(mark in p.attributes for mark in marks)}


def _root(value: ir.Value) -> ir.Value:
    """The buffer that a chain of views starts from."""
    while isinstance(value.owner, (ir.Operation, ir.OpView)) and value.owner.name in VIEWS:
        value = value.owner.operands[0]
    return value


def _registers(count: int, first: int) -> str:
    """`count` placeholders of inline PTX, from `$first` on: `$0`, `{$0, $1}`."""
    names = ", ".join(f"${first + i}" for i in range(count))
    return names if count == 1 else f"{{{names}}}"


def _suffix(count: int) -> str:
    return ".b32" if count == 1 else f".v{count}.b32"


def _lower_load(op: ir.Operation, hint: str, read_only: bool) -> None:
    fragment = _fragment(op)
    count = _bytes(fragment) // 4
    cache, priority = _QUALIFIERS[hint]
    pointer = global_pointer(op.operands[0], list(op.operands)[1:])
    path = ".nc" if read_only else ""
    i32 = ir.IntegerType.get_signless(32)
    text = f"ld.global{cache}{path}{priority}{_suffix(count)} {_registers(count, 0)}, [${count}];"
    words = nvvm.InlinePtxOp([i32] * count, [pointer], [], text)
    packed = vector.from_elements(ir.VectorType.get([count], i32), list(words.results))
    value = vector.bitcast(fragment, packed) if fragment != packed.type else packed
    op.results[0].replace_all_uses_with(value)


def _lower_store(op: ir.Operation, hint: str) -> None:
    fragment = _fragment(op)
    count = _bytes(fragment) // 4
    cache, priority = _QUALIFIERS[hint]
    pointer = global_pointer(op.operands[1], list(op.operands)[2:])
    words_type = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    packed = vector.bitcast(words_type, op.operands[0]) if op.operands[0].type != words_type else op.operands[0]
    words = list(vector.ToElementsOp(packed).results)
    text = f"st.global{cache}{priority}{_suffix(count)} [$0], {_registers(count, 1)};"
    nvvm.InlinePtxOp([], [pointer, *words], [], text)
