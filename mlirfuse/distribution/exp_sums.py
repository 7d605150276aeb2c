"""The rule of `fuse.exp_sum`: maximum and sum of exponentials about it with one exchange between warps.

Each level works about the maximum it knows: a warp's maximum, about which its lanes sum exponentials; then pairs
(max, sum) of warps, and of blocks of a cluster, merge by rescaling:

    sum = Σ sum_i exp(max_i - max)

A part that holds nothing but -inf sums about 0 instead: its sum is 0 then, and not the NaN of -inf - -inf. A row of
nothing but -inf has that NaN, as the two reductions that the op stands for would have it: the last level, which sees
the whole row, takes its maximum as it is.
"""

from __future__ import annotations

from mlir import ir
from mlir.dialects import arith, math

from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.elementwise import recast
from mlirfuse.distribution.exchange import Exchange
from mlirfuse.distribution.fragments import Fragments, Key, widen
from mlirfuse.distribution.parts import Part, Parts
from mlirfuse.distribution.reductions import combiner, mask_padding, reduce_in_thread, reduce_over_lanes
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
    maximum = reduce_over_lanes(reduce_in_thread(d, mask_padding(d, source, dims, lowest), dims, _max), dims, _max)
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


def _exponentials(source: Fragments, maximum: Fragments) -> Fragments:
    """exp(x - maximum) of every element."""
    maximum.force()

    def exponential(key: Key) -> ir.Value:
        return math.ExpOp(_sub(source.at(key), widen(maximum.at(key), source.width))).result

    return source.like(source.extents, source.element_type, exponential)


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
        return _mul(part.values[1], math.ExpOp(_sub(part.values[0], about)).result)

    return maximum, parts.combine(rescaled, _add, zero)
