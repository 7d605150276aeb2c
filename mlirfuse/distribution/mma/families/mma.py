"""Products by `fuse.mma`, with operands loaded from shared memory as matrices of 8 rows of 16 bytes, mostly by
`ldmatrix`.

The rows of one instruction are two fragments of the accumulators and its columns one, at the positions that the layout
gives them: `ldmatrix` takes an address for each row of a matrix. An operand that is contiguous along rows (or columns)
in place of k is transposed by `ldmatrix` if its elements have 16 bits, and loaded element by element otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, gpu, memref, nvgpu, vector

from mlirfuse.dialect.mma import mma
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.mma.contract import Multiply
from mlirfuse.distribution.mma.contraction_operands import Product, SharedOperand, warp_start
from mlirfuse.distribution.mma.schemes import Scheme, scheme_of
from mlirfuse.distribution.threads.fragments import Fragments, elements
from mlirfuse.distribution.threads.scalars import add, constant, divide, multiply, remainder
from mlirfuse.schedule.layout import WARP
from mlirfuse.schedule.model.machine import MATRIX_ROW_BYTES, MATRIX_ROWS, REGISTER_BYTES
from mlirfuse.support.dtypes import from_mlir


def product_by_mma(d: Distributor, op: ir.Operation, product: Product) -> Fragments | None:
    """Multiplies one warp's share of a product of 16-bit types, int8, float8, or f32 as tf32."""
    scheme = scheme_of(product.left.element_type, product.right.element_type, product.precision)
    return None if scheme is None else multiply_by_mma(d, product, scheme)


STRATEGY: Multiply = product_by_mma


def multiply_by_mma(d: Distributor, product: Product, scheme: Scheme) -> Fragments:
    """Multiplies one warp's share of a product: pairs of row fragments times column fragments, by 32 bytes of k."""
    before = product.accumulators
    lead = (0,) * product.rows
    rows, columns = before.repeats(product.rows), before.repeats(product.columns)
    lane = remainder(gpu.ThreadIdOp(gpu.Dimension.x).result, WARP)
    sums = {
        (r, c): _joined(before.at((*lead, r, c)), before.at((*lead, r + 1, c)))
        for r in range(0, rows, 2)
        for c in range(columns)
    }
    for k in range(0, product.steps, 2 * _matrix_k(product.left)):
        left = {r: scheme.rows(_load_rows(d, product, lane, r, k)) for r in range(0, rows, 2)}
        right: dict[int, list[ir.Value]] = {}
        for c in range(0, columns, 2):
            loaded = _load_columns(d, product, lane, range(c, min(c + 2, columns)), k)
            right.update({at: scheme.columns(fragment) for at, fragment in loaded.items()})
        for r, c in sums:
            sums[r, c] = _multiply(scheme, left[r], right[c], sums[r, c])
    after = before.like(before.extents, before.element_type)
    for (r, c), total in sums.items():
        parts = elements(total)
        for half in (0, 1):
            pair = vector.FromElementsOp(after.type, parts[2 * half : 2 * half + 2]).result
            after.values[(*lead, r + half, c)] = pair
    return after


def _multiply(scheme: Scheme, left: Sequence[ir.Value], right: Sequence[ir.Value], total: ir.Value) -> ir.Value:
    """Adds the products of two converted fragments to the accumulators, in the scheme's order."""
    products = total
    if scheme.apart:
        nothing = ir.DenseElementsAttr.get_splat(total.type, ir.FloatAttr.get_f32(0))
        products = arith.ConstantOp(total.type, nothing).result
    for a, b in scheme.pairs:
        products = mma(left[a], right[b], products)
    return arith.AddFOp(total, products).result if scheme.apart else products


def _matrix_k(operand: SharedOperand) -> int:
    """Elements along k of one matrix."""
    return MATRIX_ROW_BYTES // from_mlir(operand.element_type).bytes


def _joined(upper: ir.Value, lower: ir.Value) -> ir.Value:
    """The four accumulators of an instruction, joined from the fragments of its upper and lower rows."""
    parts = elements(upper) + elements(lower)
    return vector.FromElementsOp(ir.VectorType.get([4], parts[0].type), parts).result


def _load_rows(d: Distributor, product: Product, lane: ir.Value, fragment: int, k: int) -> ir.Value:
    """Loads operand A of one fragment: matrices (upper, first), (lower, first), (upper, second), (lower, second)."""
    if not _by_ldmatrix(product.left):
        starts = [_matrix_start(d, product.rows, [number], constant(0)) for number in (fragment, fragment + 1)]
        return _load_elements(product.left, lane, [(starts[i % 2], i // 2) for i in range(4)], k)
    matrix = divide(lane, MATRIX_ROWS)
    row = _matrix_start(d, product.rows, [fragment, fragment + 1], remainder(matrix, 2))
    column = add(constant(k), multiply(divide(matrix, 2), _matrix_k(product.left)))
    return _load_matrices(product.left, lane, row, column, 4)


def _load_columns(
    d: Distributor, product: Product, lane: ir.Value, fragments: Sequence[int], k: int
) -> dict[int, ir.Value]:
    """Loads operand B of up to two fragments: for each, the first and second matrix along k."""
    if not _by_ldmatrix(product.right):
        starts = {c: _matrix_start(d, product.columns, [c], constant(0)) for c in fragments}
        return {c: _load_elements(product.right, lane, [(start, 0), (start, 1)], k) for c, start in starts.items()}
    matrix = divide(remainder(lane, 2 * MATRIX_ROWS * len(fragments)), MATRIX_ROWS)
    column = _matrix_start(d, product.columns, fragments, divide(matrix, 2))
    row = add(constant(k), multiply(remainder(matrix, 2), _matrix_k(product.right)))
    parts = elements(_load_matrices(product.right, lane, column, row, 2 * len(fragments)))
    size = len(parts) // len(fragments)
    fragment = ir.VectorType.get([size], product.right.element_type)
    return {c: vector.FromElementsOp(fragment, parts[size * i :][:size]).result for i, c in enumerate(fragments)}


def _matrix_start(d: Distributor, dim: int, fragments: Sequence[int], number: ir.Value) -> ir.Value:
    """Index in the tile of the first element of fragment `fragments[number]` (one or two) of the current warp."""
    first, last = (d.layout.offset(dim, fragment) for fragment in (fragments[0], fragments[-1]))
    start = add(warp_start(d, dim), constant(first))
    return add(start, multiply(number, last - first)) if last > first else start


def _by_ldmatrix(operand: SharedOperand) -> bool:
    """Whether `ldmatrix` can load an operand: rows along k of any type, or transposed rows of 16-bit elements."""
    return operand.k_is_contiguous or from_mlir(operand.element_type).bytes == 2


def _load_matrices(operand: SharedOperand, lane: ir.Value, outer: ir.Value, k: ir.Value, count: int) -> ir.Value:
    """Loads `count` matrices by `ldmatrix`, to which each lane gives the address of one row; 4 bytes of each are the
    result.
    """
    within = remainder(lane, MATRIX_ROWS)
    indices = (
        operand.indices(add(outer, within), k) if operand.k_is_contiguous else operand.indices(outer, add(k, within))
    )
    width = REGISTER_BYTES // from_mlir(operand.element_type).bytes
    loaded = nvgpu.LdMatrixOp(
        ir.VectorType.get([count, width], operand.element_type),
        operand.slot,
        indices,
        not operand.k_is_contiguous,
        count,
    ).res
    return vector.ShapeCastOp(ir.VectorType.get([width * count], operand.element_type), loaded).result


def _load_elements(
    operand: SharedOperand, lane: ir.Value, matrices: Sequence[tuple[ir.Value, int]], k: int
) -> ir.Value:
    """Loads matrices element by element; a matrix is given by its first row (or column) and its number along k."""
    width = REGISTER_BYTES // from_mlir(operand.element_type).bytes
    within, first = divide(lane, WARP // MATRIX_ROWS), multiply(remainder(lane, WARP // MATRIX_ROWS), width)
    values = []
    for start, number in matrices:
        for element in range(width):
            along_k = add(first, constant(k + number * _matrix_k(operand) + element))
            values.append(memref.LoadOp(operand.slot, operand.indices(add(start, within), along_k)).result)
    return vector.FromElementsOp(ir.VectorType.get([len(values)], operand.element_type), values).result
