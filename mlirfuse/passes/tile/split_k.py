"""`fuse-split-k`: several blocks share the k-loop of one tile, and combine their partial tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import affine, arith

from mlirfuse.analysis.kernels import body, is_tile_program, kernels
from mlirfuse.dialect.attributes import CLUSTER, COOPERATIVE
from mlirfuse.errors import ScheduleError
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import clone, defining_op, erase, integer_of, nested
from mlirfuse.tiling.contractions.row_slices import RowSlices
from mlirfuse.tiling.program import forall
from mlirfuse.tiling.sync.cluster_tiles import reduce_in_cluster
from mlirfuse.tiling.sync.flagged_exchange import exchange_flagged, flagged_workspace
from mlirfuse.tiling.sync.partial_tiles import (
    partial_tiles,
    reduce_in_last_block,
    reduce_in_last_of_some,
    reduce_serially,
    reduce_slices,
)
from mlirfuse.tiling.sync.semaphores import take_ticket
from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class FuseSplitK(Pass):
    """Gives each tile of a contraction to `split` blocks, a slice of the loop along k each.

    Requires tile programs from `fuse-tile-contraction` whose schedule has a split above 1. A slice is every `split`-th
    step: concurrent blocks then read neighbouring steps, which device memory serves faster than distant streams. The
    slice is the slowest-varying part of a block's number, so that concurrent blocks read the same slice of the
    operands. The schedule's `reduction` says how the partial tiles are combined; all forms add them in the order of
    slices, so that results are the same bits on every run, and leave the semaphores zero:

    - `last_block`: every block stores its partial, and the last block adds them all up.
    - `serial`: the blocks of a tile add to one stored tile in order (serial grid reduction). A block takes its number
      from a ticket, so that it only waits for blocks that are running.
    - `grid_sync`: every block stores its partial, waits for the others of its tile, and adds up some rows of all of
      them. The whole grid must be resident: a cooperative launch.
    - `flagged`: the same by flag-in-data exchange (`fuse.flagged_store`, `fuse.flagged_load`): no semaphores, no
      fences, and one trip through the L2. Sums in f32 only.
    - `cluster`: the blocks of a tile form a cluster, and each adds up some rows of all partials, which it reads
      from the others' shared memory: no semaphores, no workspace, and synchronisation within the cluster only.

    With a `tail` only so many tiles, the last ones, are shared by blocks, whose numbers follow those of blocks with a
    tile of their own: where the tiles of a last wave are few, all SMs have a part of one. The number of tiles must be
    known then.

    The epilogue is run by the block that has the whole sum, or by each block on the rows whose sum it has. Sums of an
    operand, which the loop carries beside the accumulators, are combined with these.

    ```mlir
    scf.forall (%tile) in (%tiles) {
      %acc = scf.for %k = %c0 to %c4096 step %c32 iter_args(%sum = %zero) { ... }
      vector.transfer_write %acc, %y[%m, %n]
    }
    ```
    becomes
    ```mlir
    scf.forall (%block) in (%blocks) {
      %tile = arith.remui %block, %tiles
      %slice = arith.divui %block, %tiles
      %partial = scf.for %k = %first to %last step %c32 iter_args(%sum = %zero) { ... }
      vector.transfer_write %partial, %partials[%row, %c0, %c0]
      %old = "fuse.semaphore_arrive"(%semaphores, %tile, %c3_i32)
      scf.if %is_last {
        %acc = scf.for %s ... { ... vector.transfer_read %partials ... }
        vector.transfer_write %acc, %y[%m, %n]
      }
    }
    ```
    """

    name: ClassVar[str] = "fuse-split-k"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            contraction = schedule_of(kernel).contraction if is_tile_program(kernel) else None
            if contraction is None:
                continue
            if contraction.split == 1:
                remarks.declined(self, "the schedule has no split", kernel)
                continue
            blocks = next(op for op in body(kernel) if op.name == "scf.forall")
            loop = _k_loop(blocks)
            with kernel.location:
                (_split_tail if contraction.tail else _split)(kernel, blocks, loop, contraction)
            of_some = f" in each of the last {contraction.tail} tiles" if contraction.tail else ""
            slices = f"{contraction.split} slices of k{of_some}"
            remarks.applied(self, f"{slices}, combined by {contraction.reduction}", kernel)


def _k_loop(blocks: ir.Operation) -> ir.Operation:
    """The loop along k of a tile; raises `ScheduleError` where there is none to split."""
    for op in blocks.regions[0].blocks[0].operations:
        if op.operation.name == "scf.for" and any(
            inner.operation.name == "vector.contract" for inner in op.operation.regions[0].blocks[0].operations
        ):
            return op.operation
    raise ScheduleError("the schedule splits k, and no loop runs along it", where=blocks)


def _split(kernel: ir.Operation, old: ir.Operation, loop: ir.Operation, schedule: ContractionSchedule) -> None:
    count, operands = _tile_count(old)
    in_cluster, by_flags = (schedule.reduction == reduction for reduction in ("cluster", "flagged"))
    types = [ir.VectorType(result.type) for result in loop.results]
    flagged = [flagged_workspace(kernel, count, operands, each, schedule.split) for each in types if by_flags]
    partials = [] if in_cluster or by_flags else partial_tiles(kernel, count, operands, types, schedule)
    with ir.InsertionPoint(old):
        tiles = affine.AffineApplyOp(ir.AffineMap.get(0, len(operands), [count]), operands).result
        scaled = ir.AffineMap.get(0, len(operands), [count * schedule.split])
        blocks = affine.AffineApplyOp(scaled, operands).result
        new = forall(blocks)
    ops = [op.operation for op in old.regions[0].blocks[0].operations][:-1]
    before, after = ops[: ops.index(loop)], ops[ops.index(loop) + 1 :]
    with ir.InsertionPoint.at_block_terminator(new.body):
        number = new.body.arguments[0]
        if partials and schedule.reduction == "serial":
            ticket = take_ticket(partials[0].semaphores, tiles, blocks)
            number = arith.IndexCastOp(ir.IndexType.get(), ticket).result
        if in_cluster:  # whose blocks follow each other
            size = arith.ConstantOp(ir.IndexType.get(), schedule.split).result
            tile, slice_number = arith.DivUIOp(number, size).result, arith.RemUIOp(number, size).result
        else:
            tile, slice_number = arith.RemUIOp(number, tiles).result, arith.DivUIOp(number, tiles).result
        mapping = {old.regions[0].blocks[0].arguments[0]: tile}
        for op in before:
            clone(op, mapping)
        own = _slice_of(loop, mapping, slice_number, schedule.split)

        def epilogue(sums: Sequence[ir.Value]) -> None:
            mapping.update(zip(loop.results, sums, strict=True))
            for op in after:
                clone(op, mapping)

        early = _apart_from(loop.results[0], after) if len(own) > 1 else []
        late = [op for op in after if op not in early]
        slices: list[RowSlices] = []

        def slice_epilogue(tile_number: int, total: ir.Value, start: ir.Value) -> None:
            if not slices:
                rank = ir.VectorType(total.type).rank
                slices.append(RowSlices(rank - 2, rank, ir.VectorType(total.type).shape[rank - 2], start, mapping))
            mapping[loop.results[tile_number]] = total
            if tile_number < 2:
                slices[0].clone(early if tile_number else late)

        rows = schedule.slice_rows(types[0].shape[-2])
        if by_flags:
            exchange_flagged(flagged, tile, slice_number, schedule.split, own, rows, slice_epilogue)
            kernel.attributes[COOPERATIVE] = ir.UnitAttr.get()
        elif in_cluster:
            reduce_in_cluster(slice_number, schedule.split, own, rows, slice_epilogue)
            kernel.attributes[CLUSTER] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), schedule.split)
        elif schedule.reduction == "grid_sync":
            reduce_slices(partials, tile, slice_number, own, rows, slice_epilogue)
            kernel.attributes[COOPERATIVE] = ir.UnitAttr.get()
        else:
            combine = {"last_block": reduce_in_last_block, "serial": reduce_serially}[schedule.reduction]
            combine(partials, tile, slice_number, own, epilogue)
    erase(old)


def _split_tail(kernel: ir.Operation, old: ir.Operation, loop: ir.Operation, schedule: ContractionSchedule) -> None:
    """Shares the last tiles, and leaves each of the others to a block."""
    count, operands = _tile_count(old)
    (whole,) = ir.AffineMap.get(0, len(operands), [count]).results
    if not isinstance(whole, ir.AffineConstantExpr) or whole.value <= schedule.tail:
        asked = f"the last {schedule.tail} tiles are to be split"
        raise ScheduleError(f"{asked}, and the number of tiles is not known, or no larger", where=old)
    alone = whole.value - schedule.tail
    types = [ir.VectorType(result.type) for result in loop.results]
    partials = partial_tiles(kernel, ir.AffineExpr.get_constant(schedule.tail), [], types, schedule)
    ops = [op.operation for op in old.regions[0].blocks[0].operations][:-1]
    before, after = ops[: ops.index(loop)], ops[ops.index(loop) + 1 :]
    with ir.InsertionPoint(old):
        blocks = count + schedule.tail * (schedule.split - 1)
        new = forall(affine.AffineApplyOp(ir.AffineMap.get(0, len(operands), [blocks]), operands).result)
    with ir.InsertionPoint.at_block_terminator(new.body):
        number = new.body.arguments[0]
        is_shared = arith.CmpIOp(arith.CmpIPredicate.uge, number, index(alone)).result
        behind = arith.SubIOp(number, index(alone)).result
        shared = arith.RemUIOp(behind, index(schedule.tail)).result
        member = arith.DivUIOp(behind, index(schedule.tail)).result
        tile = arith.SelectOp(is_shared, arith.AddIOp(shared, index(alone)).result, number).result
        mapping = {old.regions[0].blocks[0].arguments[0]: tile}
        for op in before:
            clone(op, mapping)
        lower, _, step = (_constant(v) for v in list(loop.operands)[:3])
        first = arith.AddIOp(arith.MulIOp(member, index(step)).result, index(lower)).result
        copy = clone(loop, mapping)
        with ir.InsertionPoint(copy):
            copy.operands[0] = arith.SelectOp(is_shared, first, index(lower)).result
            copy.operands[2] = arith.SelectOp(is_shared, index(step * schedule.split), index(step)).result

        def epilogue(sums: Sequence[ir.Value]) -> None:
            mapping.update(zip(loop.results, sums, strict=True))
            for op in after:
                clone(op, mapping)

        reduce_in_last_of_some(partials, is_shared, shared, member, list(copy.results), epilogue)
    erase(old)


def _apart_from(value: ir.Value, ops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops, in program order, that do not depend on a value."""
    dependent, found = {value}, []
    for op in ops:
        if any(operand in dependent for inner in (op, *nested(op)) for operand in inner.operands):
            dependent.update(op.results)
        else:
            found.append(op)
    return found


def _tile_count(blocks: ir.Operation) -> tuple[ir.AffineExpr, Sequence[ir.Value]]:
    """The number of tiles as an expression over symbols, and the symbols' values."""
    static = list(ir.DenseI64ArrayAttr(blocks.attributes["staticUpperBound"]))
    if static[0] != ir.ShapedType.get_dynamic_size():
        return ir.AffineExpr.get_constant(static[0]), []
    maker = defining_op(blocks.operands[0])
    if maker is None or maker.name != "affine.apply" or maker.attributes["map"].value.n_dims:
        raise ScheduleError("the number of tiles is no affine.apply of extents", where=blocks)
    return maker.attributes["map"].value.results[0], list(maker.operands)


def _slice_of(
    loop: ir.Operation, mapping: dict[ir.Value, ir.Value], slice_number: ir.Value, split: int
) -> list[ir.Value]:
    """The loop over the steps of one slice; returns the partial accumulators, and other partial sums."""
    lower, upper, step = (_constant(v) for v in list(loop.operands)[:3])
    first = affine.AffineApplyOp(
        ir.AffineMap.get(1, 0, [ir.AffineExpr.get_dim(0) * step + lower]), [slice_number]
    ).result
    stride = arith.ConstantOp(ir.IndexType.get(), step * split).result
    bounds = {0: first, 2: stride}
    if (upper - lower) % (step * split) == 0:
        # Slices of equal length are expressed by their end, so that their number of steps folds to a constant.
        bounds[1] = arith.AddIOp(first, arith.ConstantOp(ir.IndexType.get(), upper - lower).result).result
    copy = clone(loop, mapping)
    for number, bound in bounds.items():
        copy.operands[number] = bound
    return list(copy.results)


def _constant(value: ir.Value) -> int:
    number = integer_of(value)
    if number is None:
        raise ScheduleError("the bounds of the loop along k are not constant", where=value)
    return number
