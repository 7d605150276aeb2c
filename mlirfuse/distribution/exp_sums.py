"""The rule of `fuse.exp_sum`: maximum and sum of exponentials about it with one exchange between warps.

Each level works about the maximum it knows: a warp's maximum, about which its lanes sum exponentials; then pairs
(max, sum) of warps, and of blocks of a cluster, merge by rescaling:

    sum = Σ sum_i exp(max_i - max)

A part that holds nothing but -inf sums about 0 instead: its sum is 0 then, and not the NaN of -inf - -inf. A row of
nothing but -inf has that NaN, as the two reductions that the op stands for would have it: the last level, which sees
the whole row, takes its maximum as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.elementwise import recast, widened, widening_of
from mlirfuse.distribution.exchange import Exchange
from mlirfuse.distribution.fragments import Fragments, Key, widen
from mlirfuse.distribution.parts import Part, Parts
from mlirfuse.distribution.reductions import (
    combiner,
    mask_padding,
    reduce_in_thread,
    reduce_over_lanes,
    reduce_packed,
)
from mlirfuse.tiling.combining import neutral

_add, _sub, _mul, _max = (combiner(f"arith.{name}") for name in ("addf", "subf", "mulf", "maximumf"))


@rule("fuse.exp_sum")
def exp_sum(d: Distributor, op: ir.Operation) -> None:
    """Maximum and sum of exponentials of a tile along some dimensions."""
    source = d.fragments(op.operands[0])
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    lowest = arith.ConstantOp(source.element_type, neutral("arith.maximumf", source.element_type)).result
    zero = arith.ConstantOp(source.element_type, neutral("arith.addf", source.element_type)).result
    layout = source.layout
    single = all(layout.warps[n] * layout.blocks[n] == 1 for n in dims)
    maximum = reduce_over_lanes(_thread_maximum(d, op.operands[0], dims), dims, _max)
    # Between the two passes over its elements a thread waits for its warp: it may keep them narrow meanwhile.
    again = recast(d, op.operands[0], maximum) if d.depth_first else source
    exponentials = _exponentials(again, maximum if single else maximum.map(lambda m: _finite(m, lowest, zero)))
    total = reduce_over_lanes(reduce_in_thread(d, mask_padding(d, exponentials, dims, zero), dims, _add), dims, _add)
    results = [total.like(total.extents, total.element_type) for _ in op.results]

    def finish(parts: Parts, level: str) -> tuple[ir.Value, ...]:
        last = level == "blocks" or all(layout.blocks[n] == 1 for n in dims)
        return _merge(parts, lowest, zero, last=last)

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        for result, value in zip(results, values, strict=True):
            result.values[key] = value

    for value, result in zip(op.results, results, strict=True):
        d.tiles[value] = result
    d.pending.append(Exchange((maximum, total), dims, finish, deliver))
    if not d.pending[-1].needed:
        d.flush()


def _thread_maximum(d: Distributor, value: ir.Value, dims: Sequence[int]) -> Fragments:
    """The maximum of what a thread holds; where the tile is cast from a narrow one, of that, two elements at a time."""
    cast = widening_of(d, value)
    narrow = d.fragments(value if cast is None else cast.operands[0])
    lowest = arith.ConstantOp(narrow.element_type, neutral("arith.maximumf", narrow.element_type)).result
    masked = mask_padding(d, narrow, dims, lowest)
    if cast is None:
        return reduce_in_thread(d, masked, dims, _max)
    element_type = ir.VectorType(value.type).element_type
    return reduce_packed(masked, dims, _max).map(lambda part: widened(cast, part, element_type), element_type)


def _exponentials(source: Fragments, maximum: Fragments) -> Fragments:
    """exp(x - maximum) of every element."""
    maximum.force()

    def exponential(key: Key) -> ir.Value:
        return _exp(_sub(source.at(key), widen(maximum.at(key), source.width)))

    return source.like(source.extents, source.element_type, exponential)


def _exp(x: ir.Value) -> ir.Value:
    """exp(x) of an x that is not positive.

    The special unit's relative error, |x| 2^-24, is weighted by exp(x) in the sum, which is at least 1: the sum is as
    exact as one of exactly rounded terms. Double precision has no such unit, and ignores the flag.
    """
    return math.ExpOp(x, fastmath=arith.FastMathFlags.afn).result


def _finite(maximum: ir.Value, lowest: ir.Value, zero: ir.Value) -> ir.Value:
    """A number about which -inf may be summed: the maximum, or 0 in place of -inf."""
    width = ir.VectorType(maximum.type).shape[0] if isinstance(maximum.type, ir.VectorType) else 1
    empty = arith.CmpFOp(arith.CmpFPredicate.OEQ, maximum, widen(lowest, width)).result
    return arith.SelectOp(empty, widen(zero, width), maximum).result


def _merge(parts: Parts, lowest: ir.Value, zero: ir.Value, *, last: bool) -> tuple[ir.Value, ...]:
    """Merges the (max, sum) pairs of all warps of the block, or of all blocks of the cluster."""
    maximum = parts.combine(lambda part: part.values[0], _max, lowest)
    about = maximum if last else _finite(maximum, lowest, zero)

    def rescaled(part: Part) -> ir.Value:
        return _mul(part.values[1], _exp(_sub(part.values[0], about)))

    return maximum, parts.combine(rescaled, _add, zero)
