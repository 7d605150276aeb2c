"""`lower-l2-policies`: loads carry the eviction policies that a kernel has been assigned."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, nvvm

from mlirfuse.analysis.buffers import is_nontemporal, root
from mlirfuse.dtypes import from_mlir
from mlirfuse.lowering.addresses import GLOBAL
from mlirfuse.lowering.inline_accesses import inline_load, movable_load, why_not_inline
from mlirfuse.lowering.kernel_func import entry_block, kernels
from mlirfuse.lowering.lower_streaming_accesses import read_only_arguments
from mlirfuse.lowering.sinking import sink
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.passes.fuse_assign_l2_policies import EVICT_FIRST_UP_TO, EVICT_LAST
from mlirfuse.rewriting import defining_op, nested, ops_named


@dataclass(frozen=True)
class LowerL2Policies(Pass):
    """Lowers vector loads of kernels with `fuse.evict_first_up_to` to inline PTX with eviction policies.

    Those marked `fuse.evict_last` are evicted last. Those marked `nontemporal` are evicted first where the arrays that
    they read have no more bytes together than the kernel's attribute says, and like other lines where they have more: a
    block chooses between the two once, from the extents that it is passed. They do not allocate in L1 either way. A
    load is lowered where it is 4, 8 or 16 bytes wide and its `alignment` says so; any other stays as it is, with a
    remark.

    ```mlir
    %a = vector.load %x[%row, %i] {alignment = 4 : i64, nontemporal = true} : memref<?x4096xf16>, vector<2xf16>
    %b = vector.load %w[%i] {alignment = 4 : i64, fuse.evict_last} : memref<4096xf16>, vector<2xf16>
    // lower-l2-policies
    %bytes = arith.muli %n, %c8192 : index
    %many = arith.cmpi ugt, %bytes, %c26214400 : index
    %first = nvvm.inline_ptx "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" -> i64
    %normal = nvvm.inline_ptx "createpolicy.fractional.L2::evict_normal.b64 $0, 1.0;" -> i64
    %streamed = arith.select %many, %normal, %first : i64
    %last = nvvm.inline_ptx "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;" -> i64
    ...
    %r = nvvm.inline_ptx "ld.global.L1::no_allocate.L2::cache_hint.b32 $0, [$1], $2;" ro(%p, %streamed : ...) -> i32
    %s = nvvm.inline_ptx "ld.global.L2::cache_hint.b32 $0, [$1], $2;" ro(%q, %last : ...) -> i32
    ```
    """

    name: ClassVar[str] = "lower-l2-policies"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            if EVICT_FIRST_UP_TO not in func.attributes:
                continue
            limit = ir.IntegerAttr(func.attributes[EVICT_FIRST_UP_TO]).value
            loads = []
            for op in ops_named(func.operation, "vector.load"):
                if not is_nontemporal(op) and EVICT_LAST not in op.attributes:
                    continue
                if reason := why_not_inline(op):
                    remarks.declined(self, f"vector.load gets no policy: {reason}", op)
                    continue
                loads.append(op)
            streamed = [op for op in loads if is_nontemporal(op)]
            shared = [op for op in loads if not is_nontemporal(op)]
            read_only = read_only_arguments(func)
            if streamed:
                arrays = list(dict.fromkeys(_array(op.operands[0]) for op in streamed))
                with _behind(arrays, func), func.location:
                    policy = _streaming_policy(arrays, limit)
                for op in streamed:
                    with ir.InsertionPoint(op), op.location:
                        inline_load(op, f"{_opcode(op, read_only)}.L1::no_allocate", GLOBAL, policy)
            if shared:
                sink(entry_block(func), shared)
                with _before(shared, func), func.location:
                    policy = _policy("evict_last")
                for op in shared:
                    with ir.InsertionPoint(op), op.location:
                        movable_load(op, _opcode(op, read_only), GLOBAL, policy)
            if loads:
                remarks.applied(self, f"{len(loads)} loads carry policies", func)


def _opcode(load: ir.Operation, read_only: set[ir.Value]) -> str:
    return "ld.global.nc" if root(load.operands[0]) in read_only else "ld.global"


def _array(buffer: ir.Value) -> ir.Value:
    """The kernel's argument that a buffer is a part of; what `lower-kernel-abi` has restored from its pointer."""
    first = root(buffer)
    while (view := defining_op(buffer)) is not None and view.operands[0] != first:
        buffer = view.operands[0]
    is_restored = view is not None and view.name == "memref.reinterpret_cast"
    return buffer if is_restored else first


def _behind(values: list[ir.Value], func: ir.OpView) -> ir.InsertionPoint:
    """Where all of some values of a kernel's entry block are there."""
    makers = [defining_op(value) for value in values]
    inside = [op.operation for op in entry_block(func).operations]
    return ir.InsertionPoint(inside[max([inside.index(maker) + 1 for maker in makers if maker is not None], default=0)])


def _before(loads: list[ir.Operation], func: ir.OpView) -> ir.InsertionPoint:
    """In front of the first op of a kernel's entry block that has any of some loads in it.

    That is behind where the kernel waits for the one before it: loads that take what is made here stay behind it, too.
    """
    inside = (op.operation for op in entry_block(func).operations)
    return ir.InsertionPoint(next(op for op in inside if any(each in loads for each in nested(op))))


def _streaming_policy(arrays: list[ir.Value], limit: int) -> ir.Value:
    """The policy of loads of arrays, from their extents."""
    index = ir.IndexType.get()
    total = arith.constant(index, 0)
    for array in arrays:
        type_ = ir.MemRefType(array.type)
        known = [extent for d, extent in enumerate(type_.shape) if not type_.is_dynamic_dim(d)]
        size = arith.constant(index, prod(known) * from_mlir(type_.element_type).bytes)
        for d in range(type_.rank):
            if type_.is_dynamic_dim(d):
                size = arith.muli(size, memref.dim(array, arith.constant(index, d)))
        total = arith.addi(total, size)
    many = arith.cmpi(arith.CmpIPredicate.ugt, total, arith.constant(index, limit))
    return arith.select(many, _policy("evict_normal"), _policy("evict_first"))


def _policy(priority: str) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return nvvm.InlinePtxOp([i64], [], [], f"createpolicy.fractional.L2::{priority}.b64 $0, 1.0;").results[0]
