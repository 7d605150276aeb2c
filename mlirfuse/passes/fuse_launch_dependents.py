"""`fuse-launch-dependents`: kernels whose blocks end together let the next one start when these only have to store."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import nvvm

from mlirfuse.analysis.global_memory import reads_global_memory, writes_global_memory
from mlirfuse.analysis.kernels import DEPENDENT_LAUNCH, gpu_kernels, symbol
from mlirfuse.dtypes import from_mlir
from mlirfuse.passes.base import Pass, Remarks
from mlirfuse.rewriting import nested, ops_named

WAITS = ("fuse.collect", "fuse.semaphore_wait")
"""Ops behind which other blocks have come to the same point."""

TRIGGER = "nvvm.griddepcontrol"
LOOPS = frozenset({"scf.for", "scf.forall", "scf.parallel", "scf.while"})

LATEST_BYTES = 192
"""What a thread may still have to store, or to empty of mailboxes, when the next kernel starts. Products with up to 160
bytes take 0.92 to 0.99 of the time so, again and again in a replayed graph. 256x256x131072, which has 264, takes 1.00
to 1.05: blocks of the next kernel then begin where this one's end, and not beside those that read the same (H200)."""


@dataclass(frozen=True)
class FuseLaunchDependents(Pass):
    """Lets the next kernel in the stream start where each block has read all that it reads of other blocks.

    Requires the gpu stage, and kernels that wait for their predecessor (`fuse-dependent-launch`): those behind them in
    the stream do the same, whenever they start. A launch takes longest of grids that are launched whole, and the end of
    a block does not count before its last stores have arrived in the L2. Both take their time beside each other with
    `griddepcontrol.launch_dependents` in front of these stores: H200, microseconds a call in replayed graphs without
    and with it, LayerNorm backward 1024x2048 10.4 and 10.1, 1024x4096 11.9 and 11.6, 4096x4096 29.2 and 28.9; products
    128x512x16384 8.5 and 8.1, 256x512x8192 7.3 and 6.9, 256x256x4096 4.4 and 4.1.

    That is for kernels whose blocks wait for each other, and so end together. Where some of them still have work to do
    the next kernel's blocks would start among them, in no order, and lose what neighbours in the grid read together
    (docs/architecture.md, "The order of kernels in a stream"). Blocks that have nothing to read let it start by ending.

    ```mlir
    scf.if %first {
      "fuse.semaphore_wait"(%semaphores, %c0, %blocks) : (memref<1xi32>, index, i32) -> ()
    }
    gpu.barrier
    %part = memref.load %parts[%other, %t] : memref<?x128xf32>
    %total = arith.addf %own, %part : f32
    memref.store %total, %y[%t] : memref<128xf32>
    ```
    becomes
    ```mlir
    ...
    %part = memref.load %parts[%other, %t] : memref<?x128xf32>
    nvvm.griddepcontrol launch_dependents
    %total = arith.addf %own, %part : f32
    memref.store %total, %y[%t] : memref<128xf32>
    ```
    """

    name: ClassVar[str] = "fuse-launch-dependents"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in gpu_kernels(module):
            if _launches(kernel):
                continue
            last = _last_read(kernel)
            if isinstance(last, str):
                remarks.declined(self, last, kernel)
                continue
            with ir.InsertionPoint.after(last), last.location:
                nvvm.griddepcontrol(nvvm.GridDepActionKind.launch_dependents)
            remarks.applied(self, f"{symbol(kernel)} lets the next kernel start behind {last.name}", last)


def _launches(kernel: ir.Operation) -> bool:
    """Whether a kernel has a trigger already."""
    return any("launch_dependents" in str(op.attributes["kind"]) for op in ops_named(kernel, TRIGGER))


def _last_read(kernel: ir.Operation) -> ir.Operation | str:
    """The last op that reads what other blocks have written, behind which there are only stores; or why none is."""
    if DEPENDENT_LAUNCH not in kernel.attributes:
        return "the kernel does not wait for its predecessor"
    if not ops_named(kernel, *WAITS):
        return "its blocks do not wait for each other, and some may have work to do when others end"
    block, has_waited, still_stored = kernel.regions[0].blocks[0], False, 0
    while True:
        ops = [op.operation for op in block.operations]
        at = max(number for number, op in enumerate(ops) if reads_global_memory(op))
        last = ops[at]
        still_stored += sum(map(_stored_bytes, ops[at + 1 :]))
        has_waited |= any(ops_named(op, *WAITS) for op in ops[:at])
        blocks = [inner for region in last.regions for inner in region.blocks]
        reading = [inner for inner in blocks if any(map(reads_global_memory, inner.operations))]
        writing = [inner for inner in blocks if any(map(writes_global_memory, inner.operations))]
        if last.name in LOOPS and writing and ops_named(last, *WAITS):
            return "its blocks wait for each other in a loop"
        if len(writing) > 1:
            return f"two regions of {last.name} store results"
        if writing and writing[0] not in reading:
            return "the blocks that store results have not waited for others"
        # A loop over what others have left ends first. Of an op that some threads read in, the others are ahead.
        inside = writing or ([] if last.name in LOOPS else reading)
        if len(inside) != 1:
            break
        (block,) = inside
    if not has_waited and not any(op.name in WAITS for op in nested(last)):
        return "the blocks that store results have not waited for others"
    still_stored += sum(_emptied_bytes(op) for op in nested(last))
    if still_stored > LATEST_BYTES:
        return f"behind what it reads of others a thread may store {still_stored} bytes, more than {LATEST_BYTES}"
    return last


def _stored_bytes(op: ir.Operation) -> int:
    """What a thread stores in an op, bytes; on all ways through it."""
    stores = [inner for inner in nested(op) if inner.name in ("memref.store", "vector.store")]
    return sum(_bytes(store.operands[0].type) for store in stores if writes_global_memory(store))


def _emptied_bytes(op: ir.Operation) -> int:
    """What a thread takes out of mailboxes, which it leaves empty, bytes."""
    return sum(_bytes(result.type) for result in op.results) if op.name == "fuse.collect" else 0


def _bytes(type_: ir.Type) -> int:
    if isinstance(type_, ir.VectorType):
        return prod(type_.shape) * from_mlir(type_.element_type).bytes
    return from_mlir(type_).bytes
