"""Emits one tile's worth of a kernel's tensor ops as vector ops.

Every tile vector has the rank of the iteration space, with extent 1 in dimensions along which the value does not vary.
Operands are broadcast as late as possible, so that a value of one number a row is computed once a row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, math, vector

from mlirfuse.analysis.arithmetic.combining import COMBINING, combiner_of
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import RENAMING_OPS, OpStructure, is_constant
from mlirfuse.dialect.joint import JOINT_REDUCTIONS
from mlirfuse.errors import PassError
from mlirfuse.support.rewriting import clone
from mlirfuse.tiling.tiles import Shape, broadcast, splat, with_unit_dims
from mlirfuse.tiling.transfers import TileTransfers


@dataclass
class TileEmitter:
    """Emits ops of a kernel for one tile, at the current insertion point.

    Attributes:
        transfers: reads of arguments that the ops need, and the tile itself.
        values: tile vectors (and scalars) of the kernel's values emitted so far.
    """

    transfers: TileTransfers
    values: dict[ir.Value, ir.Value]

    @property
    def space(self) -> IterationSpace:
        return self.transfers.space

    def emit(self, structure: OpStructure) -> None:
        """Emits one op and records its results."""
        op = structure.op
        if op.name in RENAMING_OPS:
            self.values[op.results[0]] = self.operand(structure, 0)
        elif op.name in JOINT_REDUCTIONS:
            self._emit_joint_reduction(structure)
        elif structure.reduction_loops:
            self._emit_reduction(structure)
        else:
            self._emit_elementwise(structure)

    def operand(self, structure: OpStructure, number: int) -> ir.Value:
        """The tile vector of an operand (a scalar for scalars and constants); arguments are read on first use."""
        value = structure.operands[number]
        if value in self.values:
            return self.values[value]
        if is_constant(value):
            producer = value.owner.operation
            if producer.name == "tensor.empty":
                what = f"operand {number} of {structure.op.name} is a tensor.empty, whose elements are undefined"
                raise PassError(what, where=structure.op, hint="fill the tensor with linalg.fill first")
            return self.values[producer.operands[0]]
        return self.transfers.read(value, self.space.use_axes[(structure.op, number)])

    def write(self, value: ir.Value, buffer: ir.Value) -> None:
        """Writes the tile of a result of the kernel."""
        self.transfers.write(self.values[value], buffer, self.space.value_axes[value])

    def combine_input(self, structure: OpStructure) -> ir.Value:
        """The tile of elements that a reduction combines, broadcast over all of the reduction's loops."""
        combiner = combiner_of(structure)
        element = self._emit_body(structure, combiner.element)
        return broadcast(element, self._extents(structure, range(structure.loop_count)))

    def initial(self, structure: OpStructure) -> ir.Value:
        """A reduction's starting value: a scalar, or the tile vector of its init."""
        return self.operand(structure, len(structure.operands) - 1)

    def _emit_elementwise(self, structure: OpStructure) -> None:
        terminator = structure.op.regions[0].blocks[0].operations
        yielded = terminator[len(terminator) - 1].operation.operands
        for result, value, axes in zip(structure.op.results, yielded, structure.result_axes, strict=True):
            self.values[result] = broadcast(
                self._emit_body(structure, value), self._extents(structure, [a for a in axes if a is not None])
            )

    def _emit_reduction(self, structure: OpStructure) -> None:
        self.values[structure.op.results[0]] = self.reduce(
            structure, self.combine_input(structure), self.initial(structure)
        )

    def reduce(
        self, structure: OpStructure, elements: ir.Value, initial: ir.Value, among: Collection[int] | None = None
    ) -> ir.Value:
        """Reduces a tile over the reduced dimensions of a reduction, or over some of them; the result keeps them with
        extent 1.
        """
        op_name = combiner_of(structure).name
        dims = sorted(self.space.reduced[structure.op] if among is None else among)
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
            start = splat(initial, shape) if kept else initial
        reduced = vector.MultiDimReductionOp(vector_kind(op_name), elements, start, dims, results=[flat]).result
        return with_unit_dims(reduced, kept, self.space.rank)

    def combined(self, structure: OpStructure, reduced: ir.Value) -> ir.Value:
        """Combines a reduction's starting value with `reduced`, the tile of results from the neutral element."""
        return self._combine(combiner_of(structure).name, reduced, self.initial(structure))

    def _combine(self, op_name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        b = broadcast(b, tuple(ir.VectorType(a.type).shape))
        return ir.Operation.create(op_name, results=[a.type], operands=[b, a]).results[0]

    def _emit_joint_reduction(self, structure: OpStructure) -> None:
        """Emits `fuse.moments` or `fuse.exp_sum` on tiles."""
        source = self.operand(structure, 0)
        dims = sorted(self.space.reduced[structure.op])
        kept = [d for d in range(self.space.rank) if d not in dims]
        source = broadcast(source, self._extents(structure, range(structure.loop_count)))
        if not dims:  # one element a row is its own mean and maximum; its deviation is 0, or NaN if not finite
            deviation = arith.SubFOp(source, source).result
            second = deviation if structure.op.name == "fuse.moments" else math.ExpOp(deviation).result
            self.values.update(zip(structure.op.results, (source, second), strict=True))
            return
        vector_type = ir.VectorType(source.type)
        flat = ir.VectorType.get([vector_type.shape[d] for d in kept] or [1], vector_type.element_type)
        reduced = ir.Operation.create(
            structure.op.name,
            results=[flat, flat],
            operands=[source],
            attributes={"dims": ir.DenseI64ArrayAttr.get(dims)},
        )
        for result, value in zip(structure.op.results, reduced.results, strict=True):
            self.values[result] = with_unit_dims(value, kept or [0], self.space.rank)

    def _extents(self, structure: OpStructure, loops: Sequence[int]) -> Shape:
        dims = self.space.loops[structure.op]
        return self.transfers.extents_of([dims[loop] for loop in loops])

    def _emit_body(self, structure: OpStructure, scalar: ir.Value) -> ir.Value:
        """Emits the ops that compute `scalar` in the body of a `linalg.generic`; returns its tile vector or scalar."""
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

        return visit(scalar)

    def _captured(self, value: ir.Value, structure: OpStructure) -> ir.Value:
        if value not in self.values:
            raise PassError(
                f"the body uses {value.get_name()}, which is neither a constant nor a scalar argument of the kernel",
                where=structure.op,
                hint="make it an operand of the linalg.generic",
            )
        return self.values[value]

    def _emit_scalar_op(self, op: ir.Operation, operands: list[ir.Value]) -> Sequence[ir.Value]:
        """The vector form of a body op: the same op on the smallest tile that all its operands broadcast to.

        Raises:
            PassError: the op is not from `arith` or `math`, whose ops are elementwise on vectors.
        """
        if op.name.partition(".")[0] not in ("arith", "math"):
            raise PassError(
                f"{op.name} has no form for tiles",
                where=op,
                hint="bodies consist of ops of the dialects arith and math",
            )
        shapes = [tuple(o.type.shape) for o in operands if isinstance(o.type, ir.VectorType)]
        if not shapes:
            return clone(op, dict(zip(op.operands, operands, strict=True))).results
        shape = tuple(max(extents) for extents in zip(*shapes, strict=True))
        results = [ir.VectorType.get(list(shape), r.type) for r in op.results]
        attributes = {name: op.attributes[name] for name in op.attributes}
        wide = [broadcast(operand, shape) for operand in operands]
        return ir.Operation.create(
            op.name, results=results, operands=wide, attributes=attributes, loc=op.location
        ).results


def vector_kind(op_name: str) -> ir.Attribute:
    """The vector dialect's combining-kind attribute for a combining op."""
    return ir.Attribute.parse(f"#vector.kind<{COMBINING[op_name].kind.name.lower()}>")
