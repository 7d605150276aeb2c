"""The rule of `fuse.moments`: sum and centred sum of squares with one exchange between warps.

Each level uses the mean that it knows: a warp's lanes sum squares about the warp's own mean, and pairs (sum, m2) of
warps, and of blocks of a cluster, merge exactly:

    m2 = Σ m2_i + Σ n_i (mean_i - mean)² = Σ m2_i + Σ (sum_i - n_i mean)² / n_i

(Chan, Golub and LeVeque, 1979.) No sum of uncentred squares is formed, so the only error that grows with the mean is
the rounding of the warps' sums. The number n_i of a warp's elements is known at compile time, so no division is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.elementwise import recast
from mlirfuse.distribution.exchange.exchange import Exchange
from mlirfuse.distribution.exchange.partials import Partial, Partials
from mlirfuse.distribution.reduce.counts import Held
from mlirfuse.distribution.reduce.reductions import (
    combiner,
    mask_padding,
    product_of_sum,
    reduce_in_thread,
    reduce_over_lanes,
)
from mlirfuse.distribution.threads.fragments import Fragments, Key, widen

_add, _sub, _mul = (combiner(f"arith.{name}") for name in ("addf", "subf", "mulf"))


@rule("fuse.moments")
def moments(d: Distributor, op: ir.Operation) -> None:
    """The rule of `fuse.moments`, which reduces a tile along some dimensions."""
    source = d.fragments(op.operands[0])
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    zero = _constant(0.0, source.element_type)
    sums = reduce_over_lanes(reduce_in_thread(d, mask_padding(d, source, dims, zero), dims, _add), dims, _add)
    # A thread waits for its warp between the two passes over its elements; the elements may stay narrow meanwhile.
    elements = recast(d, op.operands[0], sums) if d.depth_first else source
    squares = _centred_squares(d, elements, sums, dims)
    m2 = reduce_over_lanes(reduce_in_thread(d, mask_padding(d, squares, dims, zero), dims, _add), dims, _add)
    results = [sums.like(sums.extents, sums.element_type) for _ in op.results]

    def merge(partials: Partials, level: str) -> tuple[ir.Value, ...]:
        return _merge(d, source, dims, partials, level)

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        for result, value in zip(results, values, strict=True):
            result.values[key] = value

    for value, result in zip(op.results, results, strict=True):
        d.tiles[value] = result
    d.pending.append(Exchange((sums, m2), dims, merge, deliver))
    if not d.pending[-1].needed:
        d.flush()


def _centred_squares(d: Distributor, source: Fragments, sums: Fragments, dims: Sequence[int]) -> Fragments:
    """(x - warp mean)² of every element."""
    # The sum of a warp with padding only is 0, so any inverse count will do.
    factor = _held(d, source, dims).warp_inverse()
    means = sums.map(lambda s: _mul(s, widen(factor, sums.width)))
    means.force()

    def square(key: Key) -> ir.Value:
        centred = _sub(source.at(key), widen(means.at(key), source.width))
        return product_of_sum(centred, centred)

    return source.like(source.extents, source.element_type, square)


def _merge(
    d: Distributor, source: Fragments, dims: Sequence[int], partials: Partials, level: str
) -> tuple[ir.Value, ...]:
    """Merges the (sum, m2) pairs of all warps of the block, of all blocks of the cluster, or of all warps of these."""
    held = _held(d, source, dims)

    def recentred(partial: Partial) -> ir.Value:
        """A partial result's squares about the common mean: m2_i + (sum_i - n_i mean)² / n_i."""
        sum_i, m2_i = partial.values
        width = ir.VectorType(sum_i.type).shape[0] if isinstance(sum_i.type, ir.VectorType) else 1
        sender = partial.sender_value if partial.sender is None else partial.sender
        assert sender is not None
        count, inverse = held.sent(sender, level)
        gap = _sub(sum_i, product_of_sum(widen(count, width), mean))
        return _add(m2_i, product_of_sum(_mul(gap, gap), widen(inverse, width)))

    zero = _constant(0.0, source.element_type)
    sums = partials.combine(lambda partial: partial.values[0], _add, zero)
    factor = held.combined_inverse(level)
    width = ir.VectorType(sums.type).shape[0] if isinstance(sums.type, ir.VectorType) else 1
    mean = _mul(sums, widen(factor, width))
    return sums, partials.combine(recentred, _add, zero)


def _held(d: Distributor, source: Fragments, dims: Sequence[int]) -> Held:
    return Held(d.threads, source, dims, d.shift() if source.layout.is_shifted else None)


def _constant(value: float, element_type: ir.Type) -> ir.Value:
    return arith.ConstantOp(element_type, ir.FloatAttr.get(element_type, value)).result
