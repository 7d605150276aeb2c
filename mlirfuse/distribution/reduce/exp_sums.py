"""The rule of `fuse.exp_sum`: maximum and sum of exponentials with one exchange between warps.

Each level subtracts the maximum that it knows. A thread processes its fragments in batches: it takes the batch's
maximum, adds the batch's exponentials about the largest value so far, and rescales the earlier sum. Pairs (max, sum) of
lanes, of warps, and of blocks of a cluster merge in the same way:

    sum = Σ sum_i exp(max_i - max)

A partial result of nothing but -inf subtracts 0 in place of -inf, so that its sum is 0 and not the NaN of -inf - -inf.
The last level, which sees the whole row, subtracts the maximum itself: a row of nothing but -inf gives NaN, as the two
separate reductions would.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.analysis.arithmetic.casts import HALF, element_type
from mlirfuse.analysis.arithmetic.combining import neutral
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.elementwise import widened, widening_of
from mlirfuse.distribution.exchange.exchange import Exchange
from mlirfuse.distribution.exchange.partials import Partial, Partials
from mlirfuse.distribution.reduce.reductions import (
    combiner,
    mask_padding,
    product_of_sum,
    reduce_fragments,
    reduce_over_lanes,
    reduce_packed,
    reduction_groups,
)
from mlirfuse.distribution.threads.fragments import Fragments, Key, widen

_add, _sub, _mul, _max = (combiner(f"arith.{name}") for name in ("addf", "subf", "mulf", "maximumf"))


BATCH = 8
"""Fragments of a thread that share one maximum in depth-first order: the exponentials of the first fragments overlap
with the loads of later ones.
"""


@rule("fuse.exp_sum")
def exp_sum(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.exp_sum`, which reduces a tile along some dimensions."""
    source = d.fragments(op.operands[0])
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    lowest = arith.ConstantOp(source.element_type, neutral("arith.maximumf", source.element_type)).result
    zero = arith.ConstantOp(source.element_type, neutral("arith.addf", source.element_type)).result
    layout = source.layout
    blocks, warps = (all(sizes[n] == 1 for n in dims) for sizes in (layout.blocks, layout.warps))
    thread_maximum, thread_sum = _of_thread(d, op.operands[0], dims, lowest, zero)
    maximum = reduce_over_lanes(thread_maximum, dims, _max)
    about = maximum if blocks and warps else maximum.map(lambda m: _finite(m, lowest, zero))
    rescaled = thread_sum.like(
        thread_sum.extents,
        thread_sum.element_type,
        lambda key: _mul(thread_sum.at(key), _exp(_sub(thread_maximum.at(key), about.at(key)))),
    )
    sums = reduce_over_lanes(rescaled, dims, _add)
    results = [sums.like(sums.extents, sums.element_type) for _ in op.results]

    def merge(partials: Partials, level: str) -> tuple[ir.Value, ...]:
        return _merge(partials, lowest, zero, last=level != "warps" or blocks)

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        for result, value in zip(results, values, strict=True):
            result.values[key] = value

    for value, result in zip(op.results, results, strict=True):
        d.tiles[value] = result
    d.pending.append(Exchange((maximum, sums), dims, merge, deliver))
    if not d.pending[-1].needed:
        d.flush()


def _of_thread(
    d: Distributor, value: ir.Value, dims: Sequence[int], lowest: ir.Value, zero: ir.Value
) -> tuple[Fragments, Fragments]:
    """The (max, sum) pairs of a thread's elements; a maximum of -inf goes with a sum of 0."""
    source = d.fragments(value)
    cast = widening_of(d, value)
    if cast is not None and element_type(cast.operands[0].type).width < HALF:
        cast = None  # there are no comparisons in float8
    # If the tile is cast from half precision, two elements are compared at a time before the cast.
    narrow = source if cast is None else d.fragments(cast.operands[0])
    bottom = arith.ConstantOp(narrow.element_type, neutral("arith.maximumf", narrow.element_type)).result
    elements = mask_padding(d, narrow, dims, bottom)
    abouts: dict[Key, ir.Value] = {}
    terms = source.like(
        source.extents,
        source.element_type,
        lambda key: _exp(_sub(source.at(key), widen(abouts[key], source.width))),
    )
    terms = mask_padding(d, terms, dims, zero)
    extents = tuple(1 if dim in dims else extent for dim, extent in enumerate(source.extents))
    maximum, sums = (source.like(extents, source.element_type) for _ in range(2))
    for kept, keys in reduction_groups(source, dims).items():
        size = BATCH if d.depth_first else len(keys)
        for batch in (keys[start : start + size] for start in range(0, len(keys), size)):
            largest = reduce_packed(elements, batch, dims, _max)
            if cast is not None:
                largest = widened(cast, largest, source.element_type)
            before = maximum.values.get(kept)
            maximum.values[kept] = largest if before is None else _max(before, largest)
            about = _finite(maximum.values[kept], lowest, zero)
            abouts.update(dict.fromkeys(batch, about))
            added = reduce_fragments(d, terms, batch, dims, _add)
            if before is not None:
                added = _add(product_of_sum(sums.values[kept], _exp(_sub(before, about))), added)
            sums.values[kept] = added
    return maximum, sums


def _exp(x: ir.Value) -> ir.Value:
    """exp(x) for x <= 0.

    The approximate instruction has a relative error of |x| 2^-24, which exp(x) weights in a sum of at least 1: the sum
    is as exact as one of correctly rounded terms. float64 has no such instruction and ignores the flag.
    """
    return math.ExpOp(x, fastmath=arith.FastMathFlags.afn).result


def _finite(maximum: ir.Value, lowest: ir.Value, zero: ir.Value) -> ir.Value:
    """The value to subtract before exponentials: the maximum, or 0 if the maximum is -inf."""
    width = ir.VectorType(maximum.type).shape[0] if isinstance(maximum.type, ir.VectorType) else 1
    empty = arith.CmpFOp(arith.CmpFPredicate.OEQ, maximum, widen(lowest, width)).result
    return arith.SelectOp(empty, widen(zero, width), maximum).result


def _merge(partials: Partials, lowest: ir.Value, zero: ir.Value, *, last: bool) -> tuple[ir.Value, ...]:
    """Merges the (max, sum) pairs of all warps of the block, or of all blocks of the cluster."""
    maximum = partials.combine(lambda partial: partial.values[0], _max, lowest)
    about = maximum if last else _finite(maximum, lowest, zero)

    def rescaled(partial: Partial) -> ir.Value:
        return product_of_sum(partial.values[1], _exp(_sub(partial.values[0], about)))

    return maximum, partials.combine(rescaled, _add, zero)
