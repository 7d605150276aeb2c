"""`fuse-spill-to-shared`: keeps part of the tiles that live across a reduction in shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.arithmetic.patterns import WIDENING
from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import STREAMING
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.dialect.spill_to_shared import spill_to_shared
from mlirfuse.passes.layouts.live_ranges import blocks, uses_after_reductions
from mlirfuse.passes.layouts.reduction_points import is_tile, with_unit_dims
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of


@dataclass(frozen=True)
class FuseSpillToShared(Pass):
    """Spills the first `shared_spill` fragments of each tile that lives across a reduction to shared memory.

    Requires tile programs, after `fuse-pack-live-values`. Where the schedule's `shared_spill` is not 0, each tile that
    is made before a reduction and used after it goes through a `fuse.spill_to_shared`, and its uses after the reduction
    through a `fuse.optimization_barrier`, unless they are one already. Values that do not vary along the reduced
    dimensions, such as a row's number or a column's sum, widened tiles (their narrow source is spilled to shared
    memory), and tiles of booleans stay in registers.

    ```mlir
    %x = vector.transfer_read ...
    %s = vector.multi_reduction <add>, %x, %zero [1]
    %d = arith.subf %x, %m
    ```
    becomes
    ```mlir
    %x = vector.transfer_read ...
    %k = "fuse.spill_to_shared"(%x) {fragments = 8 : i64}
    %s = vector.multi_reduction <add>, %k, %zero [1]
    %p = "fuse.optimization_barrier"(%k, %t)
    %d = arith.subf %p, %m
    ```
    """

    name: ClassVar[str] = "fuse-spill-to-shared"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                continue
            fragments = schedule_of(kernel).shared_spill
            if not fragments:
                remarks.declined(self, "the schedule keeps everything in registers", kernel)
                continue
            shared_spill = sum(_spill_to_shared(block, fragments) for block in blocks(kernel))
            remarks.applied(
                self, f"{shared_spill} tile(s), of which {fragments} fragments a thread are in shared memory", kernel
            )


def _is_read_again(op: ir.Operation) -> bool:
    """Whether an op reads data that many blocks read: they are cached, and are read again in place of spilled."""
    return op.name == "vector.transfer_read" and STREAMING not in op.attributes


def _spill_to_shared(block: ir.Block, fragments: int) -> int:
    """Spills the tiles of one block; returns how many."""
    count = 0
    for op in [op.operation for op in block.operations]:
        if op.name in WIDENING or op.name in ("fuse.optimization_barrier", "vector.broadcast") or _is_read_again(op):
            continue
        for value in op.results:
            if not is_tile(value) or str(ir.VectorType(value.type).element_type) == "i1":
                continue
            groups = uses_after_reductions(block, value)
            if not groups:
                continue
            with ir.InsertionPoint.after(op), op.location:
                kept = spill_to_shared(value, fragments)
            value.replace_all_uses_except(kept, kept.owner.operation)
            for group in groups:
                unguarded = [(user, number) for user, number in group.uses if user.name != "fuse.optimization_barrier"]
                if not unguarded:
                    continue
                with ir.InsertionPoint(group.first), op.location:
                    again = optimization_barrier(kept, with_unit_dims(group.reduction))
                for user, number in unguarded:
                    user.operands[number] = again
            count += 1
    return count
