"""`fuse-assign-l2-policies`: which of the lines that a kernel reads the L2 keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.buffers import is_nontemporal, is_only_read, root
from mlirfuse.analysis.kernels import argument_attributes, gpu_kernels, symbol
from mlirfuse.analysis.workspaces import WORKSPACE
from mlirfuse.dialect.shared_memory import is_workgroup
from mlirfuse.distribution.program_order import IN_ORDER
from mlirfuse.dtypes import from_mlir
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import ops_named
from mlirfuse.target import DEFAULT, Target, target_of

EVICT_LAST = "fuse.evict_last"
"""Unit attribute of a `vector.load` of what every block reads."""
EVICT_FIRST_UP_TO = "fuse.evict_first_up_to"
"""On a `gpu.func`: up to how many bytes its `nontemporal` loads are evicted first (i64), of all arrays together."""

ROUND, SHARED, STREAMED = 0.22, 1 / 32, 1 / 2
"""Shares of the L2: what the blocks of a round read at once, what all blocks read, and what is small enough to leave
the L2 to the results. Measured on an H200 (50 MB), by rounds of 10 MB (3 % gained) and 16 MB (6 % lost), and by arrays
of 25 MB (nothing gained) and 33 MB (1 %)."""


@dataclass(frozen=True)
class FuseAssignL2Policies(Pass):
    """Marks loads of what every block reads, to be evicted last, and kernels, whose streams need not be evicted first.

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

    Only for kernels whose blocks load a tile, reduce it and are done: those that walk copy ahead (`fuse-stage-walk`),
    by copies that took longer with any hint. And only where what the blocks of a round load is a small part of the L2.

    Args:
        target: the architecture.
        sms: multiprocessors of the device; 0 for the number that the architecture is best known by.
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
            loads = [op for op in ops_named(kernel, "vector.load") if not is_workgroup(op.operands[0].type)]
            streamed = [load for load in loads if is_nontemporal(load)]
            shared = _shared_loads(kernel, loads)
            if reason := _why_not(kernel, streamed, shared, target):
                remarks.declined(self, reason, kernel)
                continue
            for load in shared:
                load.attributes[EVICT_LAST] = ir.UnitAttr.get()
            limit = int(STREAMED * target.l2_bytes)
            kernel.attributes[EVICT_FIRST_UP_TO] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), limit)
            what = f"{symbol(kernel)} evicts {len(shared)} loads last, and {len(streamed)} first up to {limit >> 20} MB"
            remarks.applied(self, what, kernel)


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
        return f"blocks of {symbol(kernel)} walk"
    in_round = sum(_bytes(load.results[0].type) for load in streamed) * _threads_of_a_round(kernel, target)
    if in_round > ROUND * target.l2_bytes:
        return f"a round reads {in_round >> 20} MB at once, too much for the L2 of {target.l2_bytes >> 20} MB"
    kept = sum(_bytes(array.type) for array in {root(load.operands[0]) for load in shared})
    if kept > SHARED * target.l2_bytes:
        return f"all blocks read {kept >> 20} MB, too much for the L2 of {target.l2_bytes >> 20} MB"
    return None


def _bytes(type_: ir.Type) -> int:
    shaped = ir.ShapedType(type_)
    return prod(shaped.shape) * from_mlir(shaped.element_type).bytes


def _threads_of_a_round(kernel: ir.Operation, target: Target) -> int:
    """Threads that the device runs at a time."""
    threads = prod(ir.DenseI32ArrayAttr(kernel.attributes["known_block_size"]))
    blocks = min(target.blocks_per_sm, target.threads_per_sm // threads)
    if "nvvm.minctasm" in kernel.attributes:
        blocks = ir.IntegerAttr(kernel.attributes["nvvm.minctasm"]).value
    return target.sms * blocks * threads
