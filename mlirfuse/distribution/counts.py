"""How many elements of a tile each warp and block holds, padding left out.

The counts are known at compile time for every (block, warp) pair; a thread picks its own by comparing its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.fragments import Fragments
from mlirfuse.distribution.scalars import add, constant, less, multiply
from mlirfuse.distribution.threads import Threads


def held_elements(source: Fragments, dims: Sequence[int], block: int, warp: int | None = None) -> int:
    """Elements along `dims` that a block of the cluster holds, or one warp of it.

    Args:
        source: the tile.
        dims: the reduced dimensions.
        block: the block's number along `dims`, the last dimension fastest.
        warp: the warp's number along `dims` likewise; all of them if None.
    """
    layout = source.layout
    count = 1
    for dim in sorted(dims, reverse=True):
        block, block_digit = divmod(block, layout.blocks[dim])
        digits = range(layout.warps[dim])
        if warp is not None:
            warp, warp_digit = divmod(warp, layout.warps[dim])
            digits = range(warp_digit, warp_digit + 1)
        if source.varies(dim):
            count *= sum(_along(source, dim, block_digit, digit) for digit in digits)
    return count


def _along(source: Fragments, dim: int, block: int, warp: int) -> int:
    layout = source.layout
    span = layout.span(dim)
    start = block * layout.repeats[dim] * layout.repeat_stride(dim) + warp * layout.within(dim) * span
    starts = (start + layout.offset(dim, fragment) for fragment in range(source.repeats(dim)))
    return sum(max(0, min(span, source.extents[dim] - first)) for first in starts)


def pick(threads: Threads, source: Fragments, dims: Sequence[int], table: Sequence[float]) -> ir.Value:
    """The entry of the current thread's warp in a table over (block, warp) pairs along `dims`, the warp fastest."""
    layout = source.layout
    warps = prod(layout.warps[d] for d in dims)
    block = threads.linear(threads.block, layout.blocks, dims)
    warp = threads.linear(threads.warp, layout.warps, dims)
    if block is not None:
        block = multiply(block, warps)
        warp = block if warp is None else add(block, warp)
    return select_from(warp, table, source.element_type)


def select_from(number: ir.Value | None, table: Sequence[float], element_type: ir.Type) -> ir.Value:
    """`table[number]` by comparisons, one for each run of equal entries."""
    runs = [(value, len(list(group))) for value, group in groupby(table)]
    end = len(table)
    result = None
    for value, length in reversed(runs):
        entry = arith.ConstantOp(element_type, ir.FloatAttr.get(element_type, value)).result
        if result is None:
            result = entry
        else:
            assert number is not None  # more than one run means more than one warp
            result = arith.SelectOp(less(number, constant(end)), entry, result).result
        end -= length
    assert result is not None
    return result
