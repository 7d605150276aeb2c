"""`fuse-contract-sums`: sums of outer products that are written with broadcasting become contractions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from mlir import ir
from mlir.dialects import linalg

from mlirfuse.analysis.contractions.contraction import PRODUCTS
from mlirfuse.analysis.kernels import body, functions, is_tile_program
from mlirfuse.analysis.loops.maps import projection, through
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.analysis.segments.operations import separated
from mlirfuse.dialect.attributes import OPERATION
from mlirfuse.passmanager.base import Pass, Remarks
from mlirfuse.support.rewriting import clone, defining_op, erase

FEWEST = 8
"""Rows of each factor that the other one meets, at least: fewer are read as fast again as they are kept."""


@dataclass(frozen=True)
class FuseContractSums(Pass):
    """Joins an elementwise product and the sum that alone reads it to one op, a contraction.

    Requires functions of tensor ops. Each factor varies along dimensions of the sum's result along which the other one
    does not, of `FEWEST` elements together at least, and both vary along all that is summed over: so every element of a
    factor meets many of the other, as in a matrix product, and whatever computes contractions applies. The product is
    not rounded before it is added then, which is what a product that only a sum reads allows (`fuse-multiply-add`);
    products in half precision are rounded, and left alone, and so are two operations where fusion is off.

    ```mlir
    %0 = linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j, k)]}
        ins(%a, %b : tensor<64x128xf32>, tensor<32x128xf32>) ... arith.mulf ...
    %1 = linalg.generic {iterator_types = ["parallel", "parallel", "reduction"]} ins(%0) ... arith.addf ...
    ```
    becomes
    ```mlir
    %1 = linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j)],
        iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %b) ... arith.mulf, arith.addf ...
    ```
    """

    name: ClassVar[str] = "fuse-contract-sums"

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        """Rewrites the `builtin.module` in place."""
        for function in functions(module):
            if not body(function) or is_tile_program(function):
                continue
            pairs = [pair for op in body(function) if (pair := _product_and_sum(op)) is not None]
            for product, total in pairs:
                reason = _contract(product, total)
                if reason is None:
                    remarks.applied(self, "a product and its sum became a contraction", function)
                else:
                    remarks.declined(self, reason, total.op)
            if not pairs:
                remarks.declined(self, "no sum reads a product of two values", function)


def _product_and_sum(op: ir.Operation) -> tuple[OpStructure, OpStructure] | None:
    """An elementwise product of two values, and the op, if that sums up the product."""
    total = structure_of(op) if op.name == "linalg.generic" else None
    if total is None or not total.reduction_loops or len(op.operands) != 2 or _only(op) not in PRODUCTS:
        return None
    maker = defining_op(op.operands[0])
    product = structure_of(maker) if maker is not None and maker.name == "linalg.generic" else None
    if product is None or product.reduction_loops or len(product.op.operands) != 3:
        return None
    if _only(product.op) != PRODUCTS[_only(op)] or None in product.operand_axes[:2] or total.operand_axes[0] is None:
        return None
    return product, total


def _only(op: ir.Operation) -> str:
    """The name of the op that a body consists of, whose operands are the body's first two arguments; "" for others."""
    block = op.regions[0].blocks[0]
    ops = [each.operation for each in block.operations]
    used = set(list(block.arguments)[:2])
    return ops[0].name if len(ops) == 2 and len(ops[0].operands) == 2 and set(ops[0].operands) == used else ""


def _contract(product: OpStructure, total: OpStructure) -> str | None:
    """Joins a product and its sum; returns why not, and None where it was done."""
    op = total.op
    (value,) = product.op.results
    if len(list(value.uses)) != 1:
        return "the product is read elsewhere as well"
    if separated([product.op], [op]):
        return "fusion is off, and these are two operations"
    if isinstance(ir.RankedTensorType(value.type).element_type, ir.F16Type | ir.BF16Type):
        return "the product is rounded to half precision"
    reader = total.operand_axes[0] or ()
    factors = [through(reader, product.result_axes[0], axes or ()) for axes in product.operand_axes[:2]]
    extents = _extents(total)
    varies = [{loop for loop in axes if loop is not None and extents[loop] != 1} for axes in factors]
    summed = {loop for loop in total.reduction_loops if extents[loop] != 1}
    if not summed or not summed <= varies[0] & varies[1]:
        return "a factor does not vary along all that is summed over"
    for own, other in (varies, varies[::-1]):
        rows = [extents[loop] for loop in own - other]
        if None not in rows and (count := prod(extent or 1 for extent in rows)) < FEWEST:
            return f"a factor has {count} rows of its own, fewer than {FEWEST}"
    with ir.InsertionPoint(op), op.location:
        new = _sum_of_products(product.op, total, factors)
    op.results[0].replace_all_uses_with(new)
    erase(op)
    erase(product.op)
    return None


def _extents(total: OpStructure) -> list[int | None]:
    """The extent of each loop of a sum; None where dynamic."""
    extents: list[int | None] = [1] * total.loop_count
    for loop, extent in zip(total.operand_axes[0] or (), total.operand_extents[0], strict=True):
        if loop is not None:
            extents[loop] = extent
    return extents


def _sum_of_products(product: ir.Operation, total: OpStructure, factors: Iterable[Sequence[int | None]]) -> ir.Value:
    """One op that multiplies and adds, over the loops of the sum."""
    op, count = total.op, total.loop_count
    start = op.operands[1]
    maps = [*(projection(count, axes) for axes in factors), list(ir.ArrayAttr(op.attributes["indexing_maps"]))[1]]
    values = list(product.operands)[:2]
    new = linalg.GenericOp(
        [op.results[0].type], values, [start], ir.ArrayAttr.get(maps), op.attributes["iterator_types"]
    )
    if OPERATION in op.attributes:
        new.operation.attributes[OPERATION] = op.attributes[OPERATION]
    types = [ir.RankedTensorType(value.type).element_type for value in (*values, start)]
    block = new.regions[0].blocks.append(*types, arg_locs=[op.location] * 3)
    multiplied, added = product.regions[0].blocks[0], op.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        mapping = dict(zip(list(multiplied.arguments)[:2], list(block.arguments)[:2], strict=True))
        clone(multiplied.operations[0].operation, mapping)
        mapping |= {added.arguments[0]: mapping[multiplied.operations[0].results[0]]}
        mapping |= {added.arguments[1]: block.arguments[2]}
        clone(added.operations[0].operation, mapping)
        linalg.YieldOp([mapping[added.operations[0].results[0]]])
    return new.results[0]
