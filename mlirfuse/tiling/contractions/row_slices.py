"""Clones ops on tiles for a slice of the tiles' rows."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from mlir import ir
from mlir.dialects import arith, scf

from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import clone, defining_op, erase


@dataclass
class RowSlices:
    """Clones ops so that the clones work on a slice of rows.

    Attributes:
        dim: the dimension of rows in a tile of full rank.
        rank: the full rank.
        rows: number of rows in a slice.
        start: the slice's first row in the tile, an index.
        mapping: clones of the original values.
        positions: the dimension of rows in vectors where it is not `dim`; None if no dimension runs along rows.
    """

    dim: int
    rank: int
    rows: int
    start: ir.Value
    mapping: dict[ir.Value, ir.Value] = field(default_factory=dict)
    positions: dict[ir.Value, int | None] = field(default_factory=dict)

    def clone(self, ops: Iterable[ir.Operation]) -> None:
        """Clones ops at the current insertion point; raises `PassError` for an op that cannot be sliced."""
        for op in ops:
            if op.name in ("vector.transfer_read", "vector.transfer_write"):
                self._transfer(op)
            elif op.regions or not any(isinstance(v.type, ir.VectorType) for v in [*op.operands, *op.results]):
                self._plain(op)
            elif op.name == "arith.constant":
                self._constant(op)
            elif op.name == "vector.shape_cast":
                self._shape_cast(op)
            elif op.name == "vector.multi_reduction":
                self._reduction(op)
            elif op.name == "vector.broadcast" or op.name.split(".")[0] in ("arith", "math"):
                self._create(op, [self._sliced(r.type, self.dim) for r in op.results])
            else:
                raise _not_sliceable(op)

    def _position(self, value: ir.Value) -> int | None:
        """The dimension of a vector that runs along rows; None if none does."""
        return self.positions.get(value, self.dim)

    def _sliced(self, vector_type: ir.Type, position: int | None) -> ir.Type:
        if not isinstance(vector_type, ir.VectorType) or position is None:
            return vector_type
        shape = list(vector_type.shape)
        if shape[position] != 1:
            shape[position] = self.rows
        return ir.VectorType.get(shape, vector_type.element_type)

    def _plain(self, op: ir.Operation) -> None:
        if op.regions and any(isinstance(v.type, ir.VectorType) for v in op.results):
            raise _not_sliceable(op)
        if not op.regions:
            clone(op, self.mapping)
            return
        # A branch that contains writes: the ops in its regions are sliced as well.
        copy = op.clone(ir.InsertionPoint.current)
        for number, operand in enumerate(op.operands):
            copy.operands[number] = self.mapping.get(operand, operand)
        for old, new in zip(op.regions, copy.regions, strict=True):
            for block in new.blocks:
                *inner, end = (each.operation for each in block.operations)
                for each in reversed(inner):
                    erase(each)
                with ir.InsertionPoint(end):
                    self.clone([each.operation for each in old.blocks[0].operations][:-1])

    def _create(self, op: ir.Operation, results: list[ir.Type]) -> None:
        operands = [self.mapping.get(v, v) for v in op.operands]
        attributes = {name: op.attributes[name] for name in op.attributes}
        new = ir.Operation.create(op.name, results=results, operands=operands, attributes=attributes, loc=op.location)
        self.mapping.update(zip(op.results, new.results, strict=True))

    def _constant(self, op: ir.Operation) -> None:
        dense = ir.DenseElementsAttr(op.attributes["value"])
        sliced = self._sliced(op.results[0].type, self.dim)
        splat = ir.DenseElementsAttr.get_splat(sliced, dense.get_splat_value())
        self.mapping[op.results[0]] = arith.ConstantOp(sliced, splat).result

    def _shape_cast(self, op: ir.Operation) -> None:
        """Clones a cast that adds or drops dimensions of extent 1; the order of the other dimensions is unchanged."""
        source, result = (list(ir.VectorType(v.type).shape) for v in (op.operands[0], op.results[0]))
        position = self._position(op.operands[0])
        if position is not None and source[position] != 1:
            before = sum(extent != 1 for extent in source[:position])
            position = [d for d, extent in enumerate(result) if extent != 1][before]
        else:
            position = None if len(result) != self.rank else self.dim
        self.positions[op.results[0]] = position
        self._create(op, [self._sliced(op.results[0].type, position)])

    def _reduction(self, op: ir.Operation) -> None:
        """Clones a reduction over dimensions behind that of rows, or along which there is one element."""
        shape = ir.VectorType(op.operands[0].type).shape
        reduced = ir.DenseI64ArrayAttr(op.attributes["reduction_dims"])
        if any(d <= self.dim and shape[d] != 1 for d in reduced):
            raise _not_sliceable(op)
        position = self.dim - sum(d < self.dim for d in reduced)
        start = defining_op(op.operands[1])
        if start is not None and start.name == "arith.constant" and op.operands[1] not in self.mapping:
            self._constant(start)  # of the whole block
        self.positions[op.results[0]] = position
        self._create(op, [self._sliced(op.results[0].type, position)])

    def _transfer(self, op: ir.Operation) -> None:
        """Clones a read or write, with `start` added to the index of rows if the vector runs along rows. The first
        slice writes the others.
        """
        reads = op.name == "vector.transfer_read"
        value = op.results[0] if reads else op.operands[0]
        position = self.dim if reads else self._position(value)
        first = 1 if reads else 2
        operands = [self.mapping.get(v, v) for v in op.operands]
        along = None if position is None else ir.AffineMapAttr(op.attributes["permutation_map"]).value.results[position]
        varies = (
            position is not None
            and ir.VectorType(value.type).shape[position] != 1
            and isinstance(along, ir.AffineDimExpr)
        )
        if varies:
            assert isinstance(along, ir.AffineDimExpr)
            operands[first + along.position] = arith.AddIOp(operands[first + along.position], self.start).result
        attributes = {name: op.attributes[name] for name in op.attributes}
        results = [self._sliced(r.type, position) for r in op.results]
        with ExitStack() as inside:
            if not reads and not varies:
                zero = arith.ConstantOp(ir.IndexType.get(), 0).result
                first_slice = scf.IfOp(arith.CmpIOp(arith.CmpIPredicate.eq, self.start, zero).result)
                with ir.InsertionPoint(first_slice.then_block):
                    scf.YieldOp([])
                inside.enter_context(ir.InsertionPoint.at_block_terminator(first_slice.then_block))
            new = ir.Operation.create(
                op.name, results=results, operands=operands, attributes=attributes, loc=op.location
            )
        self.mapping.update(zip(op.results, new.results, strict=True))


def _not_sliceable(op: ir.Operation) -> PassError:
    return PassError(
        f"{op.name} cannot work on a slice of a tile's rows, which split-k by slices needs",
        where=op,
        hint='choose the contraction\'s reduction "last_block" or "serial", whose last block has the whole tile',
    )
