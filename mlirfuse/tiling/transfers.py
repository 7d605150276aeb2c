"""Memory transfers of a tile program: reads of arguments, writes of results, and copies in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, scf, vector

from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.dialect.attributes import DIMS, STREAMING
from mlirfuse.dialect.copy_fragments import copy_of_tile
from mlirfuse.dialect.gathered_view import DEFINITION
from mlirfuse.support.rewriting import defining_op
from mlirfuse.tiling.tiles import Shape, broadcast, zero

Read = tuple[ir.Value, tuple[int | None, ...]]
"""A tensor argument and the dimensions that its axes run along."""


@dataclass
class TileTransfers:
    """Reads and writes of one tile, emitted at the current insertion point.

    Attributes:
        space: the kernel's iteration space.
        tile: extent of the tile in each dimension.
        offsets: index of the tile's first element in each dimension.
        ragged: dimensions in which the tile may reach past the end of the data.
        buffers: the memref of each tensor argument of the kernel.
        stages: shared-memory copies of some arguments, which are read instead of the arguments.
        chunked: the dimension along which the tile is a chunk of a stage's data; None if tiles are whole.
        streaming: whether the kernel accesses each element that varies along all dimensions only once.
        divided: the dimensions along which there are several tiles; None for all dimensions that are not reduced, as
            in kernels whose tiles span the reduced dimensions.
        reads: tile vectors read so far.
    """

    space: IterationSpace
    tile: Shape
    offsets: Sequence[ir.Value]
    ragged: frozenset[int]
    buffers: dict[ir.Value, ir.Value]
    stages: dict[Read, ir.Value] = field(default_factory=dict)
    chunked: int | None = None
    streaming: bool = True
    divided: frozenset[int] | None = None
    reads: dict[Read, ir.Value] = field(default_factory=dict)

    def read(self, value: ir.Value, axes: tuple[int | None, ...]) -> ir.Value:
        """The tile of a tensor argument whose axes run along the given dimensions."""
        key = (value, axes)
        if key not in self.reads:
            stage = None if self._is_replicated else self.stages.get(key)
            self.reads[key] = self._emit_read(self.buffers[value], axes) if stage is None else self._read_stage(stage)
        return self.reads[key]

    def copy(self, value: ir.Value, axes: tuple[int | None, ...], slot: ir.Value) -> None:
        """Starts an asynchronous copy of the tile of a tensor argument to shared memory."""
        shape, map_, bounds = self._place(axes)
        op = copy_of_tile(self.buffers[value], slot, self._indices(axes), shape, map_, bounds)
        self._mark_streaming(op, axes)

    def write(self, tile: ir.Value, buffer: ir.Value, axes: tuple[int | None, ...]) -> None:
        """Writes a tile vector or scalar to memory, clipped to bounds, from one of the blocks that hold the value."""
        tile = broadcast(tile, self.extents_of(axes))
        element = ir.VectorType(tile.type).element_type
        kept = sorted(d for d in axes if d is not None)
        if len(kept) != self.space.rank:
            tile = vector.ShapeCastOp(ir.VectorType.get([self.tile[d] for d in kept], element), tile).result
        exprs = [ir.AffineExpr.get_dim(axes.index(d)) for d in kept]
        indices = self._indices(axes)
        with self._first_block(axes):
            op = vector.TransferWriteOp(
                None,
                tile,
                buffer,
                indices,
                ir.AffineMapAttr.get(ir.AffineMap.get(len(axes), 0, exprs)),
                in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(d not in self.ragged) for d in kept]),
            )
        if len(kept) != self.space.rank:
            op.attributes[DIMS] = ir.DenseI64ArrayAttr.get(kept)
        self._mark_streaming(op.operation, axes)

    def fill_stages(self, stages: dict[Read, ir.Value]) -> None:
        """Copies the tile that has been read of each staged argument to the argument's stage."""
        if self._is_replicated:
            return
        for key, stage in stages.items():
            if key in self.reads:
                identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(self.space.rank))
                bounds = ir.ArrayAttr.get([ir.BoolAttr.get(True)] * self.space.rank)
                vector.TransferWriteOp(None, self.reads[key], stage, self._stage_indices(), identity, in_bounds=bounds)

    def extents_of(self, axes: Sequence[int | None]) -> Shape:
        """The tile extents of a value that varies along these dimensions."""
        varies = set(axes)
        return tuple(extent if d in varies else 1 for d, extent in enumerate(self.tile))

    @property
    def _is_replicated(self) -> bool:
        """Whether the chunk is one element, replicated in all threads: then no thread owns the element in the stage."""
        return self.chunked is not None and self.tile[self.chunked] == 1

    def _emit_read(self, buffer: ir.Value, axes: tuple[int | None, ...]) -> ir.Value:
        element = ir.MemRefType(buffer.type).element_type
        padding = arith.ConstantOp(element, zero(element)).result
        shape, map_, bounds = self._place(axes)
        op = vector.TransferReadOp(
            ir.VectorType.get(list(shape), element), buffer, self._indices(axes), map_, padding, in_bounds=bounds
        )
        maker = defining_op(buffer)
        if maker is None or maker.name != DEFINITION.full_name:  # tiles of a gathered view may share elements
            self._mark_streaming(op.operation, axes)
        return op.result

    def _place(self, axes: Sequence[int | None]) -> tuple[Shape, ir.AffineMapAttr, ir.ArrayAttr]:
        """The extents of a tile that varies along some dimensions, where it lies in its buffer, and its bounds."""
        exprs = [
            ir.AffineExpr.get_dim(axes.index(d)) if d in axes else ir.AffineExpr.get_constant(0)
            for d in range(self.space.rank)
        ]
        bounds = [ir.BoolAttr.get(not (d in axes and d in self.ragged)) for d in range(self.space.rank)]
        place = ir.AffineMapAttr.get(ir.AffineMap.get(len(axes), 0, exprs))
        return self.extents_of(axes), place, ir.ArrayAttr.get(bounds)

    def _mark_streaming(self, op: ir.Operation, axes: Sequence[int | None]) -> None:
        """Marks a transfer as streaming if its data vary along every dimension, so that only one tile accesses them."""
        if self.streaming and {d for d, extent in enumerate(self.space.extents) if extent != 1} <= set(axes):
            op.attributes[STREAMING] = ir.UnitAttr.get()

    @property
    def _divided(self) -> frozenset[int]:
        """The dimensions along which there are several tiles."""
        if self.divided is not None:
            return self.divided
        whole = frozenset(d for d, extent in enumerate(self.space.extents) if extent == self.tile[d])
        return frozenset(range(self.space.rank)) - self.space.reduced_dims - whole

    @contextmanager
    def _first_block(self, axes: Sequence[int | None]) -> Iterator[None]:
        """Emits ops that run in the first tile only, along divided dimensions in which the value does not vary."""
        condition = None
        for d in sorted(self._divided - set(axes)):
            start = arith.ConstantOp(ir.IndexType.get(), 0).result
            first = arith.CmpIOp(arith.CmpIPredicate.eq, self.offsets[d], start).result
            condition = first if condition is None else arith.AndIOp(condition, first).result
        if condition is None:
            yield
            return
        branch = scf.IfOp(condition)
        with ir.InsertionPoint(branch.then_block):
            yield
            scf.YieldOp([])

    def _read_stage(self, stage: ir.Value) -> ir.Value:
        element = ir.MemRefType(stage.type).element_type
        return vector.TransferReadOp(
            ir.VectorType.get(list(self.tile), element),
            stage,
            self._stage_indices(),
            ir.AffineMapAttr.get(ir.AffineMap.get_identity(self.space.rank)),
            arith.ConstantOp(element, zero(element)).result,
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(True)] * self.space.rank),
        ).result

    def _stage_indices(self) -> list[ir.Value]:
        """Indices in a stage, which holds the block's whole rows: zero in all but the chunked dimension."""
        start = arith.ConstantOp(ir.IndexType.get(), 0).result
        return [self.offsets[d] if d == self.chunked else start for d in range(self.space.rank)]

    def _indices(self, axes: Sequence[int | None]) -> list[ir.Value]:
        zero_index = None
        indices = []
        for d in axes:
            if d is None and zero_index is None:
                zero_index = arith.ConstantOp(ir.IndexType.get(), 0).result
            indices.append(zero_index if d is None else self.offsets[d])
        return indices
