"""The rule of `vector.contract`: one thread's share of a product, by scalar multiply-adds or on the tensor cores."""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math, memref, scf, vector

from mlirfuse.distribution.contract_mma import multiply_by_mma
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.factors import Factor, Product, product_of
from mlirfuse.distribution.fragments import Fragments, Key, fragment_type, widen
from mlirfuse.distribution.mma_schemes import scheme_of
from mlirfuse.distribution.scalars import add, constant
from mlirfuse.dtypes import from_mlir
from mlirfuse.errors import PassError
from mlirfuse.precision import ATTRIBUTE as PRECISION
from mlirfuse.precision import IEEE
from mlirfuse.tiling.contractions import INSTRUCTION
from mlirfuse.tiling.tiles import zero

UNROLLED_PRODUCTS = 2048
"""Multiply-adds of a thread in one iteration along k, at most: its loads of the next steps start while it multiplies,
but not across iterations. H200, f32 4096^3, 64 accumulators a thread, `x @ w.T` and `x @ w`: 3.68 and 3.65 ms with 4
steps, 3.71 and 3.64 with 8, 3.54 and 3.34 with 16, 3.36 and 3.19 with all 32 of a tile (cuBLAS 2.72 and 2.68)."""


@rule("vector.contract")
def contract(d: Distributor, op: ir.Operation) -> None:
    """Adds the product of two tiles in shared memory to the accumulators."""
    product = product_of(d, op)
    instruction = ir.StringAttr(op.attributes[INSTRUCTION]).value if INSTRUCTION in op.attributes else "fma"
    precision = ir.StringAttr(op.attributes[PRECISION]).value if PRECISION in op.attributes else IEEE
    left, right = product.left.element_type, product.right.element_type
    if instruction == "mma" and (scheme := scheme_of(left, right, precision)) is not None:
        d.tiles[op.results[0]] = multiply_by_mma(d, product, scheme)
    elif instruction == "fma" and precision == IEEE:
        d.tiles[op.results[0]] = multiply_by_fma(d, product)
    else:
        reason = f"instruction {instruction!r} does not multiply {left} with {right} as {precision}"
        raise PassError(reason, where=op)


def multiply_by_fma(d: Distributor, product: Product) -> Fragments:
    """A thread multiplies each of its rows' elements with each of its columns', one step along k after another.

    The products of this tile are summed up by themselves first: a sum of short sums loses less than one long sum.
    """
    before = product.accumulators
    keys = list(before.keys())
    unrolled = _unrolled(product.steps, len(keys) * before.width)
    nothing = widen(arith.ConstantOp(before.element_type, zero(before.element_type)).result, before.width)
    sums = dict.fromkeys(keys, nothing)
    places = _places(d, product)
    if unrolled < product.steps:
        loop = scf.ForOp(constant(0), constant(product.steps), constant(unrolled), [nothing] * len(keys))
        with ir.InsertionPoint(loop.body):
            sums = dict(zip(keys, loop.inner_iter_args, strict=True))
            for ahead in range(unrolled):
                _step(product, sums, places, add(loop.induction_variable, constant(ahead)))
            scf.YieldOp([sums[key] for key in keys])
        sums = dict(zip(keys, loop.results, strict=True))
    else:
        for k in range(unrolled):
            _step(product, sums, places, constant(k))
    after = before.like(before.extents, before.element_type)
    after.values = {key: _add(before.at(key), total) for key, total in sums.items()}
    return after


def _unrolled(steps: int, accumulators: int) -> int:
    """Steps along k in one iteration: a power of two that divides all of them."""
    unrolled = 1
    while steps % (2 * unrolled) == 0 and 2 * unrolled * accumulators <= UNROLLED_PRODUCTS:
        unrolled *= 2
    return unrolled


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    op = arith.AddIOp if isinstance(elements_type(a), ir.IntegerType) else arith.AddFOp
    return op(a, b).result


Places = dict[tuple[int, int], ir.Value]
"""Where a thread's fragments stand in the tile: an index, by dimension of the accumulators and repeat."""


def _places(d: Distributor, product: Product) -> Places:
    """The places of all fragments, which are the same in every step."""
    dims = (product.rows, product.columns)
    fragments = {(dim, key[dim]) for key in product.accumulators.keys() for dim in dims}
    return {(dim, fragment): d.threads.index(dim, fragment) for dim, fragment in sorted(fragments)}


def _step(product: Product, sums: dict[Key, ir.Value], places: Places, k: ir.Value) -> None:
    """Adds the products of one step along k."""
    target, width = product.accumulators.element_type, product.accumulators.width
    vector_sizes = product.accumulators.layout.vector
    loaded: dict[tuple[int, int], ir.Value] = {}

    def load(factor: Factor, dim: int, fragment: int) -> ir.Value:
        if (dim, fragment) not in loaded:
            loaded[dim, fragment] = _extended(_load(factor, places[dim, fragment], k, vector_sizes[dim]), target)
        return loaded[dim, fragment]

    for key, total in sums.items():
        left = widen(load(product.left, product.rows, key[product.rows]), width)
        right = widen(load(product.right, product.columns, key[product.columns]), width)
        sums[key] = _multiply_add(left, right, total)


def _load(factor: Factor, outer: ir.Value, k: ir.Value, width: int) -> ir.Value:
    """Elements that lie side by side along the factor's rows (or columns)."""
    if width == 1:
        return memref.LoadOp(factor.slot, factor.indices(outer, k)).result
    fragment = fragment_type(width, factor.element_type)
    if factor.outer_is_contiguous:
        return vector.LoadOp(fragment, factor.slot, factor.indices(outer, k), alignment=_alignment(fragment)).result
    singles = [memref.LoadOp(factor.slot, factor.indices(add(outer, constant(e)), k)).result for e in range(width)]
    return vector.FromElementsOp(fragment, singles).result


def _alignment(fragment: ir.Type) -> int:
    vector_type = ir.VectorType(fragment)
    return vector_type.shape[0] * from_mlir(vector_type.element_type).bytes


def _extended(value: ir.Value, target: ir.Type) -> ir.Value:
    """A fragment in the accumulators' element type."""
    if elements_type(value) == target:
        return value
    wide = (
        ir.VectorType.get(ir.VectorType(value.type).shape, target) if isinstance(value.type, ir.VectorType) else target
    )
    op = arith.ExtSIOp if isinstance(target, ir.IntegerType) else arith.ExtFOp
    return op(wide, value).result


def elements_type(value: ir.Value) -> ir.Type:
    """The element type of a fragment."""
    return ir.VectorType(value.type).element_type if isinstance(value.type, ir.VectorType) else value.type


def _multiply_add(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    if isinstance(elements_type(c), ir.IntegerType):
        return arith.AddIOp(c, arith.MulIOp(a, b).result).result
    return math.FmaOp(a, b, c).result
