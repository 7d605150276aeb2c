"""Builds reductions on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir
from mlir.dialects import arith, linalg, tensor

from mlirfuse.analysis.arithmetic.combining import neutral
from mlirfuse.analysis.loops.maps import projection
from mlirfuse.support.extents import extents_of

Scalar = Callable[[Sequence[ir.Value]], ir.Value]

Beside = tuple[ir.Value, Sequence[int | None]]
"""A tensor, and the axis of another one that runs along each of its own; None for extents of 1."""


def reduce_rows(
    combining_op: str,
    source: ir.Value,
    rows: Sequence[ir.Value],
    dims: Sequence[int],
    scalar: Scalar,
    others: Sequence[ir.Value] = (),
    beside: Beside | None = None,
) -> ir.Value:
    """A `linalg.generic` that combines `scalar` of the elements of a tensor over some dimensions.

    Args:
        combining_op: the combining op, one of `analysis.arithmetic.combining.COMBINING`.
        source: a ranked tensor.
        rows: tensors of the result's shape, with one element a row.
        dims: the dimensions that are reduced.
        scalar: emits the combined value from an element of the source, one of each of `others`, and of each of `rows`.
        others: further tensors of the source's shape.
        beside: a tensor along which the reduction runs without reading it.
    """
    source_type = ir.RankedTensorType(source.type)
    rank, element = source_type.rank, source_type.element_type
    kept = [d for d in range(rank) if d not in dims]
    start = arith.ConstantOp(element, neutral(combining_op, element)).result
    init = linalg.fill(start, outs=[tensor.EmptyOp(extents_of(source, kept), element).result])
    identity = ir.AffineMap.get_identity(rank)
    outer = ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(d) for d in kept])
    kinds = ", ".join(f"#linalg.iterator_type<{'parallel' if d in kept else 'reduction'}>" for d in range(rank))
    maps = [*[identity] * (len(others) + 1), *[outer] * len(rows)]
    inputs, idle = [source, *others, *rows], []
    if beside is not None:
        idle = [ir.RankedTensorType(beside[0].type).element_type]
        inputs.append(beside[0])
        maps.append(projection(rank, beside[1]).value)
    generic = linalg.GenericOp(
        [init.type],
        inputs,
        [init],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (*maps, outer)]),
        ir.ArrayAttr.parse(f"[{kinds}]"),
    )
    types = [*[element] * (len(others) + len(rows) + 1), *idle, element]
    block = generic.regions[0].blocks.append(*types, arg_locs=[generic.location] * len(types))
    with ir.InsertionPoint(block):
        *elements, accumulator = block.arguments
        elements = elements[: len(elements) - len(idle)]
        combined = ir.Operation.create(combining_op, results=[element], operands=[accumulator, scalar(elements)])
        linalg.YieldOp([combined.results[0]])
    return generic.results[0]
