"""`lower-l2-policies`: accesses carry the eviction policies that a kernel has been assigned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, memref, nvvm

from mlirfuse.analysis.memory.buffers import is_nontemporal, root
from mlirfuse.dialect.attributes import EVICT_FIRST, EVICT_FIRST_UP_TO, EVICT_LAST
from mlirfuse.lowering.kernel_func import entry_block, kernels
from mlirfuse.lowering.memory.addresses import GLOBAL
from mlirfuse.lowering.memory.inline_accesses import inline_load, inline_store, movable_load, why_not_inline
from mlirfuse.lowering.memory.inline_copies import inline_copies, why_not_inline_copy
from mlirfuse.lowering.memory.sinking import sink
from mlirfuse.lowering.memory.streaming_accesses import read_only_arguments
from mlirfuse.passes.gpu.assign_l2_policies import COPY
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import defining_op, ops_named


@dataclass(frozen=True)
class LowerL2Policies(Pass):
    """Lowers accesses that are marked with an eviction priority to inline PTX with eviction policies.

    Vector loads and stores marked `fuse.evict_last` are evicted last, loads marked `fuse.evict_first` first. In kernels
    with `fuse.evict_first_up_to`, loads marked `nontemporal`, and asynchronous copies marked `fuse.evict_first`, are
    evicted first where the arrays that they read have no more bytes in all, and normally where they have more: a block
    chooses once, from the extents that it is passed. Loads that are `nontemporal` do not allocate in L1 either way. A
    load or store is lowered where it is 4, 8 or 16 bytes wide and its `alignment` says so, a copy where source and
    destination have the same size and its token is unused; any other access stays as it is, with a remark.

    ```mlir
    %a = vector.load %x[%row, %i] {alignment = 4 : i64, nontemporal = true} : memref<?x4096xf16>, vector<2xf16>
    %b = vector.load %w[%i] {alignment = 4 : i64, fuse.evict_last} : memref<4096xf16>, vector<2xf16>
    // lower-l2-policies
    %bytes = arith.muli %n, %c8192 : index
    %many = arith.cmpi ugt, %bytes, %c26214400 : index
    %normal = nvvm.inline_ptx "createpolicy.fractional.L2::evict_normal.b64 $0, 1.0;" -> i64
    %first = nvvm.inline_ptx "createpolicy.fractional.L2::evict_first.b64 $0, 1.0;" -> i64
    %streamed = arith.select %many, %normal, %first : i64
    %last = nvvm.inline_ptx "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;" -> i64
    ...
    %r = nvvm.inline_ptx "ld.global.L1::no_allocate.L2::cache_hint.b32 $0, [$1], $2;" ro(%p, %streamed : ...) -> i32
    %s = nvvm.inline_ptx "ld.global.L2::cache_hint.b32 $0, [$1], $2;" ro(%q, %last : ...) -> i32
    ```

    Copies branch instead, to an instruction with the policy or one without (`inline_copies.py` says why).

    ```mlir
    %t = nvgpu.device_async_copy %x[%row, %i], %slot[%c0, %i], 8 {bypassL1, fuse.evict_first, ...} : ...
    // lower-l2-policies
    %place = "fuse.optimization_barrier"(%address, %thread) : (i32, i32) -> i32
    scf.if %many {
      nvvm.inline_ptx "cp.async.cg.shared.global [$0+0], [$1+0], 16;" ro(%place, %p : i32, i64)
    } else {
      nvvm.inline_ptx "cp.async.cg.shared.global.L2::cache_hint [$0+0], [$1+0], 16, $2;" ro(%place, %p, %first : ...)
    }
    ```
    """

    name: ClassVar[str] = "lower-l2-policies"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for func in kernels(module):
            ops = []
            for op in ops_named(func.operation, "vector.load", "vector.store", COPY):
                if not (_is_streamed(op, func) or _is_kept(op)):
                    continue
                if reason := why_not_inline_copy(op.opview) if op.name == COPY else why_not_inline(op):
                    remarks.declined(self, f"{op.name} gets no eviction policy: {reason}", op)
                    continue
                ops.append(op)
            if ops:
                _lower(func, ops)
                remarks.applied(self, f"{len(ops)} accesses carry eviction policies", func)


def _lower(func: ir.OpView, ops: list[ir.Operation]) -> None:
    read_only = read_only_arguments(func)
    streams = [op for op in ops if _is_streamed(op, func)]
    kept = [op for op in ops if op not in streams]
    stored = [op for op in kept if op.name == "vector.store"]
    shared = [op for op in kept if op.name == "vector.load" and EVICT_LAST in op.attributes]
    taken = [op for op in kept if op.name == "vector.load" and EVICT_LAST not in op.attributes]
    if streams:
        _lower_streams(func, streams, read_only)
    if shared:
        sink(entry_block(func), shared)
    _lower_kept(func, shared, "evict_last", lambda op, policy: movable_load(op, _opcode(op, read_only), GLOBAL, policy))
    _lower_kept(func, stored, "evict_last", lambda op, policy: inline_store(op, "st.global", GLOBAL, policy))
    _lower_kept(func, taken, "evict_first", lambda op, policy: inline_load(op, "ld.global", GLOBAL, policy))


def _is_streamed(op: ir.Operation, func: ir.OpView) -> bool:
    """Whether an op reads data that may leave the L2 first, in a kernel with `fuse.evict_first_up_to`."""
    if EVICT_FIRST_UP_TO not in func.attributes:
        return False
    return (op.name == "vector.load" and is_nontemporal(op)) or (op.name == COPY and EVICT_FIRST in op.attributes)


def _is_kept(op: ir.Operation) -> bool:
    """Whether an op loads or stores data that is to stay in the L2, or a last use of such data."""
    return op.name != COPY and (EVICT_LAST in op.attributes or EVICT_FIRST in op.attributes)


def _lower_streams(func: ir.OpView, ops: list[ir.Operation], read_only: set[ir.Value]) -> None:
    """Lowers loads and copies of data that is read once: evicted first up to the kernel's number of bytes."""
    arrays = list(dict.fromkeys(_array(op.opview.src if op.name == COPY else op.operands[0]) for op in ops))
    limit = ir.IntegerAttr(func.attributes[EVICT_FIRST_UP_TO]).value
    copies = [op for op in ops if op.name == COPY]
    loads = [op for op in ops if op.name != COPY]
    with _after(arrays, func), func.location:
        many = arith.cmpi(arith.CmpIPredicate.ugt, _bytes(arrays), arith.constant(ir.IndexType.get(), limit))
        normal = _policy("evict_normal") if loads else None
        first = _policy("evict_first")
        streaming = arith.select(many, normal, first) if loads else None
    for op in loads:
        with ir.InsertionPoint(op), op.location:
            inline_load(op, f"{_opcode(op, read_only)}.L1::no_allocate", GLOBAL, streaming)
    inline_copies(copies, first, many)


def _lower_kept(
    func: ir.OpView, ops: list[ir.Operation], priority: str, lower: Callable[[ir.Operation, ir.Value], None]
) -> None:
    """Lowers accesses that `_is_kept`, with a policy that is made before the first of them."""
    if not ops:
        return
    with _before_first(ops, func), func.location:
        policy = _policy(priority)
    for op in ops:
        with ir.InsertionPoint(op), op.location:
            lower(op, policy)


def _opcode(load: ir.Operation, read_only: set[ir.Value]) -> str:
    return "ld.global.nc" if root(load.operands[0]) in read_only else "ld.global"


def _array(buffer: ir.Value) -> ir.Value:
    """The kernel argument that a buffer is a part of: the memref that `lower-kernel-abi` restored from its pointer."""
    first = root(buffer)
    while (view := defining_op(buffer)) is not None and view.operands[0] != first:
        buffer = view.operands[0]
    is_restored = view is not None and view.name == "memref.reinterpret_cast"
    return buffer if is_restored else first


def _after(values: list[ir.Value], func: ir.OpView) -> ir.InsertionPoint:
    """The insertion point after the definitions of values in a kernel's entry block."""
    makers = [defining_op(value) for value in values]
    inside = [op.operation for op in entry_block(func).operations]
    return ir.InsertionPoint(
        inside[max([inside.index(producer) + 1 for producer in makers if producer is not None], default=0)]
    )


def _before_first(loads: list[ir.Operation], func: ir.OpView) -> ir.InsertionPoint:
    """The insertion point before the first op of a kernel's entry block that is, or contains, one of the loads.

    The point is after the kernel's wait for its predecessor, so that loads with the policy stay after the wait.
    """
    around = {_outermost(load, func) for load in loads}
    return ir.InsertionPoint(next(op for op in entry_block(func).operations if op.operation in around))


def _outermost(op: ir.Operation, func: ir.OpView) -> ir.Operation:
    """The op of a kernel's entry block that is, or contains, an op."""
    while op.parent.operation != func.operation:
        op = op.parent.operation
    return op


def _bytes(arrays: list[ir.Value]) -> ir.Value:
    """The sum of the arrays' sizes in bytes, from their extents."""
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
    return total


def _policy(priority: str) -> ir.Value:
    i64 = ir.IntegerType.get_signless(64)
    return nvvm.InlinePtxOp([i64], [], [], f"createpolicy.fractional.L2::{priority}.b64 $0, 1.0;").results[0]
