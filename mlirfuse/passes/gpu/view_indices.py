"""Where one thread's accesses to a view through an affine map lie in the view's source: indices, and what must hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.gathered_view import Gather
from mlirfuse.distribution.threads.scalars import add, constant, multiply
from mlirfuse.support.affine_expressions import bounds, coefficients, operands
from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.rewriting import defining_op, erase, integer_of
from mlirfuse.tiling.memory import permuted, strides

Terms = tuple[ir.Value, ...]
"""Indices that are added up."""

Sum = tuple[Terms, int]
"""Indices that are added up, and a number that is added to them."""


def users_of(view: ir.Value) -> list[tuple[ir.Operation, Sequence[int]]]:
    """The ops that use a view, also through transposes, with the view's axis of each axis that they see."""

    def find(value: ir.Value, axes: Sequence[int]) -> list[tuple[ir.Operation, Sequence[int]]]:
        found: list[tuple[ir.Operation, Sequence[int]]] = []
        for use in list(value.uses):
            user = use.owner.operation
            if user.name != "memref.transpose":
                found.append((user, axes))
                continue
            order = [e.position for e in ir.AffineMapAttr(user.attributes["permutation"]).value.results]
            found += find(user.results[0], [axes[n] for n in order])
        return found

    return find(view, list(range(ir.MemRefType(view.type).rank)))


def erase_transposes(value: ir.Value) -> None:
    """Erases the transposes of a view, which nobody else uses."""
    for use in list(value.uses):
        user = use.owner.operation
        if user.name == "memref.transpose":
            erase_transposes(user.results[0])
            erase(user)


def ranges_of(gather: Gather, index: Mapping[int, ir.Value]) -> dict[Terms, tuple[int, int]]:
    """Between which numbers the terms are of the indices of an access to a view, which are below the extents of their
    axes, along undivided axes.
    """
    sums = [(sum_of(index[axis]), group[0]) for axis, group in enumerate(gather.basis) if len(group) == 1]
    return {terms: (-number, extent - 1 - number) for (terms, number), extent in sums if terms}


def _range(
    expr: ir.AffineExpr, gather: Gather, index: Mapping[int, ir.Value], known: Mapping[Terms, tuple[int, int]]
) -> tuple[int, int]:
    """The least and the largest value of an expression of an access's index, by what is known of terms of indices."""
    extents = gather.components
    linear = coefficients(expr, len(extents)) if known else None
    if linear is None:
        return bounds(expr, extents)
    ranges: list[tuple[int, int]] = []
    for axis, group in enumerate(gather.basis):
        inside = [(0, extent - 1) for extent in group]
        if len(group) == 1:
            terms, number = sum_of(index[axis])
            low, high = known.get(terms, (-number, group[0] - 1 - number)) if terms else (0, 0)
            inside = [(max(0, low + number), min(group[0] - 1, high + number))]
        ranges += inside
    ends = [(factor * low, factor * high) for factor, (low, high) in zip(linear[0], ranges, strict=True)]
    return linear[1] + sum(map(min, ends)), linear[1] + sum(map(max, ends))


def place_of(
    gather: Gather, index: Mapping[int, ir.Value], shape: Sequence[int]
) -> tuple[list[ir.Value], ir.Value | None]:
    """The index in a source of that shape, and the condition under which it is one; None where it always is.

    The arguments are those of `places_of`.
    """
    places = places_of(gather, index, shape)
    return [place for place, _ in places], all_of([condition for _, condition in places])


def all_of(conditions: Sequence[ir.Value | None]) -> ir.Value | None:
    """Whether all conditions hold, of which None always does; None if that is known."""
    some = [condition for condition in conditions if condition is not None]
    return reduce(lambda a, b: arith.AndIOp(a, b).result, some) if some else None


def places_of(
    gather: Gather,
    index: Mapping[int, ir.Value],
    shape: Sequence[int],
    known: Mapping[Terms, tuple[int, int]] | None = None,
) -> list[tuple[ir.Value, ir.Value | None]]:
    """The index in a source of that shape, along each axis with the condition under which it is one; None where it
    always is.

    Args:
        gather: how the view's elements lie in the source.
        index: the index in the view, by axis.
        shape: of the source.
        known: terms of indices, and between which numbers they are.
    """
    type_ = ir.IntegerType.get_signless(gather.index_bits)
    components: list[ir.Value] = []
    for axis, group in enumerate(gather.basis):
        components += _components(index[axis], group, type_)
    extents = gather.components
    result: list[tuple[ir.Value, ir.Value | None]] = []
    for expr, extent in zip(gather.map.results, shape, strict=True):
        low, high = _range(expr, gather, index, known or {})
        value = _emit(expr, components, extents, type_)
        inside = None
        if low < 0 or high >= extent:
            inside = arith.CmpIOp(arith.CmpIPredicate.ult, value, _number(extent, type_)).result
        result.append((_as_index(value), inside))
    return result


def _as_index(value: ir.Value) -> ir.Value:
    """An integer as an index, to which a number is added last, so that accesses a number apart share an address."""
    rest, number = _split(value)
    if rest is None:
        return constant(number)
    return add(arith.IndexCastOp(ir.IndexType.get(), rest).result, constant(number))


def with_unit_last(source: ir.Value, at: list[ir.Value], width: int) -> tuple[ir.Value, list[ir.Value]]:
    """A view of the source whose contiguous axis, as `Gather.unit` takes it, is the last one; and the index in it.

    An access that goes on in the next row is one of the source as a single row.
    """
    type_ = ir.MemRefType(source.type)
    steps = strides(type_)
    if 1 not in steps:
        return source, at
    if type_.shape[steps.index(1)] % width:
        return _as_row(source, [step or 0 for step in steps], at)
    axis = steps.index(1)
    order = [*(n for n in range(len(steps)) if n != axis), axis]
    return permuted(source, order), [at[n] for n in order]


def _as_row(source: ir.Value, steps: Sequence[int], at: list[ir.Value]) -> tuple[ir.Value, list[ir.Value]]:
    """The source as one row, whose strides are known, and the index in it."""
    type_ = ir.MemRefType(source.type)
    size = 1 + sum((extent - 1) * step for extent, step in zip(type_.shape, steps, strict=True))
    row = ir.MemRefType.get([size], type_.element_type, ir.StridedLayoutAttr.get(0, [1]), type_.memory_space)
    cast = memref.ReinterpretCastOp(row, source, [], [], [], [0], [size], [1]).result
    place = reduce(add, [multiply(index, step) for index, step in zip(at, steps, strict=True)])
    return cast, [place]


def _number(value: int, type_: ir.Type) -> ir.Value:
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def sum_of(index: ir.Value) -> Sum:
    """What an index adds up."""
    if (number := integer_of(index)) is not None:
        return (), number
    maker = defining_op(index)
    if maker is None or maker.name != "arith.addi":
        return (index,), 0
    (left, a), (right, b) = map(sum_of, maker.operands)
    return (*left, *right), a + b


def _narrowed(index: ir.Value, type_: ir.Type) -> ir.Value:
    """An index as an integer of a type, to which numbers are added last, so that equal sums are equal ops."""
    terms, number = sum_of(index)
    if not terms:
        return _number(number, type_)
    casts = [arith.IndexCastOp(type_, term).result for term in terms]
    return _plus(reduce(lambda a, b: arith.AddIOp(a, b).result, casts), number, type_)


def _split(value: ir.Value) -> tuple[ir.Value | None, int]:
    """An integer without the number that is added to it last, or None for a number, and that number."""
    if (number := integer_of(value)) is not None:
        return None, number
    maker = defining_op(value)
    if maker is not None and maker.name == "arith.addi" and (last := integer_of(maker.operands[1])) is not None:
        return maker.operands[0], last
    return value, 0


def _plus(value: ir.Value | None, number: int, type_: ir.Type) -> ir.Value:
    """The sum of an integer and a number, which is added to the number that the integer ends with."""
    rest, last = (None, 0) if value is None else _split(value)
    if rest is None:
        return _number(last + number, type_)
    return arith.AddIOp(rest, _number(last + number, type_)).result if last + number else rest


def _sum(left: ir.Value, right: ir.Value, type_: ir.Type) -> ir.Value:
    """The sum of two integers, to which their numbers are added last."""
    (a, number), (b, other) = _split(left), _split(right)
    both = arith.AddIOp(a, b).result if a is not None and b is not None else b if a is None else a
    return _plus(both, number + other, type_)


def _times(value: ir.Value, number: int, type_: ir.Type) -> ir.Value:
    """A product, to which what a number added to the integer makes is added last."""
    rest, last = _split(value)
    product = None if rest is None else arith.MulIOp(rest, _number(number, type_)).result
    return _plus(product, last * number, type_)


def _components(index: ir.Value, group: Sequence[int], type_: ir.Type) -> list[ir.Value]:
    """The components of an index of the view, the last one fastest, as integers of a type."""
    rest = _narrowed(index, type_)
    found: list[ir.Value] = []
    for position in reversed(range(len(group))):
        extent = group[position]
        if extent == 1:
            found.insert(0, _number(0, type_))
            continue
        if not any(n > 1 for n in group[:position]):
            found.insert(0, rest)
            rest = _number(0, type_)
            continue
        found.insert(0, arith.RemUIOp(rest, _number(extent, type_)).result)
        rest = arith.DivUIOp(rest, _number(extent, type_)).result
    return found


def _emit(expr: ir.AffineExpr, components: Sequence[ir.Value], extents: Sequence[int], type_: ir.Type) -> ir.Value:
    """An expression's value as an integer of a type; divisions round down also where the dividend is negative."""
    if isinstance(expr, ir.AffineConstantExpr):
        return _number(ir.AffineConstantExpr(expr).value, type_)
    if isinstance(expr, ir.AffineDimExpr):
        return components[ir.AffineDimExpr(expr).position]
    left, right = operands(expr)
    a = _emit(left, components, extents, type_)
    if isinstance(expr, ir.AffineAddExpr):
        return _sum(a, _emit(right, components, extents, type_), type_)
    if isinstance(expr, ir.AffineMulExpr):
        return _times(a, ir.AffineConstantExpr(right).value, type_)
    by = ir.AffineConstantExpr(right).value
    rest, number = _split(a)
    if rest is None or divisor_of(rest) % by == 0:  # neighbours of a run are a number apart after the division too
        if isinstance(expr, ir.AffineModExpr):
            return _number(number % by, type_)
        divided = None if rest is None else arith.DivUIOp(rest, _number(by, type_)).result
        return _plus(divided, number // by, type_)
    low, _ = bounds(left, extents)
    steps = -(low // by) if low < 0 else 0  # makes the dividend positive
    shifted = arith.AddIOp(a, _number(steps * by, type_)).result if steps else a
    if isinstance(expr, ir.AffineModExpr):
        found: ir.Value = arith.RemUIOp(shifted, _number(by, type_)).result
        return found
    quotient: ir.Value = arith.DivUIOp(shifted, _number(by, type_)).result
    return arith.SubIOp(quotient, _number(steps, type_)).result if steps else quotient
