"""Products by `fuse.mma`: 8x8 matrices of the factors come from shared memory by `ldmatrix`.

The rows of one instruction are two fragments of the accumulators, its columns one; where these stand in the tile is the
layout's business. `ldmatrix` takes any address for each row of a matrix, so a layout is free to spread warps as it
likes. A factor whose rows (or columns) are contiguous instead of k is transposed on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import gpu, nvgpu, vector

from mlirfuse.dialect.mma import mma
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.factors import Factor, Product, warp_start
from mlirfuse.distribution.fragments import Fragments, elements
from mlirfuse.distribution.scalars import add, constant, divide, multiply, remainder
from mlirfuse.schedule.contraction import MMA_K
from mlirfuse.schedule.layout import WARP

MATRIX = 8
"""Rows and columns of one of `ldmatrix`'s matrices."""


def multiply_by_mma(d: Distributor, product: Product) -> Fragments:
    """One warp's share of a product: pairs of row fragments times column fragments, 16 elements of k at a time."""
    before = product.accumulators
    lead = (0,) * product.rows
    rows, columns = before.repeats(product.rows), before.repeats(product.columns)
    lane = remainder(gpu.ThreadIdOp(gpu.Dimension.x).result, WARP)
    sums = {
        (r, c): _joined(before.at((*lead, r, c)), before.at((*lead, r + 1, c)))
        for r in range(0, rows, 2)
        for c in range(columns)
    }
    for k in range(0, product.steps, MMA_K):
        left = {r: _load_rows(d, product, lane, r, k) for r in range(0, rows, 2)}
        right: dict[int, ir.Value] = {}
        for c in range(0, columns, 2):
            right.update(_load_columns(d, product, lane, range(c, min(c + 2, columns)), k))
        for r, c in sums:
            sums[r, c] = mma(left[r], right[c], sums[r, c])
    after = before.like(before.extents, before.element_type)
    for (r, c), total in sums.items():
        parts = elements(total)
        for half in (0, 1):
            pair = vector.FromElementsOp(after.type, parts[2 * half : 2 * half + 2]).result
            after.values[(*lead, r + half, c)] = pair
    return after


def _joined(upper: ir.Value, lower: ir.Value) -> ir.Value:
    """The four accumulators of an instruction, from the fragments of its upper and lower rows."""
    parts = elements(upper) + elements(lower)
    return vector.FromElementsOp(ir.VectorType.get([4], parts[0].type), parts).result


def _load_rows(d: Distributor, product: Product, lane: ir.Value, fragment: int, k: int) -> ir.Value:
    """The left factor of one instruction: matrices (upper, k), (lower, k), (upper, k + 8), (lower, k + 8)."""
    matrix = divide(lane, MATRIX)
    row = _matrix_start(d, product.rows, [fragment, fragment + 1], remainder(matrix, 2))
    column = add(constant(k), multiply(divide(matrix, 2), MATRIX))
    return _load_matrices(product.left, lane, row, column, 4)


def _load_columns(
    d: Distributor, product: Product, lane: ir.Value, fragments: Sequence[int], k: int
) -> dict[int, ir.Value]:
    """The right factor of up to two instructions: for each fragment the matrices k and k + 8."""
    matrix = divide(remainder(lane, 2 * MATRIX * len(fragments)), MATRIX)
    column = _matrix_start(d, product.columns, fragments, divide(matrix, 2))
    row = add(constant(k), multiply(remainder(matrix, 2), MATRIX))
    parts = elements(_load_matrices(product.right, lane, column, row, 2 * len(fragments)))
    fragment = ir.VectorType.get([4], product.right.element_type)
    return {c: vector.FromElementsOp(fragment, parts[4 * i : 4 * i + 4]).result for i, c in enumerate(fragments)}


def _matrix_start(d: Distributor, dim: int, fragments: Sequence[int], number: ir.Value) -> ir.Value:
    """Index in the tile of the first element of one of some fragments (at most two) of the current warp."""
    first, last = (d.layout.offset(dim, fragment) for fragment in (fragments[0], fragments[-1]))
    start = add(warp_start(d, dim), constant(first))
    return add(start, multiply(number, last - first)) if last > first else start


def _load_matrices(factor: Factor, lane: ir.Value, outer: ir.Value, k: ir.Value, count: int) -> ir.Value:
    """`ldmatrix`: each lane names the start of one row of a matrix; the result has two elements of each matrix."""
    within = remainder(lane, MATRIX)
    indices = factor.indices(add(outer, within), k) if factor.k_is_contiguous else factor.indices(outer, add(k, within))
    loaded = nvgpu.LdMatrixOp(
        ir.VectorType.get([count, 2], factor.element_type), factor.slot, indices, not factor.k_is_contiguous, count
    ).res
    return vector.ShapeCastOp(ir.VectorType.get([2 * count], factor.element_type), loaded).result
