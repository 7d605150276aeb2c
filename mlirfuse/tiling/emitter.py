"""Emits one tile's worth of a kernel's tensor ops as vector ops.

Every tile value has the rank of the iteration space: its extent is the tile's where the value varies, and 1 where it
does not. Values meet by broadcasting as late as possible, so that what is one number a row stays one number a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, scf, vector

from mlirfuse.analysis.iteration_space import IterationSpace
from mlirfuse.analysis.structure import RENAMING_OPS, OpStructure, is_constant
from mlirfuse.dialect.moments import moments
from mlirfuse.errors import PassError
from mlirfuse.passes.rewriting import clone
from mlirfuse.tiling.combining import KINDS, combiner_of

Shape = tuple[int, ...]
Read = tuple[ir.Value, tuple[int | None, ...]]
"""A tensor argument and the dimensions that its axes run along."""

STREAMING = "fuse.streaming"
"""Unit attribute of reads and writes whose data the grid touches once; they need not stay in the caches."""


@dataclass
class TileEmitter:
    """Emits ops of a kernel for one tile, at the current insertion point.

    Attributes:
        space: the kernel's iteration space.
        tile: extent of the tile in each dimension.
        offsets: index of the tile's first element in each dimension.
        ragged: dimensions in which the tile may reach past the end of the data.
        buffers: the memref of each tensor argument of the kernel.
        values: tile vectors (and scalars) of the kernel's values so far.
        stages: shared-memory copies to read from instead of some arguments.
        streaming: whether data of the whole space is touched once by the kernel.
        walked: the dimension along which the tile is a chunk of what a stage holds; None if tiles are whole.
    """

    space: IterationSpace
    tile: Shape
    offsets: Sequence[ir.Value]
    ragged: frozenset[int]
    buffers: dict[ir.Value, ir.Value]
    values: dict[ir.Value, ir.Value] = field(default_factory=dict)
    stages: dict[Read, ir.Value] = field(default_factory=dict)
    walked: int | None = None
    streaming: bool = True
    reads: dict[Read, ir.Value] = field(default_factory=dict)

    def emit(self, structure: OpStructure) -> None:
        """Emits one op and records its results."""
        op = structure.op
        if op.name in RENAMING_OPS:
            self.values[op.results[0]] = self.operand(structure, 0)
        elif op.name == "fuse.moments":
            self._emit_moments(structure)
        elif structure.reduction_loops:
            self._emit_reduction(structure)
        else:
            self._emit_elementwise(structure)

    def operand(self, structure: OpStructure, number: int) -> ir.Value:
        """The tile vector of an operand (a scalar for scalars and constants), read from memory where it must be."""
        value = structure.operands[number]
        if value in self.values:
            return self.values[value]
        if is_constant(value):
            return self.values[value.owner.operation.operands[0]]
        return self.read(value, self.space.use_axes[(structure.op, number)])

    def read(self, value: ir.Value, axes: tuple[int | None, ...]) -> ir.Value:
        """The tile of a tensor argument whose axes run along the given dimensions."""
        key = (value, axes)
        if key not in self.reads:
            stage = None if self._is_replicated else self.stages.get(key)
            self.reads[key] = self._emit_read(self.buffers[value], axes) if stage is None else self._read_stage(stage)
        return self.reads[key]

    def fill_stages(self, stages: dict[Read, ir.Value]) -> None:
        """Copies what has been read of each staged argument to its stage."""
        if self._is_replicated:
            return
        for key, stage in stages.items():
            if key in self.reads:
                identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(self.space.rank))
                bounds = ir.ArrayAttr.get([ir.BoolAttr.get(True)] * self.space.rank)
                vector.TransferWriteOp(None, self.reads[key], stage, self._stage_indices(), identity, in_bounds=bounds)

    @property
    def _is_replicated(self) -> bool:
        """Whether the chunk is one element, which every thread has a copy of: no thread can read back its own then."""
        return self.walked is not None and self.tile[self.walked] == 1

    def combine_input(self, structure: OpStructure) -> ir.Value:
        """For a reduction, the tile of elements that it is about to combine, over all of its loops."""
        combiner = combiner_of(structure)
        element = self._emit_body(structure, combiner.element)
        return self._broadcast(element, self._extents(structure, range(structure.loop_count)))

    def initial(self, structure: OpStructure) -> ir.Value:
        """A reduction's starting value: a scalar, or the tile vector of its init."""
        return self.operand(structure, len(structure.operands) - 1)

    def extents_of(self, axes: Sequence[int | None]) -> Shape:
        """The tile extents of a value that varies along these dimensions."""
        varies = set(axes)
        return tuple(extent if d in varies else 1 for d, extent in enumerate(self.tile))

    def write(self, value: ir.Value, buffer: ir.Value, axes: tuple[int | None, ...]) -> None:
        """Writes a result's tile to memory, clipped at the end of the data, by one of the blocks that have it."""
        tile = self._broadcast(self.values[value], self.extents_of(axes))
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
        self._mark_streaming(op, axes)

    @contextmanager
    def _first_block(self, axes: Sequence[int | None]) -> Iterator[None]:
        """Emits for the first block only along parallel dimensions in which a value does not vary."""
        condition = None
        for d, extent in enumerate(self.space.extents):
            if d in axes or d in self.space.reduced_dims or extent == self.tile[d]:
                continue
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

    def _emit_read(self, buffer: ir.Value, axes: tuple[int | None, ...]) -> ir.Value:
        element = ir.MemRefType(buffer.type).element_type
        padding = arith.ConstantOp(element, zero(element)).result
        exprs = [
            ir.AffineExpr.get_dim(axes.index(d)) if d in axes else ir.AffineExpr.get_constant(0)
            for d in range(self.space.rank)
        ]
        bounds = [ir.BoolAttr.get(not (d in axes and d in self.ragged)) for d in range(self.space.rank)]
        op = vector.TransferReadOp(
            ir.VectorType.get(list(self.extents_of(axes)), element),
            buffer,
            self._indices(axes),
            ir.AffineMapAttr.get(ir.AffineMap.get(len(axes), 0, exprs)),
            padding,
            in_bounds=ir.ArrayAttr.get(bounds),
        )
        self._mark_streaming(op, axes)
        return op.result

    def _mark_streaming(self, op: ir.OpView, axes: Sequence[int | None]) -> None:
        """Data that varies along every dimension is touched by one tile only."""
        if self.streaming and {d for d, extent in enumerate(self.space.extents) if extent != 1} <= set(axes):
            op.operation.attributes[STREAMING] = ir.UnitAttr.get()

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
        """A stage holds the block's rows whole: only the walked dimension moves in it."""
        start = arith.ConstantOp(ir.IndexType.get(), 0).result
        return [self.offsets[d] if d == self.walked else start for d in range(self.space.rank)]

    def _indices(self, axes: Sequence[int | None]) -> list[ir.Value]:
        zero_index = None
        indices = []
        for d in axes:
            if d is None and zero_index is None:
                zero_index = arith.ConstantOp(ir.IndexType.get(), 0).result
            indices.append(zero_index if d is None else self.offsets[d])
        return indices

    def _emit_elementwise(self, structure: OpStructure) -> None:
        terminator = structure.op.regions[0].blocks[0].operations
        yielded = terminator[len(terminator) - 1].operation.operands
        for result, value, axes in zip(structure.op.results, yielded, structure.result_axes, strict=True):
            self.values[result] = self._broadcast(
                self._emit_body(structure, value), self._extents(structure, [a for a in axes if a is not None])
            )

    def _emit_reduction(self, structure: OpStructure) -> None:
        self.values[structure.op.results[0]] = self.reduce(
            structure, self.combine_input(structure), self.initial(structure)
        )

    def reduce(self, structure: OpStructure, elements: ir.Value, initial: ir.Value) -> ir.Value:
        """Reduces a tile over the reduced dimensions of a reduction; the result keeps them with extent 1."""
        op_name = combiner_of(structure).name
        dims = sorted(self.space.reduced[structure.op])
        kept = [d for d in range(self.space.rank) if d not in dims]
        shape = [ir.VectorType(elements.type).shape[d] for d in kept]
        element = ir.VectorType(elements.type).element_type
        if not dims:
            return self._combine(op_name, elements, initial)
        flat: ir.Type = ir.VectorType.get(shape, element) if kept else element
        if isinstance(initial.type, ir.VectorType):
            start = (
                vector.ShapeCastOp(flat, initial).result
                if kept
                else vector.ExtractOp(initial, [], [0] * len(dims)).result
            )
        else:
            start = self._splat(initial, shape) if kept else initial
        reduced = vector.MultiDimReductionOp(vector_kind(op_name), elements, start, dims, results=[flat]).result
        return self._with_unit_dims(reduced, kept)

    def _with_unit_dims(self, value: ir.Value, kept: Sequence[int]) -> ir.Value:
        """Puts the reduced dimensions back with extent 1."""
        rank = self.space.rank
        if not isinstance(value.type, ir.VectorType):
            return vector.BroadcastOp(ir.VectorType.get([1] * rank, value.type), value).result
        source = ir.VectorType(value.type)
        extents = [1] * rank
        for d, extent in zip(kept, source.shape, strict=True):
            extents[d] = extent
        return vector.ShapeCastOp(ir.VectorType.get(extents, source.element_type), value).result

    def _combine(self, op_name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        b = self._broadcast(b, tuple(ir.VectorType(a.type).shape))
        return ir.Operation.create(op_name, results=[a.type], operands=[b, a]).results[0]

    def _emit_moments(self, structure: OpStructure) -> None:
        source = self.operand(structure, 0)
        dims = sorted(self.space.reduced[structure.op])
        kept = [d for d in range(self.space.rank) if d not in dims]
        source = self._broadcast(source, self._extents(structure, range(structure.loop_count)))
        if not dims:  # one element a row: its own mean, from which it does not deviate (but for NaN and infinity)
            self.values[structure.op.results[0]] = source
            self.values[structure.op.results[1]] = arith.SubFOp(source, source).result
            return
        vector_type = ir.VectorType(source.type)
        flat = ir.VectorType.get([vector_type.shape[d] for d in kept] or [1], vector_type.element_type)
        for result, value in zip(structure.op.results, moments(source, dims, flat), strict=True):
            self.values[result] = self._with_unit_dims(value, kept or [0])

    def _extents(self, structure: OpStructure, loops: Sequence[int]) -> Shape:
        dims = self.space.loops[structure.op]
        return self.extents_of([dims[loop] for loop in loops])

    def _emit_body(self, structure: OpStructure, wanted: ir.Value) -> ir.Value:
        """Emits what `wanted`, a value of a `linalg.generic`'s body, needs; returns its tile vector or scalar."""
        block = structure.op.regions[0].blocks[0]
        known: dict[ir.Value, ir.Value] = {}

        def visit(value: ir.Value) -> ir.Value:
            if value in known:
                return known[value]
            if isinstance(value.owner, ir.Block) and value.owner == block:
                known[value] = self.operand(structure, ir.BlockArgument(value).arg_number)
            elif isinstance(value.owner, ir.Block) or value.owner.operation.parent.operation != structure.op:
                known[value] = self._captured(value, structure)
            else:
                op = value.owner.operation
                results = self._emit_scalar_op(op, [visit(operand) for operand in op.operands])
                known.update(zip(op.results, results, strict=True))
            return known[value]

        return visit(wanted)

    def _captured(self, value: ir.Value, structure: OpStructure) -> ir.Value:
        if value not in self.values:
            raise PassError(
                f"the body uses {value.get_name()}, which is neither a constant nor a scalar argument of the kernel",
                where=str(structure.op.location),
            )
        return self.values[value]

    def _emit_scalar_op(self, op: ir.Operation, operands: list[ir.Value]) -> Sequence[ir.Value]:
        """The vector form of a body op: the same op on the smallest tile that all its operands broadcast to."""
        shapes = [tuple(o.type.shape) for o in operands if isinstance(o.type, ir.VectorType)]
        if not shapes:
            return clone(op, dict(zip(op.operands, operands, strict=True))).results
        shape = tuple(max(extents) for extents in zip(*shapes, strict=True))
        results = [ir.VectorType.get(list(shape), r.type) for r in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        wide = [self._broadcast(operand, shape) for operand in operands]
        return ir.Operation.create(
            op.name, results=results, operands=wide, attributes=attributes, loc=op.location
        ).results

    def _broadcast(self, value: ir.Value, shape: Shape) -> ir.Value:
        if isinstance(value.type, ir.VectorType) and tuple(value.type.shape) == shape:
            return value
        if not isinstance(value.type, ir.VectorType):
            return self._splat(value, list(shape))
        return vector.BroadcastOp(ir.VectorType.get(list(shape), value.type.element_type), value).result

    @staticmethod
    def _splat(value: ir.Value, shape: Sequence[int]) -> ir.Value:
        """A vector of one number; a constant stays a constant."""
        vector_type = ir.VectorType.get(list(shape), value.type)
        owner = value.owner
        if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
            attribute = owner.operation.attributes["value"]
            return arith.ConstantOp(vector_type, ir.DenseElementsAttr.get_splat(vector_type, attribute)).result
        return vector.BroadcastOp(vector_type, value).result


def vector_kind(op_name: str) -> ir.Attribute:
    """The vector dialect's combining-kind attribute for a combining op."""
    return ir.Attribute.parse(f"#vector.kind<{KINDS[op_name].name.lower()}>")


def zero(element_type: ir.Type) -> ir.Attribute:
    """Zero of an element type."""
    if isinstance(element_type, ir.IntegerType):
        return ir.IntegerAttr.get(element_type, 0)
    return ir.FloatAttr.get(element_type, 0.0)
