"""How many elements of a tile a warp holds, padding left out."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.fragments import Fragments
from mlirfuse.distribution.scalars import add, constant, multiply
from mlirfuse.distribution.threads import Threads


def valid_elements(
    threads: Threads, source: Fragments, dims: Sequence[int], *, warp: int | None = None
) -> float | ir.Value:
    """Elements along `dims` that a warp holds: a number if all warps hold as many, else a value of the element type.

    Args:
        threads: the current thread's coordinates.
        source: the tile.
        dims: the reduced dimensions.
        warp: a warp's number along `dims`, the last dimension fastest; the current thread's warp if None.
    """
    layout = source.layout
    static, dynamic = 1, None
    rest = warp
    for dim in sorted(dims, reverse=True):
        position = None
        if rest is not None:
            position, rest = rest % layout.warps[dim], rest // layout.warps[dim]
        if not source.varies(dim):
            continue
        span = layout.lanes[dim] * layout.vector[dim]
        if not any(source.padded((repeat,) * layout.rank, dim) for repeat in range(source.repeats(dim))):
            static *= span * source.repeats(dim)
            continue
        here = _ragged_count(threads, source, dim, span, position)
        dynamic = here if dynamic is None else arith.MulIOp(dynamic, here).result
    if dynamic is None:
        return float(static)
    count = multiply(dynamic, static)
    i32 = ir.IntegerType.get_signless(32)
    return arith.SIToFPOp(source.element_type, arith.IndexCastOp(i32, count).result).result


def _ragged_count(threads: Threads, source: Fragments, dim: int, span: int, warp: int | None) -> ir.Value:
    """Sum over repeats of min(max(extent - start, 0), span), which is the whole span where nothing is padded."""
    layout = source.layout
    start = constant(0)
    if threads.block[dim] is not None:
        start = add(start, multiply(threads.block[dim], layout.repeats[dim] * layout.repeat_stride(dim)))
    if warp is not None:
        start = add(start, constant(warp * span))
    elif threads.warp[dim] is not None:
        start = add(start, multiply(threads.warp[dim], span))
    total = None
    whole = 0
    for repeat in range(source.repeats(dim)):
        if not source.padded((repeat,) * layout.rank, dim):
            whole += span
            continue
        left = arith.SubIOp(constant(source.extents[dim] - repeat * layout.repeat_stride(dim)), start).result
        held = arith.MinSIOp(arith.MaxSIOp(left, constant(0)).result, constant(span)).result
        total = held if total is None else add(total, held)
    assert total is not None  # the caller has found a padded repeat
    return add(total, constant(whole)) if whole else total
