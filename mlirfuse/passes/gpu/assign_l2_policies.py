"""`fuse-assign-l2-policies`: chooses L2 eviction priorities for a kernel's accesses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, block_threads, gpu_kernels, least_resident_blocks, symbol
from mlirfuse.analysis.memory.buffers import is_nontemporal, is_only_read, root
from mlirfuse.analysis.memory.workspaces import SCRATCH
from mlirfuse.dialect.attributes import EVICT_FIRST, EVICT_FIRST_UP_TO, EVICT_LAST, IN_ORDER, WORKSPACE
from mlirfuse.dialect.module_target import target_of_module
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import Target

WAVE_SHARE, SHARED, STREAMED = 0.22, 1 / 32, 1 / 2
"""Largest shares of the L2: of the reads of one wave of blocks, of data that all blocks read, and of inputs that are
small enough to leave the L2 to the results. Measured on an H200."""
LOOPED = 2 / 5
"""Largest share of the L2 up to which a persistent loop's streams are evicted first. Measured on an H200 with backward
passes of normalisations."""
COPY = "nvgpu.device_async_copy"


@dataclass(frozen=True)
class FuseAssignL2Policies(Pass):
    """Marks accesses that the L2 should evict last, and limits which kernels' streams are evicted first.

    Requires the gpu stage. Lines that are evicted first replace one another, and leave the rest of the L2 to other
    data. That helps where the other data are the kernel's results, which the next kernel reads. It does not help a
    kernel that streams more than the L2 holds, which is faster with normal eviction, but then its streams evict the
    weights that every block loads. So loads of weights are marked to be evicted last (`fuse.evict_last`), and
    `fuse.evict_first_up_to` gives the total bytes of the arrays above which streams are evicted normally.

    ```mlir
    gpu.func @k(%x: memref<?x4096xf16>, %w: memref<4096xf16>, ...) kernel attributes {...} {
      %a = vector.load %x[%row, %i] {alignment = 16 : i64, nontemporal = true} : memref<?x4096xf16>, vector<8xf16>
      %b = vector.load %w[%i] {alignment = 16 : i64} : memref<4096xf16>, vector<8xf16>
    ```
    becomes
    ```mlir
    gpu.func @k(...) kernel attributes {fuse.evict_first_up_to = 26214400 : i64, ...} {
      %a = vector.load %x[%row, %i] {alignment = 16 : i64, nontemporal = true} : memref<?x4096xf16>, vector<8xf16>
      %b = vector.load %w[%i] {alignment = 16 : i64, fuse.evict_last} : memref<4096xf16>, vector<8xf16>
    ```

    This applies to kernels whose blocks load one tile each, and where a wave of blocks loads a small part of the L2. In
    persistent loops (`fuse-stage-persistent-loop`) streams are asynchronous copies; those of schedules with `streamed`
    are evicted first up to a smaller limit (`fuse.evict_first`). Partial results in scratch memory are stored to be
    evicted last (`fuse.evict_last`), so that streamed rows do not evict them, and loaded to be evicted first
    (`fuse.evict_first`), as they are not used again.

    ```mlir
    %t = nvgpu.device_async_copy %x[%row, %i], %slot[%c0, %i], 8 {bypassL1, fuse.evict_first, nontemporal = true} : ...
    vector.store %sums, %partials[%block, %i] {fuse.evict_last} : memref<?x4096xf32>, vector<4xf32>
    %s = vector.load %partials[%b, %j] {fuse.evict_first} : memref<?x4096xf32>, vector<4xf32>
    ```
    """

    name: ClassVar[str] = "fuse-assign-l2-policies"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of_module(module)
        for kernel in gpu_kernels(module):
            if EVICT_FIRST_UP_TO in kernel.attributes:
                continue
            if copies := [op for op in ops_named(kernel, COPY) if is_nontemporal(op)]:
                stored, loaded = _mark_scratch(kernel)
                what = f"{symbol(kernel)} evicts {stored} stores last, and {loaded} loads first"
                if first := [op for op in copies if EVICT_FIRST in op.attributes]:
                    limit = _set_limit(kernel, LOOPED, target)
                    what = f"{what}; and {len(first)} copies up to {limit >> 20} MB"
                remarks.applied(self, what, kernel)
                continue
            loads = [op for op in ops_named(kernel, "vector.load") if not is_workgroup(op.operands[0].type)]
            streamed = [load for load in loads if is_nontemporal(load)]
            shared = _shared_loads(kernel, loads)
            if reason := _why_not(kernel, streamed, shared, target):
                remarks.declined(self, reason, kernel)
                continue
            for load in shared:
                load.attributes[EVICT_LAST] = ir.UnitAttr.get()
            limit = _set_limit(kernel, STREAMED, target)
            what = f"{symbol(kernel)} evicts {len(shared)} loads last, and {len(streamed)} first up to {limit >> 20} MB"
            remarks.applied(self, what, kernel)


def _set_limit(kernel: ir.Operation, share: float, target: Target) -> int:
    """Sets the limit up to which a kernel's streams are evicted first, a share of the L2."""
    limit = int(share * target.l2_bytes)
    kernel.attributes[EVICT_FIRST_UP_TO] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), limit)
    return limit


def _mark_scratch(kernel: ir.Operation) -> tuple[int, int]:
    """Marks stores and loads of partial results in scratch memory; returns the number of each."""
    scratch = [
        value
        for value, known in zip(kernel.regions[0].blocks[0].arguments, argument_attributes(kernel), strict=False)
        if WORKSPACE in known and ir.StringAttr(known[WORKSPACE]).value == SCRATCH
    ]
    stores = [op for op in ops_named(kernel, "vector.store") if root(op.operands[1]) in scratch]
    loads = [op for op in ops_named(kernel, "vector.load") if root(op.operands[0]) in scratch]
    for ops, mark in ((stores, EVICT_LAST), (loads, EVICT_FIRST)):
        for op in ops:
            op.attributes[mark] = ir.UnitAttr.get()
    return len(stores), len(loads)


def _shared_loads(kernel: ir.Operation, loads: Iterable[ir.Operation]) -> list[ir.Operation]:
    """Loads of arguments of a known size that are not written and that more than one block reads."""
    block = kernel.regions[0].blocks[0]
    operands = [
        value
        for value, known in zip(block.arguments, argument_attributes(kernel), strict=False)
        if WORKSPACE not in known
        and isinstance(value.type, ir.MemRefType)
        and ir.MemRefType(value.type).has_static_shape
        and is_only_read(value)
    ]
    return [
        load
        for load in loads
        if not is_nontemporal(load) and IN_ORDER not in load.attributes and root(load.operands[0]) in operands
    ]


def _why_not(
    kernel: ir.Operation, streamed: list[ir.Operation], shared: list[ir.Operation], target: Target
) -> str | None:
    if not streamed:
        return f"{symbol(kernel)} has no streaming loads"
    if not ops_named(kernel, "gpu.shuffle", "gpu.barrier"):
        return f"threads of {symbol(kernel)} exchange no data"
    if ops_named(kernel, "scf.for", "scf.while"):
        return f"blocks of {symbol(kernel)} run a persistent loop without asynchronous copies"
    threads = block_threads(kernel)
    if not threads:
        return f"the block size of {symbol(kernel)} is unknown"
    in_wave = sum(bytes_of(load.results[0].type) for load in streamed) * _threads_of_a_wave(kernel, threads, target)
    if in_wave > WAVE_SHARE * target.l2_bytes:
        return f"a wave reads {in_wave >> 20} MB at once, too much for the L2 of {target.l2_bytes >> 20} MB"
    kept = sum(bytes_of(array.type) for array in {root(load.operands[0]) for load in shared})
    if kept > SHARED * target.l2_bytes:
        return f"all blocks read {kept >> 20} MB, too much for the L2 of {target.l2_bytes >> 20} MB"
    return None


def _threads_of_a_wave(kernel: ir.Operation, threads: int, target: Target) -> int:
    """Threads that the device runs at the same time, of blocks of so many."""
    blocks = least_resident_blocks(kernel) or min(target.blocks_per_sm, target.threads_per_sm // threads)
    return target.sms * blocks * threads
