"""`fuse-flatten-tiles`: accesses contiguous tiles of odd rows as one run of memory each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import memref, vector

from mlirfuse.analysis.kernels import argument_attributes, is_tile_program, kernels
from mlirfuse.dialect.attributes import ALIGN, DIMS, LAYOUT, STREAMING
from mlirfuse.dialect.convert_layout import convert_layout
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.schedule.model.machine import DEFAULT_ALIGNMENT, WIDEST_ACCESS
from mlirfuse.schedule.parts.flat_tiles import FlatTiles, flat_shape
from mlirfuse.schedule.schedule import schedule_of
from mlirfuse.support.dataclass_attributes import to_attribute
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.rewriting import erase, ops_named
from mlirfuse.tiling.reduction.reduction_ops import apply

DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class FuseFlattenTiles(Pass):
    """Reads and writes tiles of contiguous arrays as vectors of their elements in the order of memory.

    Requires tile programs whose schedule has `flat`. Rows that are no whole vectors start at any address, but a tile of
    whole rows is one run of memory. A read of a tile becomes a read of that run, and `fuse.convert_layout` gives it the
    tile's shape, through shared memory; a write converts its tile likewise. Reads of one type are converted together,
    with one barrier. Arrays that do not vary along the whole tile, or are not contiguous, are accessed in the layout of
    the schedule, as are ops with a layout.

    ```mlir
    %0 = vector.transfer_read %x[%n, %c, %c0], %pad : memref<64x512x49xf16>, vector<1x32x49xf16>
    ```
    becomes
    ```mlir
    %run = memref.collapse_shape %x [[0, 1, 2]] : memref<64x512x49xf16> into memref<1605632xf16>
    %first = affine.apply affine_map<(n, c, s) -> (n * 25088 + c * 49 + s)>(%n, %c, %c0)
    %1 = vector.transfer_read %run[%first], %pad {fuse.layout = ..., permutation_map = affine_map<(d0) -> (0, 0, d0)>}
        : memref<1605632xf16>, vector<1x1x1568xf16>
    %0 = "fuse.convert_layout"(%1) : (vector<1x1x1568xf16>) -> vector<1x32x49xf16>
    ```
    """

    name: ClassVar[str] = "fuse-flatten-tiles"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for kernel in kernels(module):
            schedule = schedule_of(kernel) if is_tile_program(kernel) else None
            if schedule is None or schedule.contraction is not None:
                continue
            if schedule.flat is None:
                remarks.declined(self, "tiles are accessed by rows, as scheduled", kernel)
                continue
            flat = _FlatAccesses(kernel, schedule.tile, schedule.flat)
            reads, writes = flat.reads(), flat.writes()
            if reads + writes:
                remarks.applied(self, f"{reads} read(s) and {writes} write(s) of whole runs of memory", kernel)
            else:
                remarks.declined(self, "no contiguous array is accessed in whole tiles", kernel)


@dataclass(frozen=True)
class _FlatAccesses:
    """A kernel's accesses to contiguous tiles."""

    kernel: ir.Operation
    tile: tuple[int, ...]
    flat: FlatTiles

    def reads(self) -> int:
        """Converts all reads of one type in front of the first op that uses one; returns how many."""
        found = [op for op in ops_named(self.kernel, "vector.transfer_read") if self._is_flat(op, op.operands[0])]
        for type_ in dict.fromkeys(op.results[0].type for op in found):
            alike = [op for op in found if op.results[0].type == type_]
            runs = [self._read(op) for op in alike]
            with ir.InsertionPoint.after(runs[-1].owner.operation), alike[-1].location:
                converted = convert_layout(runs, self.tile)
            for op, result in zip(alike, converted.results, strict=True):
                op.results[0].replace_all_uses_with(result)
                erase(op)
        return len(found)

    def writes(self) -> int:
        """Converts all writes; returns how many."""
        found = [op for op in ops_named(self.kernel, "vector.transfer_write") if self._is_flat(op, op.operands[1])]
        for op in found:
            with ir.InsertionPoint(op), op.location:
                converted = convert_layout([op.operands[0]], flat_shape(self.tile))
                converted.attributes[LAYOUT] = to_attribute(self.flat.layout)
                buffer, first = self._run(op.operands[1], list(op.operands)[2:])
                (tile,) = converted.results
                elements = ir.VectorType.get([prod(self.tile)], ir.VectorType(tile.type).element_type)
                new = vector.TransferWriteOp(
                    None,
                    vector.ShapeCastOp(elements, tile).result,
                    buffer,
                    [first],
                    ir.AffineMapAttr.get(ir.AffineMap.get_identity(1)),
                    in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)]),
                )
                new.attributes[DIMS] = ir.DenseI64ArrayAttr.get([len(self.tile) - 1])
                self._mark(op, new.operation)
            erase(op)
        return len(found)

    def _read(self, op: ir.Operation) -> ir.Value:
        buffer, *indices, padding = op.operands
        with ir.InsertionPoint(op), op.location:
            run, first = self._run(buffer, indices)
            type_ = ir.VectorType.get(list(flat_shape(self.tile)), ir.MemRefType(buffer.type).element_type)
            zeros = [ir.AffineExpr.get_constant(0)] * (len(self.tile) - 1)
            along = ir.AffineMapAttr.get(ir.AffineMap.get(1, 0, [*zeros, ir.AffineExpr.get_dim(0)]))
            inside = ir.ArrayAttr.get([ir.BoolAttr.get(True)] * len(self.tile))
            new = vector.TransferReadOp(type_, run, [first], along, padding, in_bounds=inside)
            self._mark(op, new.operation)
        return new.result

    def _run(self, buffer: ir.Value, indices: list[ir.Value]) -> tuple[ir.Value, ir.Value]:
        """A buffer as one run of elements, and the index in it of an element."""
        type_ = ir.MemRefType(buffer.type)
        shape = list(type_.shape)
        steps = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
        terms = [ir.AffineExpr.get_dim(axis) * step for axis, step in enumerate(steps)]
        first = apply(reduce(lambda a, b: a + b, terms), *indices)
        if type_.rank == 1:
            return buffer, first
        flat_type = ir.MemRefType.get([DYNAMIC if DYNAMIC in shape else prod(shape)], type_.element_type)
        return memref.CollapseShapeOp(flat_type, buffer, [list(range(type_.rank))]).result, first

    def _mark(self, op: ir.Operation, new: ir.Operation) -> None:
        new.attributes[LAYOUT] = to_attribute(self.flat.layout)
        if STREAMING in op.attributes:
            new.attributes[STREAMING] = op.attributes[STREAMING]

    def _is_flat(self, op: ir.Operation, buffer: ir.Value) -> bool:
        """Whether an op accesses a whole tile of a contiguous argument, whose elements lie in the tile's order."""
        tile = op.results[0] if op.name == "vector.transfer_read" else op.operands[0]
        if LAYOUT in op.attributes or tuple(ir.VectorType(tile.type).shape) != self.tile:
            return False
        if not all(ir.BoolAttr(each).value for each in ir.ArrayAttr(op.attributes["in_bounds"])):
            return False
        results = ir.AffineMapAttr(op.attributes["permutation_map"]).value.results
        axes = [getattr(expr, "position", None) for expr in results]
        varies = [axis for axis, side in zip(axes, self.tile, strict=True) if side > 1]
        rank = ir.MemRefType(buffer.type).rank
        return varies == list(range(rank - len(varies), rank)) and self._is_aligned(buffer)

    def _is_aligned(self, buffer: ir.Value) -> bool:
        """Whether tiles of a buffer begin at whole vectors: of an argument that is contiguous, and aligned itself."""
        type_, arguments = ir.MemRefType(buffer.type), list(self.kernel.regions[0].blocks[0].arguments)
        shape = list(type_.shape)
        if buffer not in arguments or isinstance(type_.layout, ir.StridedLayoutAttr) or DYNAMIC in shape[1:]:
            return False
        declared = argument_attributes(self.kernel)[arguments.index(buffer)].get(ALIGN)
        aligned = DEFAULT_ALIGNMENT if declared is None else ir.IntegerAttr(declared).value
        width = max(self.flat.layout.vector)
        vector_bytes = min(WIDEST_ACCESS, width * from_mlir(type_.element_type).bytes)
        sides = self.tile[len(self.tile) - len(shape) :]
        steps = [side * prod(shape[axis + 1 :]) for axis, side in enumerate(sides) if side != shape[axis]]
        return aligned >= min(WIDEST_ACCESS, vector_bytes) and all(
            step % max(self.flat.layout.vector) == 0 for step in steps
        )
