"""`fuse-stage-persistent-loop`: software-pipelines the loads of a persistent loop through shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, nvvm, scf

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import EVICT_FIRST, STREAMING
from mlirfuse.dialect.copy_fragments import copy_fragments
from mlirfuse.dialect.optimization_barrier import optimization_barrier
from mlirfuse.distribution.memory.copies import can_copy_async
from mlirfuse.passes.layouts.reduction_points import is_tile
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.persistent_loop import PersistentLoop
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import clone, defining_op, erase, nested
from mlirfuse.tiling.slot_ring import PerThreadRing, ReadRing, read_indices
from mlirfuse.tiling.tiles import index, zero


@dataclass(frozen=True)
class FuseStagePersistentLoop(Pass):
    """Gives the streaming reads of a persistent loop a ring of shared memory each, filled by asynchronous copies.

    Requires tile programs whose schedule has a `persistent_loop` of more than one stage, with a loop that reads whole
    tiles marked `fuse.streaming`, of buffers that it does not write, at indices that follow from its variable. A ring
    has `stages` slots; a step starts the copy of the tile `stages - 1` steps ahead into the slot that the previous step
    has read, and waits for its own; where no block has more than `few_tiles`, it only starts the copy of the next tile,
    to the next slot. Every thread copies exactly the elements that it reads back, so that no barrier is needed. Values
    that vary along the looped dimensions only, such as a row's mean, are loaded one step ahead into registers; those of
    the first step, and loop-invariant tiles, have arrived before the loop begins (`fuse.optimization_barrier`). With
    `row_values = "shared"` they are copied with their tile instead, those of 4 and 8 bytes, which `cp.async` moves:
    each thread has a copy of its own (`fuse.own`). With `columns = "shared"`, loop-invariant tiles are copied to shared
    memory too, once, and read from there in each step. With `streamed`, the tiles' copies may leave the L2 first
    (`fuse.evict_first`, see `fuse-assign-l2-policies`).

    ```mlir
    scf.for %t = %block to %tiles step %blocks iter_args(%acc = %zero) {
      %row = affine.apply affine_map<(d0) -> (d0 * 2)>(%t)
      %x = vector.transfer_read %a[%row, %c0], %pad {fuse.streaming} : memref<?x4096xbf16>, vector<2x4096xbf16>
    ```
    becomes
    ```mlir
    %ring = memref.alloc() : memref<3x2x4096xbf16, #gpu.address_space<workgroup>>
    ... copies of the first two tiles, a group each ...
    scf.for %t = %block to %tiles step %blocks iter_args(%acc = %zero, %slot = %c0) {
      scf.if %more { "fuse.copy_fragments"(%a, %ahead, %row_ahead, %c0) {fuse.streaming} ... }
      nvvm.cp.async.commit.group
      nvvm.cp.async.wait.group 2
      %x = vector.transfer_read %own[%c0, %c0], %pad : memref<2x4096xbf16, ...>, vector<2x4096xbf16>
    ```
    """

    name: ClassVar[str] = "fuse-stage-persistent-loop"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.persistent_loop is None:
                continue
            if schedule.persistent_loop.stages == 1:
                remarks.declined(self, "scheduled with one stage", kernel)
                continue
            loops = [loop for op in nested(kernel) if op.name == "scf.for" and (loop := _loop(op)) is not None]
            if not loops:
                reason = "no loop reads whole tiles of buffers it only reads, at indices that follow from its variable"
                remarks.declined(self, reason, kernel)
            for loop in loops:
                with ir.InsertionPoint(loop.op), loop.op.location:
                    kept = _stage(loop, schedule.persistent_loop, schedule.layout)
                remarks.applied(
                    self, f"{len(loop.reads)} read(s) in {schedule.persistent_loop.stages} stages, {kept} kept", kernel
                )


@dataclass(frozen=True)
class _Loop:
    """A persistent loop.

    Attributes:
        op: the loop.
        reads: its reads of whole tiles.
        index_ops: what computes the indices of these from the loop's variable, in order.
        small_reads: reads of values that vary along the looped dimensions only, at the same indices.
    """

    op: ir.Operation
    reads: Sequence[ir.Operation]
    index_ops: Sequence[ir.Operation]
    small_reads: Sequence[ir.Operation]

    @property
    def variable(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]


def _loop(op: ir.Operation) -> _Loop | None:
    """The loop as a persistent loop with reads to stage; None if it has none."""
    ops = [o.operation for o in op.regions[0].blocks[0].operations]
    # What the loop writes may not be read before the step that reads it.
    written = {o.operands[1] for o in nested(op) if o.name == "vector.transfer_write"}
    all_reads = [o for o in ops if o.name == "vector.transfer_read" and o.operands[0] not in written]
    reads = [o for o in all_reads if STREAMING in o.attributes]
    index_ops: dict[ir.Operation, None] = {}
    for read in reads:
        for position in read_indices(read):
            if not _collect(position, op, index_ops):
                return None
    known = {r for o in index_ops for r in o.results} | {op.regions[0].blocks[0].arguments[0]}
    inside = {r for o in ops for r in o.results} - known
    small = [o for o in all_reads if o not in reads and not any(place in inside for place in read_indices(o))]
    return _Loop(op, reads, [o for o in ops if o in index_ops], small) if reads else None


def _collect(place: ir.Value, loop: ir.Operation, found: dict[ir.Operation, None]) -> bool:
    """Gathers the ops in the loop that an index needs; False if it needs more than arithmetic on the variable."""
    block = loop.regions[0].blocks[0]
    maker = defining_op(place)
    if maker is None:
        return place not in list(block.arguments)[1:]
    if maker.parent.operation != loop:
        return True
    if maker.name.split(".")[0] not in ("affine", "arith"):
        return False
    found[maker] = None
    return all(_collect(operand, loop, found) for operand in maker.operands)


def _columns(loop: _Loop) -> list[ir.Operation]:
    """Reads of tiles outside of the loop that are used in it."""
    operands = (operand for op in nested(loop.op) for operand in op.operands)
    makers = dict.fromkeys(maker for operand in operands if (maker := defining_op(operand)) is not None)
    inside = set(nested(loop.op))
    return [op for op in makers if op not in inside and op.name == "vector.transfer_read" and is_tile(op.results[0])]


def _ring(read: ir.Operation, stages: int, layout: BlockedLayout) -> ReadRing:
    """The slots of one read; as large as the layout, so that each thread has a place for padding too."""
    block = [extent // blocks for extent, blocks in zip(layout.extents, layout.blocks, strict=True)]
    return ReadRing(read, stages, block, block[-1])


def _goes_by_async_copy(read: ir.Operation, layout: BlockedLayout) -> bool:
    """Whether `cp.async` can copy single elements of a small read."""
    varies = ir.VectorType(read.results[0].type).shape[layout.vector_dim] > 1
    return not varies and can_copy_async(ir.MemRefType(read.operands[0].type), 1)


def _stage(loop: _Loop, persistent_loop: PersistentLoop, layout: BlockedLayout) -> int:
    """Replaces a persistent loop by one over rings; how many reads that all steps share are kept in shared memory."""
    stages, outside = persistent_loop.stages, _columns(loop)
    columns = outside if persistent_loop.columns == "shared" else []
    if persistent_loop.streamed:
        for read in loop.reads:
            read.attributes[EVICT_FIRST] = ir.UnitAttr.get()
    lower, upper, step, *initial = loop.op.operands
    copied = [r for r in loop.small_reads if persistent_loop.row_values == "shared" and _goes_by_async_copy(r, layout)]
    own = [PerThreadRing(read, stages, layout) for read in copied]
    rings = [*(_ring(read, stages, layout) for read in loop.reads), *own]
    in_slots = {ring.read for ring in rings}
    small_reads = [read for read in loop.small_reads if read not in in_slots]
    kept = [_ring(read, 1, layout) for read in columns]
    for read, ring in zip(columns, kept, strict=True):  # in the first group of copies, which the first step waits for
        copy_fragments(read, ring.slot(index(0)), read_indices(read))
    has_few = _has_few_tiles(persistent_loop, upper, step)
    ahead = lower
    for number in range(stages - 1):
        _copy(loop, rings, index(number), ahead, _either(has_few, index(0), upper) if number else upper)
        ahead = arith.AddIOp(ahead, step).result
    distance = _either(has_few, step, arith.SubIOp(ahead, lower).result)
    small = [_first_small(loop, read, lower, upper) for read in small_reads]
    in_registers = [read.results[0] for read in outside if read not in columns] if loop.small_reads else []
    arrived = {value: _arrived(value) for value in in_registers}
    new = scf.ForOp(lower, upper, step, [*initial, *small, index(0)])
    old = loop.op.regions[0].blocks[0]
    arguments = list(new.inner_iter_args)
    carried, small, slot = arguments[: len(initial)], arguments[len(initial) : -1], arguments[-1]
    mapping = arrived | dict(zip(old.arguments, [new.induction_variable, *carried], strict=True))
    with ir.InsertionPoint(new.body):
        last = index(stages - 1)
        is_first = arith.CmpIOp(arith.CmpIPredicate.eq, slot, index(0)).result
        read_before = arith.SelectOp(is_first, last, arith.SubIOp(slot, index(1)).result).result
        is_last = arith.CmpIOp(arith.CmpIPredicate.eq, slot, last).result
        next_slot = arith.SelectOp(is_last, index(0), arith.AddIOp(slot, index(1)).result).result
        free = _either(has_few, next_slot, read_before)
        _copy(loop, rings, free, arith.AddIOp(new.induction_variable, distance).result, upper)
        following = arith.AddIOp(new.induction_variable, step).result
        # Past the last step, the last tile's once more.
        next_position = arith.MinUIOp(following, arith.SubIOp(upper, index(1)).result).result
        next_small = [_small_read(loop, read, next_position) for read in small_reads]
        _wait(has_few, stages)
        mapping.update((ring.read.results[0], ring.load(slot)) for ring in rings)
        mapping.update((read.results[0], ring.load(index(0))) for read, ring in zip(columns, kept, strict=True))
        mapping.update(zip((read.results[0] for read in small_reads), small, strict=True))
        for op in list(old.operations)[:-1]:
            if op.operation not in loop.reads and op.operation not in loop.small_reads:
                clone(op.operation, mapping)
        yielded = old.operations[len(old.operations) - 1].operation.operands
        scf.YieldOp([*(mapping.get(v, v) for v in yielded), *next_small, next_slot])
    for before, after in zip(loop.op.results, new.results, strict=False):
        before.replace_all_uses_with(after)
    erase(loop.op)
    return len(columns)


def _has_few_tiles(persistent_loop: PersistentLoop, upper: ir.Value, step: ir.Value) -> ir.Value | None:
    """Whether no block has more than `few_tiles`; None where that changes nothing."""
    if not persistent_loop.few_tiles or persistent_loop.stages == 2:
        return None
    most = arith.MulIOp(step, index(persistent_loop.few_tiles)).result
    return arith.CmpIOp(arith.CmpIPredicate.ule, upper, most).result


def _either(has_few: ir.Value | None, few: ir.Value, many: ir.Value) -> ir.Value:
    """Selects between a value for blocks with few tiles and one for blocks with many."""
    return many if has_few is None else arith.SelectOp(has_few, few, many).result


def _wait(has_few: ir.Value | None, stages: int) -> None:
    """Waits for the group of copies of this step's tile; later groups stay in flight."""
    if has_few is None:
        nvvm.CpAsyncWaitGroupOp(stages - 1)
        return
    branch = scf.IfOp(has_few, has_else=True)
    for block, pending in ((branch.then_block, 1), (branch.else_block, stages - 1)):
        with ir.InsertionPoint(block):
            nvvm.CpAsyncWaitGroupOp(pending)
            scf.YieldOp([])


def _first_small(loop: _Loop, read: ir.Operation, lower: ir.Value, upper: ir.Value) -> ir.Value:
    """A small read of the first step; any value where the loop, and perhaps the buffer, is empty."""
    tile = ir.VectorType(read.results[0].type)
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, lower, upper).result, [tile], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        scf.YieldOp([_arrived(_small_read(loop, read, lower))])
    with ir.InsertionPoint(branch.else_block):
        splat = ir.DenseElementsAttr.get_splat(tile, zero(tile.element_type))
        scf.YieldOp([arith.ConstantOp(tile, splat).result])
    return branch.results[0]


def _arrived(value: ir.Value) -> ir.Value:
    """A loaded value that has arrived in its registers.

    If a load could still be in flight when the loop begins, ptxas would wait for it at the first use in each step. A
    warp has few counters for its loads, so every step would also wait for the small reads of the next step.
    """
    return optimization_barrier(value, value)


def _small_read(loop: _Loop, read: ir.Operation, position: ir.Value) -> ir.Value:
    """A small read at another position of the persistent loop."""
    mapping = {loop.variable: position}
    for op in loop.index_ops:
        clone(op, mapping)
    return clone(read, mapping).results[0]


def _copy(loop: _Loop, rings: Sequence[ReadRing], slot: ir.Value, position: ir.Value, upper: ir.Value) -> None:
    """Starts the copies of the tile at a position of the persistent loop as a group, which is empty where there is no
    tile.
    """
    branch = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.ult, position, upper).result)
    with ir.InsertionPoint(branch.then_block):
        mapping = {loop.variable: position}
        for op in loop.index_ops:
            clone(op, mapping)
        for ring in rings:
            read = ring.read
            copy = copy_fragments(read, ring.slot(slot), [mapping.get(v, v) for v in read_indices(read)])
            for name in (STREAMING, EVICT_FIRST):
                if name in read.attributes:
                    copy.attributes[name] = ir.UnitAttr.get()
        scf.YieldOp([])
    nvvm.CpAsyncCommitGroupOp()
