"""`fuse-stage-operands`: stages the operands of a contraction in a ring of shared memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from mlir import ir
from mlir.dialects import arith, gpu, nvvm, scf, vector

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.analysis.memory.shared_memory import is_shared
from mlirfuse.dialect.attributes import LAYOUT
from mlirfuse.dialect.copy_tile import copy_tile
from mlirfuse.dialect.operand_tile import first_of
from mlirfuse.dialect.stage_tile import is_transposed
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.rewriting import clone, defining_op, erase, ops_named
from mlirfuse.tiling.contractions.k_loop import feeds_contraction, use_fallback, widens_operand
from mlirfuse.tiling.contractions.loops import OPERAND_TILE
from mlirfuse.tiling.slot_ring import ReadRing, padded_row, read_indices
from mlirfuse.tiling.tiles import index


@dataclass(frozen=True)
class FuseStageOperands(Pass):
    """Copies the operands' tiles of a k-loop into shared memory, some steps before they are contracted.

    Requires tile programs with a `contraction` in their schedule, whose k-loop reads operands, or the sources of
    computed operands, from device memory at offsets that are loop-invariant or computed from the induction variable.
    Each gets a ring of `stages` slots. A step waits for its own slot, then starts the copy of the step `stages - 1`
    ahead into the slot that the previous step has read; one barrier a step orders both. Loops that are fed by tensor
    maps have no such reads; a contraction by an asynchronous instruction that was not pipelined uses the family's
    fallback instead, such as `mma` for `wgmma`. What is summed up of an operand (`fuse.operand_tile`) is read from the
    same slots.

    ```mlir
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      %a = vector.transfer_read %x[%m, %k], %pad : memref<?x512xbf16>, vector<128x32xbf16>
      %b = vector.transfer_read %w[%n, %k], %pad : memref<384x512xbf16>, vector<128x32xbf16>
      %next = vector.contract ... %a, %b, %sum
    ```
    becomes
    ```mlir
    %ring = memref.alloc() : memref<3x128x40xbf16, #gpu.address_space<workgroup>>
    ... copies of the first steps, a group each ...
    scf.for %k = %c0 to %c512 step %c32 iter_args(%sum = %zero) {
      nvvm.cp.async.wait.group 1
      gpu.barrier
      scf.if %more { "fuse.copy_tile"(%x, %ahead, %m, %next_k) ... }
      nvvm.cp.async.commit.group
      %a = vector.transfer_read %slot[%c0, %c0], %pad : memref<128x32xbf16, ...>, vector<128x32xbf16>
      ...
    ```
    """

    name: ClassVar[str] = "fuse-stage-operands"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is None:
                continue
            contracts = ops_named(kernel, "vector.contract")
            found = [step for op in contracts if (step := _step(op)) is not None]
            if not found:
                remarks.declined(self, "nothing contracts tiles that it reads from device memory", kernel)
            fallbacks = [name for step in found if (name := use_fallback(step.contract)) is not None]
            # Contractions of a step share their reads: `canonicalize` may duplicate a product to fold an addition into
            # it.
            for step in {step.contract.parent.operation: step for step in reversed(found)}.values():
                if any(
                    _may_be_staged(op.operation, step.loop) and _repeats(op) for op in step.contract.block.operations
                ):
                    message = "a tile that is broadcast along a dimension is read in place, without a copy"
                    remarks.declined(self, message, kernel)
                stages = 1 if step.loop is None else schedule.contraction.stages
                with ir.InsertionPoint(step.loop or step.contract), step.contract.location:
                    _stage_once(step) if step.loop is None else _stage(step, step.loop, stages)
                remarks.applied(self, f"{len(step.reads)} operands in {stages} stage(s)", kernel)
                if fallbacks:
                    remarks.applied(self, f"multiplied by {fallbacks[0]}: no tensor map describes the operands", kernel)


@dataclass(frozen=True)
class _Step:
    """A step along k: the contraction, the reads that feed it, the loop over steps, if there are several, and the ops
    that compute indices of the reads from the loop's variable.
    """

    contract: ir.Operation
    reads: Sequence[ir.Operation]
    loop: ir.Operation | None
    addressing: Sequence[ir.Operation] = ()

    @property
    def variable(self) -> ir.Value | None:
        """The loop's variable, k."""
        return None if self.loop is None else self.loop.regions[0].blocks[0].arguments[0]


def _step(contract: ir.Operation) -> _Step | None:
    """The step of a contraction; None where the contraction reads nothing from device memory in its block."""
    parent = contract.parent.operation
    loop = parent if parent.name == "scf.for" else None
    reads = [op.operation for op in contract.block.operations if _is_staged(op.operation, loop)]
    if not reads:
        return None
    if loop is None:
        return _Step(contract, reads, None)
    inside = {r: o.operation for o in loop.regions[0].blocks[0].operations for r in o.operation.results}
    indices = [v for read in reads for v in read_indices(read)]
    addressing = _producers(indices, inside)
    if any(op.name.split(".")[0] not in ("arith", "affine") for op in addressing):
        return None
    return _Step(contract, reads, loop, addressing)


def _producers(values: Sequence[ir.Value], inside: Mapping[ir.Value, ir.Operation]) -> list[ir.Operation]:
    """The ops among `inside` that values are computed from, in program order."""
    found: dict[ir.Operation, None] = {}

    def visit(value: ir.Value) -> None:
        op = inside.get(value)
        if op is not None and op not in found:
            for operand in op.operands:
                visit(operand)
            found[op] = None

    for value in values:
        visit(value)
    return list(found)


def _is_staged(op: ir.Operation, loop: ir.Operation | None) -> bool:
    """Whether a read is staged; tiles that repeat along a dimension are small, and in a cache."""
    return _may_be_staged(op, loop) and not _repeats(op)


def _repeats(read: ir.Operation) -> bool:
    """Whether a tile is the same all along a dimension, which is none of the buffer's: there is no axis to copy."""
    axes = read.attributes["permutation_map"].value.results
    return not all(isinstance(axis, ir.AffineDimExpr) for axis in axes)


def _may_be_staged(op: ir.Operation, loop: ir.Operation | None) -> bool:
    """Whether an op reads an operand from device memory, or in a loop the widest tiles that one is computed from.

    Rows or columns of scales are few, and in a cache.
    """
    if op.name != "vector.transfer_read" or is_shared(op.operands[0]):
        return False
    if feeds_contraction(op):
        return True
    rows, columns = ir.VectorType(op.results[0].type).shape[-2:]
    return loop is not None and LAYOUT in op.attributes and rows > 1 and columns > 1


def _in_accumulators_order(op: ir.Operation, slot: ir.Operation) -> ir.Value:
    """The tile of a `fuse.operand_tile`, read from the slot that `slot` reads the operand's tile from."""
    source, result = ir.VectorType(slot.results[0].type), ir.VectorType(op.results[0].type)
    last = [source.rank - 2, source.rank - 1]
    axes = [ir.AffineExpr.get_dim(d) for d in (reversed(last) if is_transposed(op) else last)]
    lead = [ir.AffineExpr.get_constant(0)] * (result.rank - 2)
    buffer, *indices, padding = slot.operands
    along_k = last[0] if is_transposed(op) else last[1]
    indices[along_k] = index(first_of(op))
    return vector.TransferReadOp(
        result,
        buffer,
        indices,
        ir.AffineMapAttr.get(ir.AffineMap.get(source.rank, 0, [*lead, *axes])),
        padding,
        in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * result.rank),
    ).result


class _Ring(ReadRing):
    """The slots of one operand."""

    def __init__(self, read: ir.Operation, stages: int):
        tile = ir.VectorType(read.results[0].type)
        super().__init__(read, stages, tile.shape, padded_row(tile))

    def fill(self, number: ir.Value, mapping: Mapping[ir.Value, ir.Value] = MappingProxyType({})) -> None:
        """Starts the copy of the tile into a slot, from indices that `mapping` gives for those of the loop."""
        offsets = [mapping.get(v, v) for v in read_indices(self.read)]
        axes = [expr.position for expr in self.read.attributes["permutation_map"].value.results]
        in_bounds = [ir.BoolAttr(b).value for b in self.read.attributes["in_bounds"]]
        clipped = [d for d, inside in enumerate(in_bounds) if not inside]
        copy_tile(self.read.operands[0], self.slot(number), offsets, axes, clipped)

    def load(self, number: ir.Value) -> ir.Value:
        """The tile in a slot, in the layout of the read if it has one."""
        tile = super().load(number)
        if LAYOUT in self.read.attributes:
            tile.owner.operation.attributes[LAYOUT] = self.read.attributes[LAYOUT]
        return tile


def _stage_once(step: _Step) -> None:
    """Stages a single step, which waits for its copies at once."""
    rings = [_Ring(read, 1) for read in step.reads]
    for ring in rings:
        ring.fill(index(0))
    nvvm.CpAsyncCommitGroupOp()
    nvvm.CpAsyncWaitGroupOp(0)
    gpu.BarrierOp()
    for read, ring in zip(step.reads, rings, strict=True):
        tile = ring.load(index(0))
        for use in [use.owner.operation for use in read.results[0].uses]:
            if use.name == OPERAND_TILE:
                use.results[0].replace_all_uses_with(_in_accumulators_order(use, tile.owner.operation))
                erase(use)
        read.results[0].replace_all_uses_with(tile)
        erase(read)
    for maker in map(defining_op, list(step.contract.operands)[:2]):
        if maker is not None and widens_operand(maker):
            maker.move_before(step.contract)


def _stage(found: _Step, loop: ir.Operation, stages: int) -> None:
    """Replaces the loop by one that works on a ring of slots."""
    lower, upper, step, *initial = loop.operands
    rings = [_Ring(read, stages) for read in found.reads]
    for ahead in range(stages - 1):
        _copy_step(found, rings, index(ahead), _advanced(lower, step, ahead), upper)
    new = scf.ForOp(lower, upper, step, initial)
    old = loop.regions[0].blocks[0]
    mapping = dict(zip(old.arguments, [new.induction_variable, *new.inner_iter_args], strict=True))
    with ir.InsertionPoint(new.body):
        k = new.induction_variable
        number = arith.DivUIOp(arith.SubIOp(k, lower).result, step).result
        # All groups but those of the steps in between: the slot of this step is then full.
        nvvm.CpAsyncWaitGroupOp(stages - 2)
        gpu.BarrierOp()
        free = _slot(arith.AddIOp(number, index(stages - 1)).result, stages)
        _copy_step(found, rings, free, _advanced(k, step, stages - 1), upper)
        full = _slot(number, stages)
        staged = dict(zip(found.reads, rings, strict=True))
        for op in list(old.operations)[:-1]:
            if op.operation in staged:
                mapping[op.results[0]] = staged[op.operation].load(full)
            elif op.operation.name == OPERAND_TILE:
                tile = mapping[op.operands[0]].owner.operation
                mapping[op.results[0]] = _in_accumulators_order(op.operation, tile)
            else:
                clone(op.operation, mapping)
        scf.YieldOp([mapping[v] for v in old.operations[len(old.operations) - 1].operands])
    for before, after in zip(loop.results, new.results, strict=True):
        before.replace_all_uses_with(after)
    erase(loop)


def _copy_step(found: _Step, rings: Sequence[_Ring], number: ir.Value, k: ir.Value, upper: ir.Value) -> None:
    """Starts the copies of one step as a group, which is empty where the step lies behind the last one."""
    more = arith.CmpIOp(arith.CmpIPredicate.ult, k, upper).result
    branch = scf.IfOp(more)
    with ir.InsertionPoint(branch.then_block):
        mapping = {} if found.variable is None else {found.variable: k}
        for op in found.addressing:
            clone(op, mapping)
        for ring in rings:
            ring.fill(number, mapping)
        scf.YieldOp([])
    nvvm.CpAsyncCommitGroupOp()


def _advanced(k: ir.Value, step: ir.Value, steps: int) -> ir.Value:
    """`k` some steps later."""
    return arith.AddIOp(k, arith.MulIOp(step, index(steps)).result).result if steps else k


def _slot(step: ir.Value, stages: int) -> ir.Value:
    """The slot that the step of that number uses."""
    return arith.RemUIOp(step, index(stages)).result
