"""A product with a factor that another op sums first, and the sum of products that means the same."""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.contractions.contraction import CASTS, PRODUCTS
from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.maps import projected_axes, projection, through
from mlirfuse.analysis.loops.structure import OpStructure, is_constant, structure_of
from mlirfuse.dialect.attributes import FACTOR_SUM
from mlirfuse.support.rewriting import clone, defining_op, erase, erase_dead


@dataclass(frozen=True)
class SummedFactor:
    """A sum of one tensor, and the product that reads it, both `linalg.generic` of one block.

    Attributes:
        total: the sum.
        product: an op whose body multiplies an element of the sum, and yields the product or adds it to its sum.
        number: of the product's operand that is the sum.
    """

    total: ir.Operation
    product: ir.Operation
    number: int

    def multiply_before_summing(self) -> None:
        """Replaces both ops by a sum of products over the loops of both that reduce."""
        total, product = structure_of(self.total), structure_of(self.product)
        assert total is not None  # checked by summed_factor
        assert product is not None
        count = product.loop_count + len(total.reduction_loops)
        maps = [self._map(m, count) for m in ir.ArrayAttr(self.product.attributes["indexing_maps"])]
        maps[self.number] = projection(count, self._source_axes(total, product))
        kinds = [*ir.ArrayAttr(self.product.attributes["iterator_types"])]
        kinds += [ir.Attribute.parse("#linalg.iterator_type<reduction>")] * len(total.reduction_loops)
        values = list(self.product.operands)
        values[self.number] = self.total.operands[0]
        with ir.InsertionPoint(self.product), self.product.location:
            if not product.reduction_loops:
                values[-1] = _zeros(ir.RankedTensorType(self.product.results[0].type), values[-1])
            made = linalg.GenericOp(
                [self.product.results[0].type],
                values[:-1],
                values[-1:],
                ir.ArrayAttr.get(maps),
                ir.ArrayAttr.get(kinds),
            ).operation
        self._fill(made, sums=bool(product.reduction_loops))
        self.product.results[0].replace_all_uses_with(made.results[0])
        ops = [op.operation for op in self.product.block.operations]
        others = [op for op in ops[:-1] if op != self.product]
        erase(self.product)
        erase_dead(others)

    def _map(self, attribute: ir.AffineMapAttr, count: int) -> ir.AffineMapAttr:
        return projection(count, projected_axes(attribute))

    def _source_axes(self, total: OpStructure, product: OpStructure) -> tuple[int | None, ...]:
        """The loop along each axis of what is summed: of the product's, and behind them those of the sum."""
        reader, source = product.operand_axes[self.number], total.operand_axes[0]
        assert reader is not None  # checked by summed_factor
        assert source is not None
        behind = {loop: product.loop_count + n for n, loop in enumerate(total.reduction_loops)}
        kept = tuple(None if loop in behind else loop for loop in source)
        outer = through(reader, total.result_axes[0], kept)
        return tuple(behind.get(loop, at) if loop is not None else None for loop, at in zip(source, outer, strict=True))

    def _fill(self, made: ir.Operation, *, sums: bool) -> None:
        """Clones the bodies of both ops into the new one."""
        inner, outer = self.total.regions[0].blocks[0], self.product.regions[0].blocks[0]
        types = [argument.type for argument in outer.arguments]
        types[self.number] = inner.arguments[0].type
        block = made.regions[0].blocks.append(*types, arg_locs=[made.location] * len(types))
        *casts, _, _ = [op.operation for op in inner.operations]
        *ops, end = [op.operation for op in outer.operations]
        mapping: dict[ir.Value, ir.Value] = dict(zip(outer.arguments, block.arguments, strict=True))
        own: dict[ir.Value, ir.Value] = {inner.arguments[0]: block.arguments[self.number]}
        with ir.InsertionPoint(block), made.location:
            for op in casts:
                clone(op, own)
            mapping[outer.arguments[self.number]] = own[_term(self.total)]
            for op in ops:
                clone(op, mapping)
            value = mapping[end.operands[0]]
            if not sums:
                add = arith.AddFOp if isinstance(value.type, ir.FloatType) else arith.AddIOp
                value = add(block.arguments[-1], value).result
            linalg.YieldOp([value])


def summed_factor(kernel: ir.Operation) -> SummedFactor | str:
    """The factor of a product that an op of the same kernel sums (`fuse.factor_sum`), or why there is none."""
    total = next((op for op in body(kernel) if FACTOR_SUM in op.attributes), None)
    structure = None if total is None else structure_of(total)
    if total is None or structure is None or not structure.reduction_loops or _term(total) is None:
        return "it is no plain sum of one tensor"
    uses = list(total.results[0].uses)
    if len(uses) != 1 or uses[0].owner.operation.name != "linalg.generic":
        return "the sum is not multiplied as it is"
    product, number = uses[0].owner.operation, uses[0].operand_number
    if len(product.results) != 1 or not _multiplies(product, number):
        return "the sum is not multiplied as it is"
    return SummedFactor(total, product, number)


def _term(total: ir.Operation) -> ir.Value | None:
    """What the body of a sum from zero adds: its element, or exact casts of it; None for any other op."""
    block = total.regions[0].blocks[0]
    if len(total.operands) != 2 or not _is_zero(total.operands[1]):
        return None
    *casts, added, end = [op.operation for op in block.operations]
    element, accumulator = block.arguments
    if added.name not in PRODUCTS or end.operands[0] != added.results[0] or any(op.name not in CASTS for op in casts):
        return None
    terms = [v for v in added.operands if v != accumulator]
    return terms[0] if len(terms) == 1 and (terms[0] == element or defining_op(terms[0]) in casts) else None


def _multiplies(product: ir.Operation, number: int) -> bool:
    """Whether the body multiplies an operand, as it is, by others, and yields the product or adds it to its sum."""
    structure, block = structure_of(product), product.regions[0].blocks[0]
    if structure is None or structure.operand_axes[number] is None:
        return False
    uses = list(block.arguments[number].uses)
    multiplication = uses[0].owner.operation if len(uses) == 1 else None
    if multiplication is None or multiplication.name not in PRODUCTS.values():
        return False
    end = block.operations[len(block.operations) - 1].operation
    accumulator, value = block.arguments[len(product.operands) - 1], end.operands[0]
    if not structure.reduction_loops:
        return value == multiplication.results[0] and not list(accumulator.uses)
    added = defining_op(value)
    if added is None or PRODUCTS.get(added.name) != multiplication.name:
        return False
    return set(added.operands) == {accumulator, multiplication.results[0]}


def _is_zero(value: ir.Value) -> bool:
    """Whether a tensor is filled with zeros."""
    if not is_constant(value) or value.owner.name != "linalg.fill":
        return False
    number = defining_op(value.owner.operation.operands[0])
    if number is None or number.name != "arith.constant":
        return False
    attribute = number.attributes["value"]
    exact = ir.FloatAttr if isinstance(number.results[0].type, ir.FloatType) else ir.IntegerAttr
    return not exact(attribute).value


def _zeros(type_: ir.RankedTensorType, empty: ir.Value) -> ir.Value:
    """A tensor of zeros in place of an init that is not read."""
    zero = arith.ConstantOp(type_.element_type, 0.0 if isinstance(type_.element_type, ir.FloatType) else 0).result
    if not is_constant(empty) or empty.owner.name != "tensor.empty":
        empty = tensor.EmptyOp(type_.shape, type_.element_type).result
    return linalg.fill(zero, outs=[empty])
