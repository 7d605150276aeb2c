"""Emits the k-loop of a contraction: tiles of the operands, contracted into tiles of accumulators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from mlir import ir
from mlir.dialects import arith, scf, vector

from mlirfuse.analysis.contractions.contraction import Contraction
from mlirfuse.analysis.contractions.contraction_operands import ContractionOperand, operand_of
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.dialect.attributes import INSTRUCTION, PRECISION, UNDEFINED
from mlirfuse.dialect.contraction_family import family_of
from mlirfuse.dialect.operand_tile import DEFINITION as OPERAND_TILE
from mlirfuse.support.precision import IEEE
from mlirfuse.support.rewriting import defining_op
from mlirfuse.target.instructions import FAMILIES
from mlirfuse.tiling.contractions.summed_operand import SummedOperand
from mlirfuse.tiling.emitter import TileEmitter
from mlirfuse.tiling.memory import strides
from mlirfuse.tiling.subspaces import subspace
from mlirfuse.tiling.tiles import broadcast, index, splat, zero
from mlirfuse.tiling.transfers import TileTransfers


def result_space(space: IterationSpace, contraction: Contraction) -> IterationSpace:
    """The iteration space of a contraction's result: the parallel dimensions, in the order batch, m, n."""
    return subspace(space, contraction.parallel)


@dataclass(frozen=True)
class KLoop:
    """Emits the loop along k of one thread block, which contracts tiles of the operands into accumulators.

    Attributes:
        space: the kernel's iteration space.
        contraction: the contraction in it.
        tile: extents of the accumulators: batch, m, n.
        step: elements of k in one step.
        offsets: the tile's first index in each dimension of the result.
        ragged: dimensions of the result in which the tile may reach past the end.
        buffers: the memref of each tensor argument.
        scalars: the new value of each scalar argument and constant.
        instruction: name of the instruction family that multiplies, a key of `target.instructions.FAMILIES`.
        summed: the sums of operand A that the loop makes too; None for none.
    """

    space: IterationSpace
    contraction: Contraction
    tile: Sequence[int]
    step: int
    offsets: Sequence[ir.Value]
    ragged: frozenset[int]
    buffers: dict[ir.Value, ir.Value]
    scalars: dict[ir.Value, ir.Value]
    instruction: str
    summed: SummedOperand | None = None

    def emit(self, initial: Sequence[ir.Value]) -> list[ir.Value]:
        """Emits the loop at the current insertion point; returns each product's accumulators, which start from
        `initial`, and the partial sums of operand A.
        """
        extent = self.space.extents[self.contraction.k]
        assert extent is not None  # contraction_problem refuses others
        counts = [self.space.extents[d] or 1 for d in self.contraction.outer_k]
        padded = -(-extent // self.step) * self.step
        lower, upper, step = (index(n) for n in (0, padded * prod(counts) if counts else extent, self.step))
        carried = [broadcast(start, tuple(self.tile)) for start in initial]
        carried += [] if self.summed is None else self.summed.initial()
        loop = scf.ForOp(lower, upper, step, carried)
        with ir.InsertionPoint(loop.body):
            k: ir.Value = loop.induction_variable
            outer: dict[int, ir.Value] = {}
            if counts:
                rest = arith.DivUIOp(k, index(padded)).result
                k = arith.RemUIOp(k, index(padded)).result
                for dim, count in reversed(list(zip(self.contraction.outer_k, counts, strict=True))):
                    outer[dim] = arith.RemUIOp(rest, index(count)).result
                    rest = arith.DivUIOp(rest, index(count)).result
            operands = {
                n: self._operand(operand_of(self.space, self.contraction, n), k, outer)
                for n in dict.fromkeys(number for pair in self.contraction.pairs for number in pair)
            }
            count, pairs = len(initial), self.contraction.pairs
            accumulators, partial = list(loop.inner_iter_args)[:count], list(loop.inner_iter_args)[count:]
            following = [
                self._contract([operands[a], operands[b]], sums)
                for (a, b), sums in zip(pairs, accumulators, strict=True)
            ]
            if self.summed is not None:
                tile, loops = operands[pairs[0][0]]
                following += self.summed.add(tile, k, partial, transposed=loops[-1] != len(self.tile))
            scf.YieldOp(following)
        return list(loop.results)

    def _operand(
        self, operand: ContractionOperand, k: ir.Value, outer: Mapping[int, ir.Value]
    ) -> tuple[ir.Value, Sequence[int]]:
        """An operand's tile, with dimensions in memory order, and the contraction loop of each dimension.

        `outer` has the index in each further dimension that is summed over, in which the tile has one element.
        """
        memory = ir.MemRefType(self.buffers[operand.source].type)
        varying = [axis for axis, dim in enumerate(operand.axes) if dim is not None and dim not in outer]
        # Batch dimensions have extent 1 in a tile and come first. The axis of stride 1 comes last, so that elements
        # contiguous in memory are contiguous in the tile.
        varying.sort(key=lambda axis: (operand.axes[axis] not in self.contraction.batch, strides(memory)[axis] == 1))
        loops = [self._loop(operand.axes[axis]) for axis in varying]
        summed = {**outer, self.contraction.k: k}
        tile = self._compute(operand, loops, k) if operand.ops else self._read(operand, varying, loops, summed)
        return tile, loops

    def _read(
        self, operand: ContractionOperand, varying: Sequence[int], loops: Sequence[int], summed: Mapping[int, ir.Value]
    ) -> ir.Value:
        """Reads the tile of an operand that is a kernel argument, at an index in each dimension that is summed over;
        out-of-bounds elements are zero.
        """
        buffer = self.buffers[operand.source]
        memory = ir.MemRefType(buffer.type)
        sizes = [*self.tile, self.step]
        start = arith.ConstantOp(ir.IndexType.get(), 0).result
        places = {**dict(zip(self.contraction.parallel, self.offsets, strict=True)), **summed}
        indices = [start if dim is None else places[dim] for dim in operand.axes]
        padding = arith.ConstantOp(memory.element_type, zero(memory.element_type)).result
        axes = [ir.AffineExpr.get_dim(axis) for axis in varying]
        read = vector.TransferReadOp(
            ir.VectorType.get([sizes[loop] for loop in loops], memory.element_type),
            buffer,
            indices,
            ir.AffineMapAttr.get(ir.AffineMap.get(len(operand.axes), 0, axes)),
            padding,
            in_bounds=ir.ArrayAttr.get([ir.BoolAttr.get(not self._overruns(loop)) for loop in loops]),
        )
        # Padding along m and n only reaches accumulators out of bounds, which reductions mask and writes clip.
        apart = [d for d, loop in enumerate(loops) if loop < len(self.tile) and self._overruns(loop)]
        if apart:
            read.operation.attributes[UNDEFINED] = ir.DenseI64ArrayAttr.get(apart)
        return read.result

    def _compute(self, operand: ContractionOperand, loops: Sequence[int], k: ir.Value) -> ir.Value:
        """Emits the ops of a computed operand (a prologue) on its tile, whose rank is the operand's."""
        dims = [[*self.contraction.parallel, self.contraction.k][loop] for loop in loops]
        shape = tuple([*self.tile, self.step][loop] for loop in loops)
        transfers = TileTransfers(
            subspace(self.space, dims),
            shape,
            [[*self.offsets, k][loop] for loop in loops],
            frozenset(position for position, loop in enumerate(loops) if self._overruns(loop)),
            self.buffers,
            streaming=False,
        )
        emitter = TileEmitter(transfers, dict(self.scalars))
        for structure in operand.ops:
            emitter.emit(structure)
        tile = broadcast(emitter.values[operand.value], shape)
        along_k = len(self.tile)
        return self._without_overhang(tile, loops.index(along_k), k) if self._overruns(along_k) else tile

    def _without_overhang(self, tile: ir.Value, dim: int, k: ir.Value) -> ir.Value:
        """Masks a computed tile to zero past the end of k: a prologue of padding may give non-zero values or NaN."""
        tile_type = ir.VectorType(tile.type)
        extent = self.space.extents[self.contraction.k]
        assert extent is not None  # contraction_problem refuses others
        bounds = [index(size) for size in tile_type.shape]
        bounds[dim] = arith.SubIOp(index(extent), k).result
        i1 = ir.IntegerType.get_signless(1)
        mask = vector.CreateMaskOp(ir.VectorType.get(tile_type.shape, i1), bounds).result
        nothing = arith.ConstantOp(tile_type.element_type, zero(tile_type.element_type)).result
        return arith.SelectOp(mask, tile, splat(nothing, tile_type.shape)).result

    def _loop(self, dim: int | None) -> int:
        """The position of a dimension among the contraction's loops: batch, m, n, k."""
        assert dim is not None
        return [*self.contraction.parallel, self.contraction.k].index(dim)

    def _overruns(self, loop: int) -> bool:
        if loop < len(self.tile):
            return loop in self.ragged
        extent = self.space.extents[self.contraction.k]
        return extent is None or extent % self.step != 0

    def _contract(self, operands: Sequence[tuple[ir.Value, Sequence[int]]], accumulators: ir.Value) -> ir.Value:
        count = len(self.tile) + 1
        loops = [*(loops for _, loops in operands), range(count - 1)]
        maps = [ir.AffineMap.get(count, 0, [ir.AffineExpr.get_dim(d) for d in dims]) for dims in loops]
        kinds = [*["parallel"] * (count - 1), "reduction"]
        values = [value for value, _ in operands]
        if values[0].type.element_type != values[1].type.element_type:
            values = [_widened(value) for value in values]
        op = vector.ContractionOp(
            accumulators.type,
            *values,
            accumulators,
            ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
            ir.ArrayAttr.get([ir.Attribute.parse(f"#vector.iterator_type<{kind}>") for kind in kinds]),
        )
        op.operation.attributes[INSTRUCTION] = ir.StringAttr.get(self.instruction)
        if self.contraction.precision != IEEE:
            op.operation.attributes[PRECISION] = ir.StringAttr.get(self.contraction.precision)
        return op.result


def _widened(tile: ir.Value) -> ir.Value:
    """Extends a float8 tile to f16, which represents both float8 types exactly.

    `vector.contract` requires operands of one element type.
    """
    return arith.ExtFOp(ir.VectorType.get(tile.type.shape, ir.F16Type.get()), tile).result


def feeds_contraction(read: ir.Operation) -> bool:
    """Whether a read's tile is only used as an operand of contractions, directly or through `widens_operand` casts."""
    users = [use.owner.operation for result in read.results for use in result.uses]
    return _are_operands(read) or (bool(users) and all(map(widens_operand, users)))


def widens_operand(op: ir.Operation) -> bool:
    """Whether an op extends a float8 tile that is only used by contractions (see `_widened`).

    The cast generates no code: the matrix instructions take mixed float8 operands in their memory format.
    """
    if op.name != "arith.extf" or not isinstance(op.operands[0].type, ir.VectorType):
        return False
    return isinstance(op.operands[0].type.element_type, ir.Float8E4M3FNType | ir.Float8E5M2Type) and _are_operands(op)


def operand_producer(operand: ir.Value) -> ir.Operation | None:
    """The op that produces a contraction's operand, before any float8 widening; None for a block argument."""
    maker = defining_op(operand)
    return defining_op(maker.operands[0]) if maker is not None and widens_operand(maker) else maker


def _are_operands(op: ir.Operation) -> bool:
    """Whether all uses of an op's results are operand A or B of contractions, or sums of these, and there is one use at
    least.
    """
    uses = [(use.owner.operation.name, use.operand_number) for result in op.results for use in result.uses]
    sums = OPERAND_TILE.full_name
    return bool(uses) and all(user == sums or (user == "vector.contract" and number < 2) for user, number in uses)


def use_fallback(contract: ir.Operation) -> str | None:
    """Replaces a contraction's instruction by the family's fallback, such as `wgmma` by `mma`; returns its name.

    Both have the same accumulator layout. None, and nothing changes, where the family has no fallback.
    """
    family = FAMILIES.get(family_of(contract))
    if family is None or family.fallback is None:
        return None
    contract.attributes[INSTRUCTION] = ir.StringAttr.get(family.fallback)
    return family.fallback
