"""Contractions: reductions of products of two operands, and the role of each of their loops.

The roles follow from the indexing maps alone. A loop of the result and of one operand is `m` (operand A) or `n`
(operand B). A loop of both operands but not of the result is `k`. All other loops are `batch`. Of several `m` or `n`
loops, tiles run along the operand's last, else along the longest, and the others are `batch`. Of several loops that are
summed over, `k` is the last of an operand, else the longest; the others are traversed around it, an element at a time.
A product whose m, n or k has one element reuses no operand, and counts as a row reduction.

One op may hold several products of one shape that share operand A or operand B (`fuse-shared-operands`): each has an
operand and a result of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlir import ir

from mlirfuse.analysis.kernels import body
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure, reduces
from mlirfuse.dialect.attributes import BY_ROWS, PRECISION
from mlirfuse.support.precision import IEEE
from mlirfuse.support.rewriting import defining_op

PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
"""For each op that sums, the op that multiplies in the same type."""

CASTS = frozenset({"arith.extf", "arith.extsi"})

Pair = tuple[int, int]
"""The numbers of a product's operands A and B among those of its op."""


@dataclass(frozen=True)
class Contraction:
    """A contraction, in dimensions of an iteration space.

    Attributes:
        structure: the op and its loops; the operands that are no factors are the initial values.
        batch: the other dimensions of the result, in the order of the op's loops.
        m: the dimension of operand A and the result.
        n: the dimension of operand B and the result.
        k: the dimension of both operands that is summed over in steps.
        outer_k: the other dimensions that are summed over, of static extent, outermost first.
        pairs: of each product, which each have a result of the op: the operands A and B.
        precision: precision of the products (`mlirfuse/support/precision.py`).
    """

    structure: OpStructure
    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    pairs: tuple[Pair, ...] = ((0, 1),)
    precision: str = IEEE
    outer_k: tuple[int, ...] = ()

    def swapped(self) -> Contraction:
        """The transposed contraction: m and n are exchanged, and so are the operands."""
        return replace(self, m=self.n, n=self.m, pairs=tuple((b, a) for a, b in self.pairs))

    @property
    def sides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The numbers of the operands A, and of the operands B, each once."""
        first, second = (tuple(dict.fromkeys(numbers)) for numbers in zip(*self.pairs, strict=True))
        return first, second

    @property
    def parallel(self) -> tuple[int, ...]:
        """The dimensions of the result: batch, m, n."""
        return (*self.batch, self.m, self.n)

    @property
    def summed(self) -> tuple[int, ...]:
        """The dimensions that are summed over, k last."""
        return (*self.outer_k, self.k)


def product_of(op: ir.Operation) -> ir.Operation | None:
    """The multiplication in the body of a sum of products; None for anything else."""
    found = products_of(op)
    return found[0][0] if len(found) == 1 else None


def has_products(kernel: ir.Operation) -> bool:
    """Whether an op of a kernel on tensors sums up products, as contractions do, whose spaces are worth looking at."""
    return any(map(products_of, body(kernel)))


def products_of(op: ir.Operation) -> list[tuple[ir.Operation, Pair]]:
    """The multiplication of each result of an op whose results are all sums of products, with the numbers of its
    operands A and B; none for anything else.

    Several products share operand A, which then is the first operand, or operand B, the last one.
    """
    if op.name != "linalg.generic":
        return []
    count, factors = len(op.results), len(op.operands) - len(op.results)
    if factors != count + 1 or not reduces(op) or BY_ROWS in op.attributes:
        return []
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    yielded = list(block.operations[len(block.operations) - 1].operation.operands)
    found = []
    for value, total in zip(yielded, arguments[factors:], strict=True):
        product = _multiplication(value, total, arguments[:factors])
        if product is None:
            return []
        found.append(product)
    pairs = [pair for _, pair in found]
    numbers = range(1, factors)
    return found if pairs in ([(0, n) for n in numbers], [(n - 1, count) for n in numbers]) else []


def _multiplication(value: ir.Value, total: ir.Value, factors: Sequence[ir.Value]) -> tuple[ir.Operation, Pair] | None:
    """The multiplication whose product `value` adds to `total`, and which factors it multiplies, in their order."""
    added = defining_op(value)
    if added is None or added.name not in PRODUCTS or total not in list(added.operands) or len(list(total.uses)) != 1:
        return None
    term = next((v for v in added.operands if v != total), None)
    product = None if term is None else defining_op(term)
    if product is None or product.name != PRODUCTS[added.name]:
        return None
    sources = [_uncast(v) for v in product.operands]
    if len(set(sources)) != 2 or not set(sources) <= set(factors):
        return None
    left, right = sorted(factors.index(source) for source in sources)
    types = [factors[number].type for number in (left, right)]
    if types[0] != types[1] and not all(map(_is_float8, types)):
        return None
    return product, (left, right)


def _is_float8(type_: ir.Type) -> bool:
    """Whether a type is one of the float8 types, which tensor cores multiply with each other."""
    return isinstance(type_, ir.Float8E4M3FNType | ir.Float8E5M2Type)


def contraction_in(space: IterationSpace, structures: Sequence[OpStructure]) -> Contraction | None:
    """The first contraction of a group of ops, or None."""
    return next((c for s in structures if (c := contraction_of(space, s)) is not None), None)


def contraction_of(space: IterationSpace, structure: OpStructure) -> Contraction | None:
    """An op as a contraction over the dimensions of `space`; None if the op is no contraction."""
    products = products_of(structure.op)
    if not products:
        return None
    loops = space.loops[structure.op]
    pairs = [pair for _, pair in products]
    left, right = pairs[0]

    def along(axes: Sequence[int | None] | None) -> set[int]:
        return {dim for loop in axes or () if loop is not None and (dim := loops[loop]) is not None}

    dims = {tuple(frozenset(along(structure.operand_axes[n])) for n in pair) for pair in pairs}
    results = {frozenset(along(axes)) for axes in structure.result_axes}
    if len(dims) != 1 or len(results) != 1:
        return None
    ((of_left, of_right),), (result,) = dims, results
    in_order = [d for d in loops if d is not None]
    m = [d for d in in_order if d in result & of_left - of_right]
    n = [d for d in in_order if d in result & of_right - of_left]
    k = [d for d in in_order if d not in result]
    if not m or not n or not k or not set(k) <= of_left & of_right or not result <= of_left | of_right:
        return None
    if len(k) > 1 and None in [space.extents[d] for d in k]:
        return None
    last = [_last_dim(structure.operand_axes[number], loops) for number in (left, right)]
    inner = max(k, key=lambda d: (last.count(d), space.extents[d] or 0, d))
    row, column = (_tiled(space, dims, end) for dims, end in zip((m, n), last, strict=True))
    batch = tuple(d for d in in_order if d not in (row, column, *k))
    precisions = {_precision(product) for product, _ in products}
    if len(precisions) != 1:
        return None
    (precision,), outer = precisions, tuple(d for d in k if d != inner)
    return Contraction(structure, batch, row, column, inner, tuple(pairs), precision, outer)


def _precision(product: ir.Operation) -> str:
    return ir.StringAttr(product.attributes[PRECISION]).value if PRECISION in product.attributes else IEEE


def _last_dim(axes: Sequence[int | None] | None, loops: Sequence[int | None]) -> int | None:
    """The dimension of an operand's last axis that has more than one element."""
    dims = [loops[loop] for loop in axes or () if loop is not None]
    return next((dim for dim in reversed(dims) if dim is not None), None)


def _tiled(space: IterationSpace, dims: Sequence[int], last: int | None) -> int:
    """Of several m or n dimensions that which tiles run along: the operand's last one, else the longest."""
    extents = [space.extents[d] for d in dims]
    if last in dims or None in extents:
        return last if last is not None and last in dims else dims[-1]
    return max(dims, key=lambda d: (space.extents[d] or 0, dims.index(d)))


def _uncast(value: ir.Value) -> ir.Value:
    """The value before exact widening casts."""
    while (owner := defining_op(value)) is not None and owner.name in CASTS:
        value = owner.operands[0]
    return value
