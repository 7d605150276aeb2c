"""The rule of `fuse.moments`: sum and centred sum of squares with one exchange between warps.

Each level works about the mean it knows: a warp's sum gives the warp's mean, about which its lanes sum squares; then
pairs (sum, m2) of warps, and of blocks of a cluster, merge exactly:

    m2 = Σ m2_i + Σ n_i (mean_i - mean)²

(Chan, Golub and LeVeque, 1979.) No sum of uncentred squares is formed, so large means lose no accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.counts import valid_elements
from mlirfuse.distribution.distributor import Distributor, rule
from mlirfuse.distribution.elementwise import recast
from mlirfuse.distribution.exchange import Exchange
from mlirfuse.distribution.fragments import Fragments, Key, widen
from mlirfuse.distribution.reductions import combiner, mask_padding, reduce_in_thread, reduce_over_lanes, tree

_add, _sub, _mul, _div = (combiner(f"arith.{name}") for name in ("addf", "subf", "mulf", "divf"))


@rule("fuse.moments")
def moments(d: Distributor, op: ir.Operation) -> None:
    """Sum and centred sum of squares of a tile along some dimensions."""
    source = d.fragments(op.operands[0])
    dims = tuple(ir.DenseI64ArrayAttr(op.attributes["dims"]))
    zero = _constant(0.0, source.element_type)
    masked = mask_padding(d, source, dims, zero)
    total = reduce_over_lanes(reduce_in_thread(masked, dims, _add), dims, _add)
    count = valid_elements(d.threads, source, dims)
    # Between the two passes over its elements a thread waits for its warp: it keeps them narrow meanwhile.
    squares = _centred_squares(d, recast(d, op.operands[0]), total, count, dims, zero)
    m2 = reduce_over_lanes(reduce_in_thread(squares, dims, _add), dims, _add)

    results = [total.empty(total.extents, total.element_type) for _ in op.results]

    def finish(parts: Sequence[tuple[ir.Value, ...]], level: str) -> tuple[ir.Value, ...]:
        return merge(parts, _counts(source, dims, level, d, len(parts)))

    def deliver(key: Key, values: tuple[ir.Value, ...]) -> None:
        for result, value in zip(results, values, strict=True):
            result.values[key] = value

    for value, result in zip(op.results, results, strict=True):
        d.tiles[value] = result
    d.pending.append(Exchange((total, m2), dims, finish, deliver))
    if not d.pending[-1].needed:
        d.flush()


def _centred_squares(
    d: Distributor, source: Fragments, total: Fragments, count: ir.Value | float, dims: Sequence[int], zero: ir.Value
) -> Fragments:
    """(x - warp mean)² of every element; 0 for padding."""
    n = _constant(count, source.element_type) if isinstance(count, float) else _at_least_one(count)
    means = {key: _div(value, widen(n, total.width)) for key, value in total.values.items()}
    squares = source.empty(source.extents, source.element_type)
    for key in source.keys():
        mean = means[tuple(r if total.varies(n) else 0 for n, r in enumerate(key))]
        centred = _sub(source.values[key], widen(mean, source.width))
        squares.values[key] = _mul(centred, centred)
    return mask_padding(d, squares, dims, zero)


def merge(parts: Sequence[tuple[ir.Value, ...]], counts: Sequence[float | ir.Value]) -> tuple[ir.Value, ...]:
    """Merges (sum, m2) pairs over disjoint elements, given how many elements each covers."""
    if len(parts) == 1:
        return parts[0]
    element_type = parts[0][0].type
    if isinstance(element_type, ir.VectorType):
        element_type = element_type.element_type
    width = ir.VectorType(parts[0][0].type).shape[0] if isinstance(parts[0][0].type, ir.VectorType) else 1

    def number(n: float | ir.Value) -> ir.Value:
        return widen(_constant(n, element_type) if isinstance(n, float) else n, width)

    total = tree([s for s, _ in parts], _add)
    count = number(sum(counts)) if all(isinstance(n, float) for n in counts) else tree([number(n) for n in counts], _add)
    mean = _div(total, count)
    terms = []
    for (s, m2), n in zip(parts, counts, strict=True):
        if n == 0.0:
            continue
        # n_i (mean_i - mean)² = (s_i - n_i mean)² / n_i, with a division by a constant.
        gap = _sub(s, _mul(number(n), mean))
        inverse = number(1.0 / n) if isinstance(n, float) else _div(number(1.0), number(_at_least_one(n)))
        terms.append(_add(m2, _mul(_mul(gap, gap), inverse)))
    return total, tree(terms, _add)


def _counts(
    source: Fragments, dims: Sequence[int], level: str, d: Distributor, senders: int
) -> list[float | ir.Value]:
    """Elements along `dims` that each warp of the block, or each block of the cluster, holds."""
    layout = source.layout
    if level == "blocks":
        return [float(_share(source, dims, layout.blocks, n, _block_share)) for n in range(senders)]
    if prod(layout.blocks[dim] for dim in dims) == 1:
        return [float(_share(source, dims, layout.warps, n, _warp_share)) for n in range(senders)]
    return [valid_elements(d.threads, source, dims, warp=n) for n in range(senders)]


def _share(source: Fragments, dims: Sequence[int], sizes: tuple[int, ...], number: int, share) -> int:  # type: ignore[no-untyped-def]
    count = 1
    for dim in sorted(dims, reverse=True):
        count *= share(source, dim, number % sizes[dim])
        number //= sizes[dim]
    return count


def _warp_share(source: Fragments, dim: int, warp: int) -> int:
    """Elements along `dim` that a warp holds, where no cluster splits the dimension."""
    layout = source.layout
    if not source.varies(dim):
        return 1
    span = layout.lanes[dim] * layout.vector[dim]
    starts = (r * layout.repeat_stride(dim) + warp * span for r in range(source.repeats(dim)))
    return sum(max(0, min(span, source.extents[dim] - start)) for start in starts)


def _block_share(source: Fragments, dim: int, block: int) -> int:
    """Elements along `dim` that a block of the cluster holds."""
    if not source.varies(dim):
        return 1
    span = source.layout.repeats[dim] * source.layout.repeat_stride(dim)
    return max(0, min(span, source.extents[dim] - block * span))


def _at_least_one(count: ir.Value) -> ir.Value:
    """A divisor for sums over `count` elements, which are 0 where there are none."""
    return arith.MaximumFOp(count, _constant(1.0, count.type)).result


def _constant(value: float, element_type: ir.Type) -> ir.Value:
    return arith.ConstantOp(element_type, ir.FloatAttr.get(element_type, value)).result
