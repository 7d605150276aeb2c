"""Emits sums of a contraction's operand: partial sums that the loop along k carries, and their sums behind it.

A tile of m x k elements of the operand lies in the accumulators' layout, k along their columns. The loop carries as
many columns of partial sums as the threads of the layout have side by side, so that each thread adds up elements of its
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, vector

from mlirfuse.analysis.arithmetic.combining import combiner_of, neutral
from mlirfuse.analysis.contractions.contraction import Contraction
from mlirfuse.analysis.contractions.operand_sums import OperandSum
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.dialect.operand_tile import operand_tile
from mlirfuse.tiling.emitter import TileEmitter, vector_kind
from mlirfuse.tiling.subspaces import subspace
from mlirfuse.tiling.tiles import splat, with_unit_dims
from mlirfuse.tiling.transfers import TileTransfers


@dataclass(frozen=True)
class SummedOperand:
    """The sums of operand A that a block makes.

    Attributes:
        space: the kernel's iteration space.
        contraction: the contraction, whose rows are those of the tile.
        sums: the sums.
        tile: extents of the accumulators: batch, m, n.
        step: elements of k in one step.
        columns: columns of partial sums, a divisor of `chunk`.
        chunk: elements of k that are loaded at once, a divisor of `step`.
        offsets: the tile's first index in each dimension of the result.
        buffers: the memref of each tensor argument.
        scalars: the new value of each scalar argument and constant.
    """

    space: IterationSpace
    contraction: Contraction
    sums: tuple[OperandSum, ...]
    tile: Sequence[int]
    step: int
    columns: int
    chunk: int
    offsets: Sequence[ir.Value]
    buffers: dict[ir.Value, ir.Value]
    scalars: dict[ir.Value, ir.Value]

    def initial(self) -> list[ir.Value]:
        """Partial sums of nothing."""
        shape = [*self.tile[:-1], self.columns]
        return [splat(_neutral(each), shape) for each in self.sums]

    def add(self, operand: ir.Value, k: ir.Value, carried: Sequence[ir.Value], *, transposed: bool) -> list[ir.Value]:
        """Adds a step's elements to the partial sums.

        Args:
            operand: the operand's tile in the order of memory.
            k: the step's first index along k.
            carried: the partial sums of the steps before.
            transposed: whether k is the operand's dimension before the last.
        """
        for first in range(0, self.step, self.chunk):
            carried = self._add_chunk(operand, k, first, carried, transposed=transposed)
        return list(carried)

    def _add_chunk(
        self, operand: ir.Value, k: ir.Value, first: int, carried: Sequence[ir.Value], *, transposed: bool
    ) -> list[ir.Value]:
        """Adds a chunk of a step's elements, from `first` on: the chunks before have then left the registers."""
        shape = (*self.tile[:-1], self.chunk)
        dims = (*self.contraction.batch, self.contraction.m, self.contraction.k)
        transfers = TileTransfers(
            subspace(self.space, dims), shape, [*self.offsets[:-1], k], frozenset(), self.buffers, streaming=False
        )
        tile = operand_tile(operand, shape, first, transposed=transposed)
        emitter = TileEmitter(transfers, {**self.scalars, self.sums[0].source: tile})
        for structure in dict.fromkeys(s for each in self.sums for s in each.ops):
            emitter.emit(structure)
        added = []
        for each, partial in zip(self.sums, carried, strict=True):
            elements = emitter.combine_input(each.reduction)
            for start in range(0, self.chunk, self.columns):
                partial = _added(each, partial, self._columns_of(elements, start))
            added.append(partial)
        return added

    def _columns_of(self, elements: ir.Value, start: int) -> ir.Value:
        """As many columns of elements as partial sums have, from `start` on."""
        if self.chunk == self.columns:
            return elements
        shape = [*ir.VectorType(elements.type).shape[:-1], self.columns]
        starts = [*[0] * (len(shape) - 1), start]
        type_ = ir.VectorType.get(shape, elements.type.element_type)
        return vector.ExtractStridedSliceOp(type_, elements, starts, shape, [1] * len(shape)).result

    def results(self, emitter: TileEmitter, carried: Sequence[ir.Value]) -> dict[ir.Value, ir.Value]:
        """The tile of each sum, of one column, from the partial sums of all steps."""
        found = {}
        for each, partial in zip(self.sums, carried, strict=True):
            shape, rank = list(ir.VectorType(partial.type).shape)[:-1], len(self.tile)
            flat = ir.VectorType.get(shape, partial.type.element_type)
            kind = vector_kind(combiner_of(each.reduction).name)
            start = splat(_neutral(each), shape)
            reduced = vector.MultiDimReductionOp(kind, partial, start, [rank - 1], results=[flat]).result
            whole = with_unit_dims(reduced, range(rank - 1), rank)
            found[each.reduction.op.results[0]] = emitter.combined(each.reduction, whole)
        return found


def _neutral(each: OperandSum) -> ir.Value:
    element = ir.RankedTensorType(each.reduction.op.results[0].type).element_type
    return arith.ConstantOp(element, neutral(combiner_of(each.reduction).name, element)).result


def _added(each: OperandSum, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.Operation.create(combiner_of(each.reduction).name, results=[a.type], operands=[a, b]).results[0]
