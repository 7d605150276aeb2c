"""`fuse-pack-live-values`: keeps values that live across a reduction or a loop in their narrow type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.analysis.arithmetic.patterns import WIDENING
from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.passes.layouts.live_ranges import blocks, uses_after_reductions
from mlirfuse.passes.layouts.reduction_points import is_tile, with_unit_dims
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import clone, defining_op, nested


@dataclass(frozen=True)
class FusePackLiveValues(Pass):
    """Repeats a widening cast, from the narrow value, after each reduction that its result lives across.

    Requires tile programs scheduled with `order = "depth"`, which saves registers. A tile in single precision that was
    cast from half precision takes twice the registers, and the tile that lives across the reduction limits how many
    rows fit an SM. The cast is cheap: the narrow value goes through an optimization barrier
    (`fuse.optimization_barrier`) and is cast again at the first use after the reduction, not before the reduction's
    result is known. A loop-invariant value is cast in each step for the same reason. Casts of values that do not vary
    along the reduced dimensions are left alone.

    ```mlir
    %w = arith.extf %n : vector<1x4096xf16> to vector<1x4096xf32>
    %s = vector.multi_reduction <add>, %w, %zero [1]
    %d = arith.subf %w, %m
    ```
    becomes
    ```mlir
    %w = arith.extf %n : vector<1x4096xf16> to vector<1x4096xf32>
    %s = vector.multi_reduction <add>, %w, %zero [1]
    %t = vector.shape_cast %s : vector<1xf32> to vector<1x1xf32>
    %p = "fuse.optimization_barrier"(%n, %t)
    %v = arith.extf %p : vector<1x4096xf16> to vector<1x4096xf32>
    %d = arith.subf %v, %m
    ```
    """

    name: ClassVar[str] = "fuse-pack-live-values"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            if not is_tile_program(kernel):
                continue
            if schedule_of(kernel).order != "depth":
                remarks.declined(self, "scheduled with order = 'breadth', which does not save registers", kernel)
                continue
            loops = [op for op in nested(kernel) if op.name == "scf.for"]
            packed = sum(_sink(loop) for loop in loops) + sum(_pack(block) for block in blocks(kernel))
            if packed:
                remarks.applied(self, f"{packed} cast(s) repeated in a loop or after a reduction", kernel)
            else:
                remarks.declined(self, "no widened tile lives across a reduction or around a loop", kernel)


def _sink(loop: ir.Operation) -> int:
    """Repeats in a loop the casts that it uses from outside; returns how many."""
    block = loop.regions[0].blocks[0]
    used: dict[ir.Operation, list[ir.Operation]] = {}
    for op in block.operations:
        for operand in op.operation.operands:
            maker = defining_op(operand)
            outside = maker is not None and maker.parent.operation != loop
            if maker is not None and outside and maker.name in WIDENING and is_tile(operand):
                used.setdefault(maker, []).append(op.operation)
    for cast, users in used.items():
        with ir.InsertionPoint(users[0]), cast.location:
            step = arith.IndexCastOp(ir.IntegerType.get_signless(32), block.arguments[0]).result
            rank = ir.VectorType(cast.operands[0].type).rank
            after = vector.BroadcastOp(ir.VectorType.get([1] * rank, step.type), step).result
            again = clone(cast, {cast.operands[0]: optimization_barrier(cast.operands[0], after)})
        for user in users:
            for number, operand in enumerate(user.operands):
                if operand == cast.results[0]:
                    user.operands[number] = again.results[0]
    return len(used)


def _pack(block: ir.Block) -> int:
    """Packs values that live across reductions of one block; returns the number of repeated casts."""
    repeated = 0
    for op in [op.operation for op in block.operations if op.operation.name in WIDENING]:
        if not is_tile(op.results[0]):
            continue
        for group in uses_after_reductions(block, op.results[0]):
            with ir.InsertionPoint(group.first), op.location:
                after = with_unit_dims(group.reduction)
                again = clone(op, {op.operands[0]: optimization_barrier(op.operands[0], after)})
            for user, number in group.uses:
                user.operands[number] = again.results[0]
            repeated += 1
    return repeated
