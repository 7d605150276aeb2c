"""Ops on accumulator tiles, which a block carries from tile to tile for a reduction over more than one tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir
from mlir.dialects import affine, arith, vector

from mlirfuse.analysis.arithmetic.combining import combiner_of, neutral
from mlirfuse.analysis.grid_reduction import kept_dims
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.dialect.accumulate import accumulate
from mlirfuse.dialect.attributes import DIMS
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.tiling.tiles import Shape, broadcast, index, splat


def element_type(reduction: OpStructure) -> ir.Type:
    """The type of a reduction's elements."""
    return ir.RankedTensorType(reduction.op.results[0].type).element_type


def neutral_scalar(reduction: OpStructure) -> ir.Value:
    """The neutral element of a reduction's combining op."""
    return arith.ConstantOp(
        element_type(reduction), neutral(combiner_of(reduction).name, element_type(reduction))
    ).result


def neutral_tile(reduction: OpStructure, shape: Shape) -> ir.Value:
    """A tile of neutral elements."""
    return splat(neutral_scalar(reduction), shape)


def combine(reduction: OpStructure, carried: ir.Value, elements: ir.Value, mask: ir.Value | None) -> ir.Value:
    """Combines a tile of elements into a tile of accumulators; elements outside the mask change nothing."""
    elements = masked(reduction, elements, mask)
    name = combiner_of(reduction).name
    return ir.Operation.create(name, results=[carried.type], operands=[carried, elements]).results[0]


def combine_pairwise(reduction: OpStructure, tiles: Sequence[ir.Value]) -> ir.Value:
    """Combines tiles of one shape pairwise: a sum of n tiles is rounded log2(n) times instead of n times."""
    level = list(tiles)
    while len(level) > 1:
        paired = [combine(reduction, a, b, None) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = paired + level[2 * len(paired) :]
    return level[0]


def masked(reduction: OpStructure, elements: ir.Value, mask: ir.Value | None) -> ir.Value:
    """The elements, replaced by the neutral element outside the mask."""
    if mask is None:
        return elements
    shape = tuple(ir.VectorType(elements.type).shape)
    return arith.SelectOp(broadcast(mask, shape), elements, splat(neutral_scalar(reduction), shape)).result


def mask_of(shape: Sequence[int], bounds: Mapping[int, ir.Value]) -> ir.Value:
    """Mask of a tile's elements below the bounds of the given dimensions; extent 1 in the other dimensions."""
    extents = [n if d in bounds else 1 for d, n in enumerate(shape)]
    operands = [bounds[d] if d in bounds else index(1) for d in range(len(shape))]
    return vector.CreateMaskOp(ir.VectorType.get(extents, ir.IntegerType.get_signless(1)), operands).result


def subtract(a: ir.Value, b: ir.Value) -> ir.Value:
    """The difference of two indices."""
    return apply(ir.AffineExpr.get_dim(0) - ir.AffineExpr.get_dim(1), a, b)


def apply(expr: ir.AffineExpr, *operands: ir.Value) -> ir.Value:
    """Applies an affine expression to indices, which are the expression's dimensions in order."""
    return affine.AffineApplyOp(ir.AffineMap.get(len(operands), 0, [expr]), list(operands)).result


def partial_dims(space: IterationSpace, reduction: OpStructure, schedule: Schedule) -> list[int]:
    """The dimension along each axis of a row of partial results: those that the reduction keeps, of which that of
    threads' vectors is the innermost.

    Atomic additions take rows in the order of the dimensions.
    """
    assert schedule.persistent_loop is not None  # the caller has one
    kept, inner = kept_dims(space, reduction), schedule.layout.vector_dim
    if inner not in kept or schedule.persistent_loop.grid_reduction == "atomics":
        return kept
    return [*(d for d in kept if d != inner), inner]


def store_row(
    partial: ir.Value,
    order: Sequence[int],
    buffer: ir.Value,
    row: ir.Value,
    columns: Sequence[ir.Value],
    ragged: frozenset[int],
    *,
    atomically: bool = False,
) -> None:
    """Stores a tile of partial results in a row of a workspace, or adds it to the row atomically.

    Args:
        partial: the tile, with the rank of the iteration space.
        order: the dimension along each axis of the row, see `partial_dims`; empty for a number.
        buffer: the workspace.
        row: the row's number, an index.
        columns: where the tile begins along each axis of the row.
        ragged: dimensions in which the tile may reach past the end of the row.
        atomically: whether to add.
    """
    vector_type, kept = ir.VectorType(partial.type), sorted(order)
    # The vector has the kept dimensions only, so that it is not treated as a tile of the iteration space.
    shape = [vector_type.shape[d] for d in kept] or [1]
    row_vector = vector.ShapeCastOp(ir.VectorType.get(shape, vector_type.element_type), partial).result
    if atomically:
        accumulate(row_vector, buffer, [row, *columns])
        return
    axes = [1 + order.index(d) for d in kept] or [0]
    row_map = ir.AffineMap.get(1 + len(columns), 0, [ir.AffineExpr.get_dim(axis) for axis in axes])
    in_bounds = ir.ArrayAttr.get([ir.BoolAttr.get(d not in ragged) for d in kept or [-1]])
    op = vector.TransferWriteOp(
        None, row_vector, buffer, [row, *columns], ir.AffineMapAttr.get(row_map), in_bounds=in_bounds
    )
    if kept:  # a partial result may be one number, which does not say along which dimensions it is written
        op.attributes[DIMS] = ir.DenseI64ArrayAttr.get(kept)
