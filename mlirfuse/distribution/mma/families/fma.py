"""Products by scalar multiply-adds of CUDA cores: each of a thread's rows with each of its columns."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math, memref, scf, vector

from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.exchange.partials import forbid_unrolling
from mlirfuse.distribution.mma.contract import Multiply
from mlirfuse.distribution.mma.contraction_operands import Product, SharedOperand
from mlirfuse.distribution.threads.fragments import Fragments, Key, fragment_alignment, fragment_type, widen
from mlirfuse.distribution.threads.scalars import add, constant
from mlirfuse.schedule.model.machine import REGISTER_BYTES, WIDEST_ACCESS
from mlirfuse.support.dtypes import from_mlir
from mlirfuse.support.precision import IEEE
from mlirfuse.tiling.memory import strides
from mlirfuse.tiling.tiles import zero

UNROLLED_PRODUCTS = 2048
"""Most multiply-adds of a thread in one iteration along k. Loads of later steps overlap with multiply-adds within an
iteration, but not across iterations.
"""

FEW_UNROLLED = 512
"""Most multiply-adds of an iteration for integers, and for products with one step, which has no later copies in flight:
with more, ptxas hoists so many loads that threads spill.
"""


MOST_LOADED = 128
"""Most operand registers that a thread loads in straight code: half of a thread's limit, as accumulators, addresses and
an epilogue's operands need the rest. Where writes are clipped, LLVM sinks each element's multiply-adds into the
branch around its write, which keeps all loaded operands live until the last write; a loop prevents the sinking.
"""


def product_by_fma(d: Distributor, op: ir.Operation, product: Product) -> Fragments | None:
    """Multiplies one thread's share of a product, of any type."""
    if product.precision != IEEE:
        return None
    is_float = isinstance(product.accumulators.element_type, ir.FloatType)
    in_loop = op.parent.name == "scf.for"
    most = UNROLLED_PRODUCTS if is_float and in_loop else FEW_UNROLLED
    return multiply_by_fma(d, product, most, straight=not in_loop)


STRATEGY: Multiply = product_by_fma


def multiply_by_fma(d: Distributor, product: Product, most: int, *, straight: bool) -> Fragments:
    """Multiplies each of a thread's rows with each of its columns by scalar multiply-adds, step by step along k.

    Args:
        d: the kernel.
        product: the product.
        most: most multiply-adds in one iteration along k.
        straight: whether there is no loop around the op; a loop is then made where registers do not hold all operands.

    The tile's products are summed separately before they are added to the accumulators: that loses less precision than
    one long sum.
    """
    before = product.accumulators
    keys = list(before.keys())
    unrolled = _unrolled(product.steps, len(keys) * before.width, most)
    overfull = straight and 1 < unrolled == product.steps and _loaded_registers(product) > MOST_LOADED
    if overfull:
        unrolled //= 2
    nothing = widen(arith.ConstantOp(before.element_type, zero(before.element_type)).result, before.width)
    sums = dict.fromkeys(keys, nothing)
    places = _places(d, product)
    if unrolled < product.steps:
        loop = scf.ForOp(constant(0), constant(product.steps), constant(unrolled), [nothing] * len(keys))
        with ir.InsertionPoint(loop.body):
            sums = dict(zip(keys, loop.inner_iter_args, strict=True))
            _multiply(product, sums, places, loop.induction_variable, unrolled)
            scf.YieldOp([sums[key] for key in keys])
        if overfull:
            forbid_unrolling(loop)
        sums = dict(zip(keys, loop.results, strict=True))
    else:
        _multiply(product, sums, places, constant(0), product.steps)
    after = before.like(before.extents, before.element_type)
    after.values = {key: _add(before.at(key), total) for key, total in sums.items()}
    return after


def _unrolled(steps: int, accumulators: int, most: int) -> int:
    """Steps along k in one iteration: a power of two that divides the number of steps."""
    unrolled = 1
    while steps % (2 * unrolled) == 0 and 2 * unrolled * accumulators <= most:
        unrolled *= 2
    return unrolled


def _loaded_registers(product: Product) -> int:
    """Registers of all elements of both operands that a thread multiplies, each loaded once."""
    layout, size = product.accumulators.layout, product.accumulators.element_type
    outer = [layout.vector[dim] * layout.repeats[dim] for dim in (product.rows, product.columns)]
    return product.steps * sum(outer) * -(-from_mlir(size).bytes // REGISTER_BYTES)


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    op = arith.AddIOp if isinstance(elements_type(a), ir.IntegerType) else arith.AddFOp
    return op(a, b).result


Places = dict[tuple[int, int], ir.Value]
"""Index in the tile of each of a thread's fragments, by dimension of the accumulators and repeat."""


def _places(d: Distributor, product: Product) -> Places:
    """Indices of all fragments, which are the same in every step."""
    dims = (product.rows, product.columns)
    fragments = {(dim, key[dim]) for key in product.accumulators.keys() for dim in dims}
    return {(dim, fragment): d.threads.index(dim, fragment) for dim, fragment in sorted(fragments)}


def _multiply(product: Product, sums: dict[Key, ir.Value], places: Places, k: ir.Value, steps: int) -> None:
    """Adds the products of `steps` steps along k, the first of which has index `k`."""
    target, width = product.accumulators.element_type, product.accumulators.width
    layout = product.accumulators.layout
    loaded: dict[tuple[int, int, int], ir.Value] = {}

    def load(operand: SharedOperand, dim: int, fragment: int, step: int) -> ir.Value:
        if (dim, fragment, step) not in loaded:
            # Keys and steps are in order: this fragment is the first of its run, and this step the first of its vector.
            run = range(fragment, fragment + layout.neighbours(dim))
            together = range(step, step + _steps_together(operand, steps))
            places_of_run = [places[dim, n] for n in run]
            values = _load(operand, places_of_run, add(k, constant(step)), layout.vector[dim], len(together))
            for ahead, fragments in zip(together, values, strict=True):
                for n, value in zip(run, fragments, strict=True):
                    loaded[dim, n, ahead] = _extended(value, target)
        return loaded[dim, fragment, step]

    for step in range(steps):
        for key, total in sums.items():
            left = widen(load(product.left, product.rows, key[product.rows], step), width)
            right = widen(load(product.right, product.columns, key[product.columns], step), width)
            sums[key] = _multiply_add(left, right, total)


def _steps_together(operand: SharedOperand, steps: int) -> int:
    """Steps along k that one vector load covers, where rows are aligned to such a vector."""
    size = from_mlir(operand.element_type).bytes
    count = WIDEST_ACCESS // size
    rows = [step for d, step in enumerate(strides(ir.MemRefType(operand.slot.type))) if d != operand.k]
    aligned = operand.k_is_contiguous and all(row is not None and row % count == 0 for row in rows)
    return count if aligned and size >= REGISTER_BYTES and steps % count == 0 else 1


def _load(operand: SharedOperand, run: Sequence[ir.Value], k: ir.Value, width: int, steps: int) -> list[list[ir.Value]]:
    """Loads, for each of `steps` steps along k, a run of fragments of `width` elements that are contiguous along rows
    (or columns).
    """
    count = len(run) * width
    if count > 1 and operand.outer_is_contiguous:
        parts = _vector(operand, run[0], k, count)
        if width == count:
            return [[parts]]
        return [[vector.ExtractOp(parts, [], [n]).result for n in range(count)]]
    rows = [_along_k(operand, add(outer, constant(e)), k, steps) for outer in run for e in range(width)]
    return [
        [_packed([row[step] for row in rows[at : at + width]]) for at in range(0, count, width)]
        for step in range(steps)
    ]


def _along_k(operand: SharedOperand, outer: ir.Value, k: ir.Value, steps: int) -> list[ir.Value]:
    """Loads the elements of one row (or column) for `steps` steps along k."""
    if steps == 1:
        return [memref.LoadOp(operand.slot, operand.indices(outer, k)).result]
    parts = _vector(operand, outer, k, steps)
    return [vector.ExtractOp(parts, [], [n]).result for n in range(steps)]


def _vector(operand: SharedOperand, outer: ir.Value, k: ir.Value, count: int) -> ir.Value:
    fragment = fragment_type(count, operand.element_type)
    return vector.LoadOp(
        fragment, operand.slot, operand.indices(outer, k), alignment=fragment_alignment(fragment)
    ).result


def _packed(elements: Sequence[ir.Value]) -> ir.Value:
    """A fragment of the given elements."""
    if len(elements) == 1:
        return elements[0]
    return vector.FromElementsOp(fragment_type(len(elements), elements[0].type), elements).result


def _extended(value: ir.Value, target: ir.Type) -> ir.Value:
    """A fragment converted to the accumulators' element type."""
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
