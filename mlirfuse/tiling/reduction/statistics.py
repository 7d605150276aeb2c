"""Statistics that a block carries from tile to tile, stores as a partial result, and combines with those of others.

A statistic is a list of tile vectors, its parts, whose positions along the reduced dimensions are independent until
`reduced` combines them across the block's threads.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlir import ir
from mlir.dialects import arith, math, vector

from mlirfuse.analysis.arithmetic.combining import combiner_of, neutral
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.tiling.emitter import TileEmitter, vector_kind
from mlirfuse.tiling.reduction.reduction_ops import combine, element_type, neutral_scalar, neutral_tile
from mlirfuse.tiling.tiles import Shape, broadcast, splat, with_unit_dims

Parts = list[ir.Value]


class Statistic(Protocol):
    """A reduction of a kernel, in parts.

    Attributes:
        structure: the reduction.
    """

    structure: OpStructure

    @property
    def types(self) -> list[ir.Type]:
        """The element type of each part; those in front of the first `uniform` do not vary along what is kept."""

    @property
    def uniform(self) -> int:
        """How many of the parts, the first ones, are one number for all of a slice."""

    def start(self, shape: Shape, ragged: Collection[int]) -> Parts:
        """The parts of no element, for tiles that are added along whose `ragged` dimensions a mask varies."""

    def add(self, emitter: TileEmitter, parts: Parts, mask: ir.Value | None) -> Parts:
        """The parts with a tile's elements inside the mask."""

    def merge(self, parts: Parts, others: Parts, mask: ir.Value | None) -> Parts:
        """The parts with others, of positions inside the mask."""

    def reduced(self, parts: Parts) -> Parts:
        """The parts with extent 1 along the reduced dimensions."""

    def results(self, emitter: TileEmitter, parts: Parts) -> Parts:
        """The values of the reduction's results, from parts of extent 1."""


@dataclass
class PlainStatistic:
    """A `linalg.generic` that combines elements by one op, such as a sum or a maximum."""

    structure: OpStructure
    dims: tuple[int, ...]
    uniform: int = 0

    @property
    def types(self) -> list[ir.Type]:
        return [element_type(self.structure)]

    def start(self, shape: Shape, ragged: Collection[int]) -> Parts:
        return [neutral_tile(self.structure, shape)]

    def add(self, emitter: TileEmitter, parts: Parts, mask: ir.Value | None) -> Parts:
        return [combine(self.structure, parts[0], emitter.combine_input(self.structure), mask)]

    def merge(self, parts: Parts, others: Parts, mask: ir.Value | None) -> Parts:
        return [combine(self.structure, parts[0], others[0], mask)]

    def reduced(self, parts: Parts) -> Parts:
        return [_over(parts[0], self.dims, combiner_of(self.structure).name, neutral_scalar(self.structure))]

    def results(self, emitter: TileEmitter, parts: Parts) -> Parts:
        return [emitter.combined(self.structure, parts[0])]


@dataclass
class Moments:
    """`fuse.moments`: the count, the sum, and the sum of squares about the mean of each position.

    Each element updates them as Youngs and Cramer do, and partial results merge as Chan, Golub and LeVeque's do, so
    that the variance never cancels.
    """

    structure: OpStructure
    dims: tuple[int, ...]
    uniform: int = 1

    @property
    def types(self) -> list[ir.Type]:
        return [element_type(self.structure)] * 3

    def start(self, shape: Shape, ragged: Collection[int]) -> Parts:
        zero = self._constant(0.0)
        counts = tuple(n if d in self.dims and d in ragged else 1 for d, n in enumerate(shape))
        return [splat(zero, counts), splat(zero, shape), splat(zero, shape)]

    def add(self, emitter: TileEmitter, parts: Parts, mask: ir.Value | None) -> Parts:
        count, total, squares = parts
        shape = _shape(total)
        x = broadcast(emitter.operand(self.structure, 0), shape)
        more = arith.AddFOp(count, splat(self._constant(1.0), _shape(count))).result
        weight = arith.MulFOp(count, self._reciprocal(more)).result
        deviation = arith.SubFOp(x, self._mean(count, total)).result
        # The weight of a first element is 0, and meets the deviation before that is squared, which may overflow.
        weighted = arith.MulFOp(deviation, broadcast(weight, shape)).result
        found = [more, arith.AddFOp(total, x).result, math.FmaOp(weighted, deviation, squares).result]
        return [_inside(mask, new, old) for new, old in zip(found, parts, strict=True)]

    def merge(self, parts: Parts, others: Parts, mask: ir.Value | None) -> Parts:
        (count, total, squares), (other, more, further) = parts, others
        shape = _shape(total)
        both = arith.AddFOp(count, other).result
        deviation = arith.SubFOp(self._mean(other, more), self._mean(count, total)).result
        share = arith.MulFOp(other, self._reciprocal(both)).result
        weight = broadcast(arith.MulFOp(count, share).result, shape)
        found = [
            both,
            arith.AddFOp(total, more).result,
            math.FmaOp(arith.MulFOp(deviation, weight).result, deviation, arith.AddFOp(squares, further).result).result,
        ]
        return [_inside(mask, new, old) for new, old in zip(found, parts, strict=True)]

    def reduced(self, parts: Parts) -> Parts:
        zero, shape = self._constant(0.0), _shape(parts[1])
        count = broadcast(parts[0], tuple(n if d in self.dims else 1 for d, n in enumerate(shape)))
        total = _over(parts[1], self.dims, "arith.addf", zero)
        everything = _over(count, self.dims, "arith.addf", zero)
        mean = broadcast(self._mean(everything, total), shape)
        deviation = arith.SubFOp(self._mean(count, parts[1]), mean).result
        weighted = arith.MulFOp(deviation, broadcast(count, shape)).result
        squares = math.FmaOp(weighted, deviation, parts[2]).result
        return [everything, total, _over(squares, self.dims, "arith.addf", zero)]

    def results(self, emitter: TileEmitter, parts: Parts) -> Parts:
        return parts[1:]

    def _mean(self, count: ir.Value, total: ir.Value) -> ir.Value:
        """The mean of each position; 0 where it has no element."""
        return arith.MulFOp(total, broadcast(self._reciprocal(count), _shape(total))).result

    def _reciprocal(self, count: ir.Value) -> ir.Value:
        """1 / count, or 1 for no element."""
        one = splat(self._constant(1.0), _shape(count))
        return arith.DivFOp(one, arith.MaximumFOp(count, one).result).result

    def _constant(self, value: float) -> ir.Value:
        type_ = element_type(self.structure)
        return arith.ConstantOp(type_, ir.FloatAttr.get(type_, value)).result


@dataclass
class ExponentialSum:
    """`fuse.exp_sum`: the maximum of each position, and the sum of exponentials about it.

    A larger maximum rescales the sum so far, as Milakov and Gimelshein do. Positions without an element, or with
    nothing but -inf, subtract 0 in place of -inf, so that their sum is 0 and not NaN.
    """

    structure: OpStructure
    dims: tuple[int, ...]
    uniform: int = 0

    @property
    def types(self) -> list[ir.Type]:
        return [element_type(self.structure)] * 2

    def start(self, shape: Shape, ragged: Collection[int]) -> Parts:
        return [splat(self._neutral("arith.maximumf"), shape), splat(self._neutral("arith.addf"), shape)]

    def add(self, emitter: TileEmitter, parts: Parts, mask: ir.Value | None) -> Parts:
        shape = _shape(parts[0])
        return self._combined(parts, broadcast(emitter.operand(self.structure, 0), shape), None, mask)

    def merge(self, parts: Parts, others: Parts, mask: ir.Value | None) -> Parts:
        return self._combined(parts, others[0], others[1], mask)

    def reduced(self, parts: Parts) -> Parts:
        maximum = _over(parts[0], self.dims, "arith.maximumf", self._neutral("arith.maximumf"))
        scale = self._exponential(parts[0], broadcast(self._finite(maximum), _shape(parts[0])))
        terms = arith.MulFOp(parts[1], scale).result
        return [maximum, _over(terms, self.dims, "arith.addf", self._neutral("arith.addf"))]

    def results(self, emitter: TileEmitter, parts: Parts) -> Parts:
        """The sum of nothing but -inf is NaN, as that of exponentials of its differences from the maximum."""
        maximum, total = parts
        return [maximum, arith.AddFOp(total, arith.SubFOp(maximum, maximum).result).result]

    def _combined(self, parts: Parts, values: ir.Value, sums: ir.Value | None, mask: ir.Value | None) -> Parts:
        """The parts with those of elements of a sum of 1 each, or of `sums`."""
        maximum, total = parts
        largest = arith.MaximumFOp(maximum, values).result
        about = self._finite(largest)
        more = self._exponential(values, about)
        if sums is not None:
            more = arith.MulFOp(sums, more).result
        found = [largest, math.FmaOp(total, self._exponential(maximum, about), more).result]
        return [_inside(mask, new, old) for new, old in zip(found, parts, strict=True)]

    def _finite(self, maximum: ir.Value) -> ir.Value:
        """What to subtract before exponentials: the maximum, or 0 where it is -inf."""
        lowest, zero = (splat(self._neutral(name), _shape(maximum)) for name in ("arith.maximumf", "arith.addf"))
        return arith.SelectOp(arith.CmpFOp(arith.CmpFPredicate.OEQ, maximum, lowest).result, zero, maximum).result

    def _exponential(self, value: ir.Value, about: ir.Value) -> ir.Value:
        """exp(value - about), at most 1, by the approximate instruction: see `distribution/reduce/exp_sums.py`."""
        return math.ExpOp(arith.SubFOp(value, about).result, fastmath=arith.FastMathFlags.afn).result

    def _neutral(self, name: str) -> ir.Value:
        type_ = element_type(self.structure)
        return arith.ConstantOp(type_, neutral(name, type_)).result


_JOINT: dict[str, type[Moments] | type[ExponentialSum]] = {"fuse.moments": Moments, "fuse.exp_sum": ExponentialSum}


def statistic_of(structure: OpStructure, dims: Sequence[int]) -> Statistic:
    """The statistic of a reduction over dimensions."""
    return _JOINT.get(structure.op.name, PlainStatistic)(structure, tuple(dims))


def _over(tile: ir.Value, dims: Collection[int], name: str, start: ir.Value) -> ir.Value:
    """A tile reduced over dimensions, which it keeps with extent 1."""
    shape = _shape(tile)
    reduced = [d for d in sorted(dims) if shape[d] > 1]
    if not reduced:
        return tile
    kept = [d for d in range(len(shape)) if d not in reduced]
    type_: ir.Type = start.type
    first = start
    if kept:
        type_ = ir.VectorType.get([shape[d] for d in kept], start.type)
        first = splat(start, [shape[d] for d in kept])
    op = vector.MultiDimReductionOp(vector_kind(name), tile, first, reduced, results=[type_])
    return with_unit_dims(op.result, kept, len(shape))


def _inside(mask: ir.Value | None, new: ir.Value, old: ir.Value) -> ir.Value:
    """The new value inside the mask, the old one outside."""
    if mask is None:
        return new
    return arith.SelectOp(broadcast(mask, _shape(new)), new, old).result


def _shape(tile: ir.Value) -> Shape:
    return tuple(ir.VectorType(tile.type).shape)
