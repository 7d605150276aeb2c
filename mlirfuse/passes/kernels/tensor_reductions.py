"""Builds reductions on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.arithmetic.combining import neutral

Scalar = Callable[[Sequence[ir.Value]], ir.Value]


def reduce_rows(
    combining_op: str, source: ir.Value, rows: Sequence[ir.Value], dims: Sequence[int], scalar: Scalar
) -> ir.Value:
    """A `linalg.generic` that combines `scalar` of the elements of a tensor over some dimensions.

    Args:
        combining_op: the combining op, one of `analysis.arithmetic.combining.COMBINING`.
        source: a ranked tensor.
        rows: tensors of the result's shape, with one element a row.
        dims: the dimensions that are reduced.
        scalar: emits the combined value from an element of the source and one of each of `rows`.
    """
    source_type = ir.RankedTensorType(source.type)
    rank, element = source_type.rank, source_type.element_type
    kept = [d for d in range(rank) if d not in dims]
    extents = [
        tensor.DimOp(source, arith.ConstantOp(ir.IndexType.get(), d).result).result
        if source_type.is_dynamic_dim(d)
        else source_type.get_dim_size(d)
        for d in kept
    ]
    start = arith.ConstantOp(element, neutral(combining_op, element)).result
    init = linalg.fill(start, outs=[tensor.EmptyOp(extents, element).result])
    identity = ir.AffineMap.get_identity(rank)
    outer = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(d) for d in kept])
    kinds = ", ".join(f"#linalg.iterator_type<{'parallel' if d in kept else 'reduction'}>" for d in range(rank))
    generic = linalg.GenericOp(
        [init.type],
        [source, *rows],
        [init],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (identity, *[outer] * (len(rows) + 1))]),
        ir.ArrayAttr.parse(f"[{kinds}]"),
    )
    count = len(rows) + 2
    block = generic.regions[0].blocks.append(*[element] * count, arg_locs=[generic.location] * count)
    with ir.InsertionPoint(block):
        *elements, accumulator = block.arguments
        combined = ir.Operation.create(combining_op, results=[element], operands=[accumulator, scalar(elements)])
        linalg.YieldOp([combined.results[0]])
    return generic.results[0]
