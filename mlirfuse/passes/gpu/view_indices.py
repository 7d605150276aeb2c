"""Where one thread's accesses to a view through an affine map lie in the view's source: indices, and what must hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from itertools import islice
from math import gcd

from mlir import ir
from mlir.dialects import arith, memref

from mlirfuse.dialect.gathered_view import PAST_END, Gather
from mlirfuse.distribution.threads.scalars import add, constant, less, minimum, multiply
from mlirfuse.support.affine_expressions import bounds, coefficients, operands
from mlirfuse.support.divisors import divisor_of
from mlirfuse.support.rewriting import defining_op, erase, integer_of, split_constant
from mlirfuse.tiling.memory import permuted, strides

Terms = tuple[ir.Value, ...]
"""Indices that are added up."""

Sum = tuple[Terms, int]
"""Indices that are added up, and a number that is added to them."""


Clamp = tuple[Terms, int, int]
"""Indices that are added up, a number that is added to them, and the most that the sum may be."""


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


def ranges_of(gather: Gather, sums: Sequence[Sum]) -> dict[Terms, tuple[int, int]]:
    """Between which numbers the terms are of the indices of an access to a view, which are below the extents of their
    axes, along undivided axes.
    """
    along = [(sums[axis], group[0]) for axis, group in enumerate(gather.basis) if len(group) == 1]
    return {terms: (-number, extent - 1 - number) for (terms, number), extent in along if terms}


def _range(
    expr: ir.AffineExpr, gather: Gather, sums: Sequence[Sum], known: Mapping[Terms, tuple[int, int]]
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
            terms, number = sums[axis]
            low, high = known.get(terms, (-number, group[0] - 1 - number)) if terms else (0, 0)
            inside = [(max(0, low + number), min(group[0] - 1, high + number))]
        ranges += inside
    ends = [(factor * low, factor * high) for factor, (low, high) in zip(linear[0], ranges, strict=True)]
    return linear[1] + sum(map(min, ends)), linear[1] + sum(map(max, ends))


def place_of(
    gather: Gather, index: Mapping[int, ir.Value], shape: Sequence[int]
) -> tuple[list[ir.Value], ir.Value | None]:
    """The index in a source of that shape, and the condition under which it is one; None where it always is.

    The arguments are those of `Places.of`.
    """
    places = Places({}, Sums()).of(gather, index, shape)
    return [place for place, _ in places], all_of([condition for _, condition in places])


def all_of(conditions: Sequence[ir.Value | None]) -> ir.Value | None:
    """Whether all conditions hold, of which None always does; None if that is known."""
    some = [condition for condition in conditions if condition is not None]
    return reduce(lambda a, b: arith.AndIOp(a, b).result, some) if some else None


Place = tuple[ir.Value, ir.Value | None]
"""An index along an axis of a source, and the condition under which it is one; None where it always is."""


class Places:
    """Where the accesses of a block to views lie in the views' sources.

    Windows that overlap have most of their rows and columns in common. Each is computed once, in front of the first
    access of those that need it, so that accesses are to be asked for in program order.
    """

    def __init__(self, known: Mapping[Terms, tuple[int, int]], sums: Sums, runs: Collection[Terms] = ()):
        """`known` are terms of indices, and between which numbers they are; `sums` what indices of views add up; `runs`
        are terms of indices that are clamped with several numbers.

        Attributes:
            clamped: indices of sources that are clamped where nothing asks for what is read.
        """
        self._known = known
        self._sums = sums
        self._runs = runs
        self.clamped: set[ir.Value] = set()
        self._divided: dict[tuple[Sum, tuple[int, ...], int], list[ir.Value]] = {}
        self._found: dict[tuple[object, ...], Place] = {}
        self._emitted: dict[tuple[object, ...], ir.Value] = {}

    def of(self, gather: Gather, index: Mapping[int, ir.Value], shape: Sequence[int], width: int = 1) -> list[Place]:
        """The index in a source of that shape, by axis.

        Args:
            gather: how the view's elements lie in the source.
            index: the index in the view, by axis.
            shape: of the source.
            width: elements of the access, side by side along the last axis of a view with several.
        """
        sums = [self._sums[index[axis]] for axis in range(len(gather.basis))]
        bits = gather.index_bits
        components = [
            component
            for total, group in zip(sums, gather.basis, strict=True)
            for component in self._components(total, group, bits)
        ]
        found = []
        for expr, axes, extent in zip(gather.map.results, gather.read_along, shape, strict=True):
            key = (expr, gather.basis, extent, width, *[sums[axis] for axis in axes])
            if key not in self._found:
                clamp = clamp_of(index[axes[0]], self._sums) if len(axes) == 1 else None
                wide = width if clamp is not None and axes[0] == len(gather.basis) - 1 else 1
                moved = None if clamp is None else self._clamped(clamp, gather, axes[0], expr, extent, wide)
                self._found[key] = moved or self._place(expr, gather, sums, components, extent)
            found.append(self._found[key])
        return found

    def offset(self, gather: Gather, index: Mapping[int, ir.Value], steps: Sequence[int]) -> ir.Value | None:
        """The place in memory of an access, as an integer: elements from the source's first one. None where the map is
        not linear.

        What each dimension of the view adds to it is emitted by itself, so that the rows of a thread have the part of
        the columns in common, and columns that of the rows.

        Args:
            gather: how the view's elements lie in the source.
            index: the index in the view, by axis.
            steps: the source's strides.
        """
        linear = [coefficients(expr, len(gather.components)) for expr in gather.map.results]
        known = [entry for entry in linear if entry is not None]
        if len(known) < len(linear):
            return None
        weights = [
            sum(step * factors[c] for step, (factors, _) in zip(steps, known, strict=True))
            for c in range(len(gather.components))
        ]
        start = sum(step * number for step, (_, number) in zip(steps, known, strict=True))
        most = abs(start) + sum(abs(w) * (n - 1) for w, n in zip(weights, gather.components, strict=True))
        bits = 32 if max(most, *gather.shape) < (1 << 31) - PAST_END else 64
        type_, rest = ir.IntegerType.get_signless(bits), iter(weights)
        parts: list[ir.Value] = []
        for axis, group in enumerate(gather.basis):
            components = self._components(self._sums[index[axis]], group, bits)
            pairs = zip(components, islice(rest, len(group)), strict=True)
            moved = [self._times(value, weight, type_) for value, weight in pairs if weight]
            if moved:
                parts.append(reduce(lambda a, b: self._sum(a, b, type_), moved))
        first = parts[:-1]
        last = self._plus(parts[-1] if parts else None, start, type_)
        return reduce(lambda a, b: self._once(arith.AddIOp, a, b), [*first, last])

    def _clamped(
        self, clamp: Clamp, gather: Gather, axis: int, expr: ir.AffineExpr, extent: int, width: int
    ) -> Place | None:
        """A clamped index of the view as one of the source that is clamped there, so that windows of neighbours have it
        in common; None where there are no neighbours, or the view's elements are not the source's, one by one.

        Another element is read where the view's index is clamped, and nothing asks for that one.
        """
        terms, number, last = clamp
        linear, group = coefficients(expr, len(gather.components)), gather.basis[axis]
        if terms not in self._runs or linear is None or len(group) != 1 or last != group[0] - width:
            return None
        factors, start = linear
        if sum(map(abs, factors)) != 1 or max(factors) != 1 or start < 0 or last + start + width > extent:
            return None
        if start % width or extent % width:
            return None
        place = self._once(self._least, terms, number + start, extent - width)
        self.clamped.add(place)
        return place, None

    def _least(self, terms: Terms, number: int, most: int) -> ir.Value:
        """The sum of indices and a number, or the most that it may be."""
        index = self._once(_index_sum, terms)
        index = self._once(add, index, self._once(constant, number)) if number else index
        return minimum(index, self._once(constant, most))

    def _once(self, build: Callable[..., ir.Value | ir.OpView], *arguments: object) -> ir.Value:
        """What a function, or an op's class, builds of arguments, which is built once."""
        key = build, *arguments
        if key not in self._emitted:
            built = build(*arguments)
            self._emitted[key] = built if isinstance(built, ir.Value) else built.operation.result
        return self._emitted[key]

    def _place(
        self, expr: ir.AffineExpr, gather: Gather, sums: Sequence[Sum], components: Sequence[ir.Value], extent: int
    ) -> Place:
        """Emits an index of the source, which an expression of the map makes of components."""
        low, high = _range(expr, gather, sums, self._known)
        type_ = ir.IntegerType.get_signless(gather.index_bits)
        value = self._emit(expr, components, gather.components, type_)
        inside = None
        if low < 0 or high >= extent:
            inside = self._once(less, value, self._number(extent, type_))
        return self._as_index(value), inside

    def _as_index(self, value: ir.Value) -> ir.Value:
        """An integer as an index, to which a number is added last, so that accesses a number apart share an address."""
        rest, number = _split(value)
        if rest is None:
            return self._once(constant, number)
        index = self._once(_cast, rest, ir.IndexType.get())
        return self._once(add, index, self._once(constant, number)) if number else index

    def _number(self, value: int, type_: ir.Type) -> ir.Value:
        return self._once(_integer, value, type_)

    def _narrowed(self, index: Sum, type_: ir.Type) -> ir.Value:
        """An index as an integer of a type, to which numbers are added last, so that equal sums are equal ops."""
        terms, number = index
        if not terms:
            return self._number(number, type_)
        casts = [self._once(_cast, term, type_) for term in terms]
        return self._plus(reduce(lambda a, b: self._once(arith.AddIOp, a, b), casts), number, type_)

    def _plus(self, value: ir.Value | None, number: int, type_: ir.Type) -> ir.Value:
        """The sum of an integer and a number, which is added to the number that the integer ends with."""
        rest, last = (None, 0) if value is None else _split(value)
        if rest is None:
            return self._number(last + number, type_)
        return self._once(arith.AddIOp, rest, self._number(last + number, type_)) if last + number else rest

    def _sum(self, left: ir.Value, right: ir.Value, type_: ir.Type) -> ir.Value:
        """The sum of two integers, to which their numbers are added last."""
        (a, number), (b, other) = _split(left), _split(right)
        both = self._once(arith.AddIOp, a, b) if a is not None and b is not None else b if a is None else a
        return self._plus(both, number + other, type_)

    def _times(self, value: ir.Value, number: int, type_: ir.Type) -> ir.Value:
        """A product, to which what a number added to the integer makes is added last."""
        rest, last = _split(value)
        product = None if rest is None else self._once(arith.MulIOp, rest, self._number(number, type_))
        return self._plus(product, last * number, type_)

    def _components(self, index: Sum, group: tuple[int, ...], bits: int) -> list[ir.Value]:
        """The components of an index of the view, the last one fastest, as integers of so many bits."""
        if (index, group, bits) in self._divided:
            return self._divided[index, group, bits]
        type_ = ir.IntegerType.get_signless(bits)
        rest = self._narrowed(index, type_)
        found: list[ir.Value] = []
        for position in reversed(range(len(group))):
            extent = group[position]
            if extent == 1:
                found.insert(0, self._number(0, type_))
                continue
            if not any(n > 1 for n in group[:position]):
                found.insert(0, rest)
                rest = self._number(0, type_)
                continue
            start, number = _split(rest)
            if start is None or not 0 < number < gcd(divisor_of(start), extent):
                start, number = rest, 0  # else neighbours of a run that lies inside of a component
            found.insert(0, self._plus(self._once(arith.RemUIOp, start, self._number(extent, type_)), number, type_))
            rest = self._once(arith.DivUIOp, start, self._number(extent, type_))
        self._divided[index, group, bits] = found
        return found

    def _emit(
        self, expr: ir.AffineExpr, components: Sequence[ir.Value], extents: Sequence[int], type_: ir.Type
    ) -> ir.Value:
        """An expression's value as an integer of a type; divisions round down also where the dividend is negative."""
        if isinstance(expr, ir.AffineConstantExpr):
            return self._number(ir.AffineConstantExpr(expr).value, type_)
        if isinstance(expr, ir.AffineDimExpr):
            return components[ir.AffineDimExpr(expr).position]
        left, right = operands(expr)
        a = self._emit(left, components, extents, type_)
        if isinstance(expr, ir.AffineAddExpr):
            return self._sum(a, self._emit(right, components, extents, type_), type_)
        if isinstance(expr, ir.AffineMulExpr):
            return self._times(a, ir.AffineConstantExpr(right).value, type_)
        by = ir.AffineConstantExpr(right).value
        low, _ = bounds(left, extents)
        rest, number = _split(a)
        if rest is None or divisor_of(rest) % by == 0:  # neighbours of a run are a number apart after the division too
            if isinstance(expr, ir.AffineModExpr):
                return self._number(number % by, type_)
            linear = coefficients(left, len(extents))
            grows = linear is not None and min(linear[0], default=0) >= 0  # what is left without the number is positive
            divide = arith.DivUIOp if grows else arith.DivSIOp
            divided = None if rest is None else self._once(divide, rest, self._number(by, type_))
            return self._plus(divided, number // by, type_)
        steps = -(low // by) if low < 0 else 0  # makes the dividend positive
        shifted = self._once(arith.AddIOp, a, self._number(steps * by, type_)) if steps else a
        if isinstance(expr, ir.AffineModExpr):
            return self._once(arith.RemUIOp, shifted, self._number(by, type_))
        quotient = self._once(arith.DivUIOp, shifted, self._number(by, type_))
        return self._once(arith.SubIOp, quotient, self._number(steps, type_)) if steps else quotient


def clamp_of(index: ir.Value, sums: Sums) -> Clamp | None:
    """An index that is the smaller one of a sum and a number; None for another one."""
    maker = defining_op(index)
    if maker is None or maker.name != "arith.minui":
        return None
    (terms, number), (others, last) = (sums[operand] for operand in maker.operands)
    return (terms, number, last) if terms and number >= 0 and not others else None


def _index_sum(terms: Terms) -> ir.Value:
    return reduce(add, terms)


def _integer(value: int, type_: ir.Type) -> ir.Value:
    return arith.ConstantOp(type_, ir.IntegerAttr.get(type_, value)).result


def _cast(value: ir.Value, type_: ir.Type) -> ir.Value:
    return arith.IndexCastOp(type_, value).result


def with_unit_last(source: ir.Value, at: list[ir.Value], width: int) -> tuple[ir.Value, list[ir.Value]]:
    """A view of the source whose contiguous axis, as `Gather.unit` takes it, is the last one; and the index in it.

    An access that goes on in the next row is one of the source as a single row.
    """
    type_ = ir.MemRefType(source.type)
    steps = strides(type_)
    if 1 not in steps:
        return source, at
    if type_.shape[steps.index(1)] % width:
        known = [step or 0 for step in steps]
        return as_row(source, known), [reduce(add, [multiply(i, step) for i, step in zip(at, known, strict=True)])]
    axis = steps.index(1)
    order = [*(n for n in range(len(steps)) if n != axis), axis]
    return permuted(source, order), [at[n] for n in order]


def as_row(source: ir.Value, steps: Sequence[int]) -> ir.Value:
    """The source as one row, whose strides are known."""
    type_ = ir.MemRefType(source.type)
    size = 1 + sum((extent - 1) * step for extent, step in zip(type_.shape, steps, strict=True))
    row = ir.MemRefType.get([size], type_.element_type, ir.StridedLayoutAttr.get(0, [1]), type_.memory_space)
    return memref.ReinterpretCastOp(row, source, [], [], [], [0], [size], [1]).result


class Sums(dict[ir.Value, Sum]):
    """What indices add up, each of which is looked at once: valid while no op is erased, and no index replaced."""

    def __missing__(self, index: ir.Value) -> Sum:
        found = self[index] = self._look(index)
        return found

    def _look(self, index: ir.Value) -> Sum:
        maker = defining_op(index)
        if maker is not None and maker.name == "arith.constant":
            return (), ir.IntegerAttr(maker.attributes["value"]).value
        if maker is None or maker.name not in ("arith.addi", "arith.subi"):
            return (index,), 0
        (left, a), (right, b) = (self[operand] for operand in maker.operands)
        if maker.name == "arith.subi":
            return ((index,), 0) if right else (left, a - b)
        return (*left, *right), a + b


def _split(value: ir.Value) -> tuple[ir.Value | None, int]:
    """An integer without the number that is added to it last, or None for a number, and that number."""
    number = integer_of(value)
    return split_constant(value) if number is None else (None, number)
