"""`fuse-assign-l2-policies`: which of the lines that a kernel touches the L2 keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import argument_attributes, gpu_kernels, symbol
from mlirfuse.analysis.memory.buffers import EVICT_FIRST, is_nontemporal, is_only_read, root
from mlirfuse.analysis.memory.workspaces import SCRATCH, WORKSPACE
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.distribution.threads.ordered_accesses import IN_ORDER
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.dtypes import bytes_of
from mlirfuse.support.rewriting import ops_named
from mlirfuse.target import DEFAULT, Target, target_of

EVICT_LAST = "fuse.evict_last"
"""Unit attribute of a `vector.load` of what every block reads, and of a `vector.store` of what another block will."""
EVICT_FIRST_UP_TO = "fuse.evict_first_up_to"
"""On a `gpu.func`: up to how many bytes its `nontemporal` loads, and copies marked `fuse.evict_first`, are evicted
first (i64), of all arrays together."""

WAVE_SHARE, SHARED, STREAMED = 0.22, 1 / 32, 1 / 2
"""Shares of the L2: what the blocks of a wave read at once, what all blocks read, and what is small enough to leave
the L2 to the results. Measured on an H200 (50 MB), by waves of 10 MB (3 % gained) and 16 MB (6 % lost), and by arrays
of 25 MB (nothing gained) and 33 MB (1 %)."""
LOOPED = 2 / 5
"""The share of the L2 that a persistent loop may read and evict first. Measured on an H200 by backward passes of
normalisations that read 17 MB (1 to 5 % gained), 25 and 33 MB (2 % lost to 3 % gained), 50 MB (1 to 2 % lost), 67 MB (0
to 6 %), 134 MB (8 to 13 %) and 540 MB (14 to 16 %)."""
BLOCK_SIZE = "known_block_size"
COPY = "nvgpu.device_async_copy"


@dataclass(frozen=True)
class FuseAssignL2Policies(Pass):
    """Marks what the L2 should keep, to be evicted last, and kernels, whose streams need not be evicted first.

    Requires the gpu stage. Lines that are evicted first make room for each other only, and leave to what was there
    before most of the L2. That is worth much where it is the kernel's own results, which the next kernel reads, and
    nothing where a kernel streams more than the L2 holds: there it reads and writes all the faster, the later its lines
    leave. But then they drive out the weights that every block loads, and those are needed again at once. So these are
    evicted last (`fuse.evict_last`), and the kernel is told from how many bytes on it streams like that
    (`fuse.evict_first_up_to`); it is the arrays that say how many there are. (H200, float16, shares
    of a copy's speed: LayerNorm with fused adds, 8192 rows of 4096 columns 0.96 -> 0.98, 5140 0.94 -> 0.97, 12288
    0.97 -> 0.99; RMSNorm and softmax of 256 MB, up to 16384 columns, 0.97 -> 1.00.)

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

    That is for kernels whose blocks load a tile, reduce it and are done, where what the blocks of a wave load is a
    small part of the L2. In persistent loops (`fuse-stage-persistent-loop`), streams are copies; those that the
    schedule wants it of are evicted first up to fewer bytes (`fuse.evict_first`). What their blocks leave for each
    other in scratch memory is stored to be evicted last (`fuse.evict_last`), and loaded to be evicted first
    (`fuse.evict_first`), as it is of no use from then on: rows drive it out otherwise.
    (H200, bfloat16, PTX with these policies, RMSNorm's and LayerNorm's backward passes of rows of 4096 columns: 1024
    rows 10.4 us -> 10.1 and 12.1 -> 11.8, by the copies' policy; 4096 rows 28.3 -> 27.5 and 30.4 -> 29.0, 8192 rows
    51.0 -> 50.4 and 54.4 -> 52.8, by what is stored. With an addition behind each, or a pass over 12 or 24 MB that the
    L2 could keep, both together took less time too.)

    ```mlir
    %t = nvgpu.device_async_copy %x[%row, %i], %slot[%c0, %i], 8 {bypassL1, fuse.evict_first, nontemporal = true} : ...
    vector.store %sums, %parts[%block, %i] {alignment = 16 : i64, fuse.evict_last} : memref<?x4096xf32>, vector<4xf32>
    %s = vector.load %parts[%b, %j] {alignment = 16 : i64, fuse.evict_first} : memref<?x4096xf32>, vector<4xf32>
    ```

    Args:
        target: the architecture.
        sms: SMs of the device; 0 for the number that the architecture is best known by.
    """

    name: ClassVar[str] = "fuse-assign-l2-policies"

    target: str = DEFAULT
    sms: int = 0

    def __post_init__(self) -> None:
        target_of(self.target)

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        target = target_of(self.target, self.sms)
        for kernel in gpu_kernels(module):
            if EVICT_FIRST_UP_TO in kernel.attributes:
                continue
            if copies := [op for op in ops_named(kernel, COPY) if is_nontemporal(op)]:
                left, taken = _mark_scratch(kernel)
                what = f"{symbol(kernel)} evicts {left} stores last, and {taken} loads first"
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
    """Tells a kernel up to how many bytes its streams are evicted first: a share of the L2."""
    limit = int(share * target.l2_bytes)
    kernel.attributes[EVICT_FIRST_UP_TO] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), limit)
    return limit


def _mark_scratch(kernel: ir.Operation) -> tuple[int, int]:
    """Marks stores of what blocks leave for each other, and loads of it; how many there are of either."""
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
        return f"no block of {symbol(kernel)} loads what no other block does"
    if not ops_named(kernel, "gpu.shuffle", "gpu.barrier"):
        return f"no block of {symbol(kernel)} waits for what its threads reduce"
    if ops_named(kernel, "scf.for", "scf.while"):
        return f"blocks of {symbol(kernel)} run a persistent loop, and copy nothing ahead"
    if BLOCK_SIZE not in kernel.attributes:
        return f"{symbol(kernel)} does not say how many threads its blocks have"
    in_wave = sum(bytes_of(load.results[0].type) for load in streamed) * _threads_of_a_wave(kernel, target)
    if in_wave > WAVE_SHARE * target.l2_bytes:
        return f"a wave reads {in_wave >> 20} MB at once, too much for the L2 of {target.l2_bytes >> 20} MB"
    kept = sum(bytes_of(array.type) for array in {root(load.operands[0]) for load in shared})
    if kept > SHARED * target.l2_bytes:
        return f"all blocks read {kept >> 20} MB, too much for the L2 of {target.l2_bytes >> 20} MB"
    return None


def _threads_of_a_wave(kernel: ir.Operation, target: Target) -> int:
    """Threads that the device runs at a time."""
    threads = prod(ir.DenseI32ArrayAttr(kernel.attributes[BLOCK_SIZE]))
    blocks = min(target.blocks_per_sm, target.threads_per_sm // threads)
    if "nvvm.minctasm" in kernel.attributes:
        blocks = ir.IntegerAttr(kernel.attributes["nvvm.minctasm"]).value
    return target.sms * blocks * threads
