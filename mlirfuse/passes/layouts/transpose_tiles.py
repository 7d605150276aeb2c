"""`fuse-transpose-tiles`: accesses transposed arrays in a layout of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from mlirfuse.analysis.kernels import is_tile_program, kernels
from mlirfuse.dialect.attributes import LAYOUT
from mlirfuse.dialect.convert_layout import convert_layout
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.transposed_tiles import TransposedTiles
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dataclass_attributes import to_attribute
from mlirfuse.support.rewriting import nested, ops_named
from mlirfuse.tiling.memory import strides

ACCESSES = ("vector.transfer_read", "vector.transfer_write")


@dataclass(frozen=True)
class FuseTransposeTiles(Pass):
    """Gives reads and writes of tiles of arrays that are contiguous along another dimension the transposed layout.

    Requires tile programs whose schedule has `transposed`. A read of a whole tile of an array whose contiguous axis
    runs along the transposed dimension (and its next axes along the dimensions `then`) gets the transposed layout, and
    `fuse.convert_layout` takes the tile to the schedule's, together with all tiles of its type that are read before the
    first use of one; a write converts its tile likewise. So accesses of every array are coalesced, and the
    transposition goes through shared memory. Ops with a layout keep it. For the order of tiles in the grid see
    `fuse-tile-persistent`.

    ```mlir
    %0 = vector.transfer_read %x[%j, %i], %pad {permutation_map = #transposed} : memref<?x512xf32>, vector<32x32xf32>
    %1 = arith.addf %0, %one : vector<32x32xf32>
    ```
    becomes
    ```mlir
    %0 = vector.transfer_read %x[%j, %i], %pad {fuse.layout = {lanes = array<i64: 8, 4>, ...}, ...} : ...
    %t = "fuse.convert_layout"(%0) {fuse.layout = {lanes = array<i64: 4, 8>, ...}} : (...) -> vector<32x32xf32>
    %1 = arith.addf %t, %one : vector<32x32xf32>
    ```
    """

    name: ClassVar[str] = "fuse-transpose-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is not None:
                continue
            if schedule.transposed is None:
                if uncoalesced := sum(_is_uncoalesced(op, schedule.layout) for op in ops_named(kernel, *ACCESSES)):
                    remarks.declined(self, f"{uncoalesced} uncoalesced access(es), as scheduled", kernel)
                continue
            accesses = _TransposedAccesses(schedule.layout, schedule.transposed)
            blocks = [op.regions[0].blocks[0] for op in ops_named(kernel, "scf.forall")]
            reads, writes = (sum(convert(block) for block in blocks) for convert in (accesses.reads, accesses.writes))
            if reads + writes:
                order = ", mirrored tiles side by side" if schedule.transposed.mirrored else ""
                remarks.applied(self, f"{reads} read(s) and {writes} write(s) through shared memory{order}", kernel)
            else:
                remarks.declined(self, "no array is accessed in whole tiles along the transposed dimension", kernel)


@dataclass(frozen=True)
class _TransposedAccesses:
    """The layout of a kernel's tiles, and how its transposed arrays are accessed."""

    layout: BlockedLayout
    transposed: TransposedTiles

    def reads(self, block: ir.Block) -> int:
        """Converts the layouts of reads of a block; returns how many."""
        count = 0
        waiting: list[ir.Operation] = []
        for op in [each.operation for each in block.operations]:
            tiles = [read.results[0] for read in waiting]
            if any(operand in tiles for inner in nested(op) for operand in inner.operands):
                self._convert(waiting, op)
                count, waiting = count + len(waiting), []
            if op.name == "vector.transfer_read" and self._is_transposed(op, op.results[0], op.operands[0]):
                waiting.append(op)
        return count

    def writes(self, block: ir.Block) -> int:
        """Converts the layouts of writes of a block; returns how many."""
        count = 0
        for op in [each.operation for each in block.operations]:
            if op.name == "vector.transfer_write" and self._is_transposed(op, op.operands[0], op.operands[1]):
                with ir.InsertionPoint(op), op.location:
                    converted = convert_layout([op.operands[0]])
                op.operands[0] = converted.results[0]
                for each in (converted, op):
                    each.attributes[LAYOUT] = to_attribute(self.transposed.layout)
                count += 1
        return count

    def _convert(self, reads: Sequence[ir.Operation], user: ir.Operation) -> None:
        """Converts reads to the kernel's layout, in front of the first user, tiles of one type together."""
        for type_ in dict.fromkeys(read.results[0].type for read in reads):
            alike = [read for read in reads if read.results[0].type == type_]
            with ir.InsertionPoint(user), user.location:
                converted = convert_layout([read.results[0] for read in alike])
            converted.attributes[LAYOUT] = to_attribute(self.layout)
            for read, result in zip(alike, converted.results, strict=True):
                read.results[0].replace_all_uses_except(result, converted)
                read.attributes[LAYOUT] = to_attribute(self.transposed.layout)

    def _is_transposed(self, op: ir.Operation, tile: ir.Value, buffer: ir.Value) -> bool:
        """Whether an op accesses a whole tile of a buffer that is contiguous along the transposed dimension."""
        if LAYOUT in op.attributes or tuple(ir.VectorType(tile.type).shape) != self.layout.extents:
            return False
        if not self.transposed.then:
            return _contiguous_dim(op, buffer) == self.transposed.dim
        return self.transposed.takes(_memory_order(op, buffer), self.layout.extents)


def _is_uncoalesced(op: ir.Operation, layout: BlockedLayout) -> bool:
    """Whether an op accesses several elements that are contiguous in memory, but not along the layout's vectors."""
    buffer, tile = (op.operands[0], op.results[0]) if op.results else (op.operands[1], op.operands[0])
    dim, extents = _contiguous_dim(op, buffer), ir.VectorType(tile.type).shape
    return len(extents) == layout.rank and dim not in (None, layout.vector_dim) and extents[dim] > 1


def _contiguous_dim(op: ir.Operation, buffer: ir.Value) -> int | None:
    """The dimension of an access's tile along which its buffer is contiguous."""
    steps = strides(ir.MemRefType(buffer.type))
    axes = [expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in _places(op)]
    return next((dim for dim, axis in enumerate(axes) if axis is not None and steps[axis] == 1), None)


def _memory_order(op: ir.Operation, buffer: ir.Value) -> list[int]:
    """The dimensions of an access's tile in the order of memory, the innermost first; run-time strides are the largest
    ones.
    """
    steps = strides(ir.MemRefType(buffer.type))
    axes = [expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in _places(op)]
    dims = {axis: dim for dim, axis in enumerate(axes) if axis is not None}
    known = sorted((a for a in dims if steps[a] is not None), key=lambda a: (steps[a], -a))
    return [dims[a] for a in (*known, *sorted((a for a in dims if steps[a] is None), reverse=True))]


def _places(op: ir.Operation) -> Sequence[ir.AffineExpr]:
    """The address expression of each dimension of an access's tile."""
    return op.attributes["permutation_map"].value.results
