"""Number of elements of a tile that each warp and block holds, without padding.

The counts of all (block, warp) pairs are known at compile time, and a thread selects its own by comparisons. Where a
layout shifts rows, the counts of warps with a row's first and last elements depend on the shift and are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from itertools import groupby
from math import prod
from typing import TypeAlias

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.threads.fragments import Fragments
from mlirfuse.distribution.threads.scalars import add, constant, less, multiply
from mlirfuse.distribution.threads.threads import Threads
from mlirfuse.schedule.layout import BlockedLayout


def held_elements(source: Fragments, dims: Sequence[int], block: int, warp: int | None = None) -> int:
    """Number of elements along `dims` that a block of the cluster holds, or one warp of that block.

    Args:
        source: the tile.
        dims: the reduced dimensions.
        block: the block's number along `dims`, the last dimension fastest.
        warp: the warp's number along `dims` likewise; None for all warps.
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
            extent, fragments = source.extents[dim], source.repeats(dim)
            count *= sum(_along(layout, dim, extent, fragments, block_digit, digit) for digit in digits)
    return count


@lru_cache(maxsize=1024)  # each sender of an exchange is asked for with all others
def _along(layout: BlockedLayout, dim: int, extent: int, fragments: int, block: int, warp: int) -> int:
    """Elements along a dimension, of so many, that a warp of a block holds in so many fragments."""
    span = layout.span(dim)
    start = block * layout.repeats[dim] * layout.repeat_stride(dim) + warp * layout.within(dim) * span
    runs = range(0, fragments, layout.neighbours(dim))
    starts = (start + layout.offset(dim, fragment) for fragment in runs)
    return sum(max(0, min(span, extent - first)) for first in starts)


Count: TypeAlias = float | ir.Value
"""A number of elements or its inverse: known at compile time, or computed from the row's shift."""


class Held:
    """Number of elements that each sender of an exchange holds, and its inverse; the inverse is 1 for a sender without
    elements.

    Args:
        threads: the current thread's coordinates.
        source: the tile.
        dims: the reduced dimensions.
        shift: the thread's shift in elements, in a layout that shifts rows.
    """

    def __init__(self, threads: Threads, source: Fragments, dims: Sequence[int], shift: ir.Value | None = None):
        layout = source.layout
        self._source, self._dims, self._shift = source, dims, shift
        self._type = source.element_type
        self._blocks, self._warps = (prod(sizes[n] for n in dims) for sizes in (layout.blocks, layout.warps))
        self._block = threads.linear(threads.block, layout.blocks, dims)
        self._warp = threads.linear(threads.warp, layout.warps, dims)

    def warp_inverse(self) -> ir.Value:
        """The inverse of the number of elements that the current thread's warp holds."""
        number = self._warp
        if self._block is not None:
            first = multiply(self._block, self._warps)
            number = first if number is None else add(first, number)
        return select_from(number, self._inverses(self._table("cluster")), self._type)

    def sent(self, sender: ir.Value | int, level: str) -> tuple[ir.Value, ir.Value]:
        """The number of elements that a sender of a step holds, and its inverse.

        Args:
            sender: the sender's number.
            level: "warps" of the block, "blocks" of the cluster, or all warps of the "cluster".
        """
        if level == "warps" and self._block is not None:
            sender = add(multiply(self._block, self._warps), _index(sender))
        number = None if isinstance(sender, int) else sender
        table = [self._of(sender, level)] if isinstance(sender, int) else self._table(level)
        return select_from(number, table, self._type), select_from(number, self._inverses(table), self._type)

    def combined_inverse(self, level: str) -> ir.Value:
        """The inverse of the number of elements that all senders of a step hold together."""
        if level != "warps" or self._blocks == 1:
            total = sum(held_elements(self._source, self._dims, block) for block in range(self._blocks))
            return select_from(None, self._inverses([float(total)]), self._type)
        return select_from(self._block, self._inverses(self._table("blocks")), self._type)

    def _table(self, level: str) -> list[Count]:
        """The number of elements of each sender of a level, by the sender's number."""
        return [self._of(n, level) for n in range(self._blocks * (self._warps if level != "blocks" else 1))]

    def _of(self, sender: int, level: str) -> Count:
        block, warp = (sender, None) if level == "blocks" else divmod(sender, self._warps)
        if self._shift is None:
            return float(held_elements(self._source, self._dims, block, warp))
        return self._of_shifted(self._shift, block, warp)

    def _of_shifted(self, shift: ir.Value, block: int, warp: int | None) -> Count:
        """The number of elements in a shifted row: the first warp has fewer by the shift, and the row's end moves."""
        (dim,) = self._dims
        layout, extent = self._source.layout, self._source.extents[dim]
        size = layout.repeats[dim] * layout.repeat_stride(dim)
        span, starts = size, [block * size]
        if warp is not None:
            span = layout.span(dim)
            starts = [block * size + warp * span + layout.offset(dim, n) for n in range(layout.repeats[dim])]
        known, computed = 0, []
        for start in starts:
            fewest, most = (max(0, min(span, extent + n - start)) for n in (0, layout.slack(dim)))
            if fewest == most:
                known += most
                continue
            held = arith.MinSIOp(add(shift, constant(extent - start)), constant(span)).result
            computed.append(arith.MaxSIOp(held, constant(0)).result)
        is_first = starts[0] == 0
        if not computed and not is_first:
            return float(known)
        count = reduce(add, computed, constant(known))
        if is_first:
            count = arith.SubIOp(count, shift).result
        return arith.SIToFPOp(self._type, arith.IndexCastOp(ir.IntegerType.get_signless(32), count).result).result

    def _inverses(self, table: Sequence[Count]) -> list[Count]:
        return [self._inverse(count) for count in table]

    def _inverse(self, count: Count) -> Count:
        if isinstance(count, float):
            return 1.0 / max(1.0, count)
        one = arith.ConstantOp(self._type, ir.FloatAttr.get(self._type, 1.0)).result
        return arith.DivFOp(one, arith.MaximumFOp(count, one).result).result


def _index(number: ir.Value | int) -> ir.Value:
    return constant(number) if isinstance(number, int) else number


def _same(count: Count) -> object:
    """A key that is equal for equal known counts, and for the same computed count."""
    return count if isinstance(count, float) else id(count)


def select_from(number: ir.Value | None, table: Sequence[Count], element_type: ir.Type) -> ir.Value:
    """`table[number]` by comparisons, one for each run of equal entries."""
    runs = [(next(run), 1 + sum(1 for _ in run)) for _, run in groupby(table, key=_same)]
    end = len(table)
    result = None
    for value, length in reversed(runs):
        entry = value
        if isinstance(value, float):
            entry = arith.ConstantOp(element_type, ir.FloatAttr.get(element_type, value)).result
        if result is None:
            result = entry
        else:
            assert number is not None  # more than one run of equal entries means more than one warp
            result = arith.SelectOp(less(number, constant(end)), entry, result).result
        end -= length
    assert result is not None
    return result
