"""How many elements of a tile each warp and block holds, padding left out.

The counts are known at compile time for every (block, warp) pair; a thread picks its own by comparing its number. Where
a layout shifts rows, they depend on the shift, and are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from mlir import ir
from mlir.dialects import arith

from mlirfuse.distribution.fragments import Fragments
from mlirfuse.distribution.scalars import add, constant, divide, equals_zero, less, multiply, remainder
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


class Held:
    """How many elements the senders of an exchange hold, and one over that; 1 of a warp or block that holds none.

    Args:
        threads: the current thread's coordinates.
        source: the tile.
        dims: the reduced dimensions.
        shift: by how many elements the thread's row is shifted, in a skewed layout.
    """

    def __init__(self, threads: Threads, source: Fragments, dims: Sequence[int], shift: ir.Value | None = None):
        layout = source.layout
        self._source, self._dims, self._shift = source, dims, shift
        self._type = source.element_type
        self._blocks, self._warps = (prod(sizes[n] for n in dims) for sizes in (layout.blocks, layout.warps))
        self._block = threads.linear(threads.block, layout.blocks, dims)
        self._warp = threads.linear(threads.warp, layout.warps, dims)

    def own_inverse(self) -> ir.Value:
        """One over what the current thread's warp holds."""
        if self._shift is not None:
            return self._inverse(self._computed(self._block, self._warp))
        number = self._warp
        if self._block is not None:
            first = multiply(self._block, self._warps)
            number = first if number is None else add(first, number)
        return select_from(number, _inverses(self._of_warps()), self._type)

    def sent(self, sender: ir.Value | int, level: str) -> tuple[ir.Value, ir.Value]:
        """What a sender of a round holds, and one over that.

        Args:
            sender: its number.
            level: who sends: `warps` of the block, `blocks` of the cluster, or all warps of the `cluster`.
        """
        if self._shift is not None:
            block, warp = self._block_and_warp(sender, level)
            count = self._computed(block, warp, whole_block=level == "blocks")
            return count, self._inverse(count)
        table = self._of_warps() if level != "blocks" else self._of_blocks()
        if level == "warps" and self._block is not None:
            sender = add(multiply(self._block, self._warps), _index(sender))
        if isinstance(sender, int):
            table, number = [table[sender]], None
        else:
            number = sender
        return select_from(number, table, self._type), select_from(number, _inverses(table), self._type)

    def total_inverse(self, level: str) -> ir.Value:
        """One over what all senders of a round hold together."""
        if level != "warps" or self._blocks == 1:
            return select_from(None, _inverses([sum(self._of_blocks())]), self._type)
        if self._shift is not None:
            return self._inverse(self._computed(self._block, None, whole_block=True))
        return select_from(self._block, _inverses(self._of_blocks()), self._type)

    def _of_blocks(self) -> list[float]:
        return [float(held_elements(self._source, self._dims, block)) for block in range(self._blocks)]

    def _of_warps(self) -> list[float]:
        return [
            float(held_elements(self._source, self._dims, block, warp))
            for block in range(self._blocks)
            for warp in range(self._warps)
        ]

    def _block_and_warp(self, sender: ir.Value | int, level: str) -> tuple[ir.Value | None, ir.Value | None]:
        number = _index(sender)
        if level == "warps":
            return self._block, number
        if level == "blocks":
            return number, None
        return divide(number, self._warps), remainder(number, self._warps)

    def _computed(self, block: ir.Value | None, warp: ir.Value | None, *, whole_block: bool = False) -> ir.Value:
        """What a warp, or a whole block, holds of a shifted row, of which the first of all lacks the shift."""
        assert self._shift is not None
        (dim,) = self._dims
        layout = self._source.layout
        size = layout.repeats[dim] * layout.repeat_stride(dim)
        first = constant(0) if block is None else multiply(block, size)
        left, span, starts = first, size, [0]
        if not whole_block:
            span, starts = layout.span(dim), [layout.offset(dim, n) for n in range(layout.repeats[dim])]
            left = first if warp is None else add(first, multiply(warp, span))
        end = add(self._shift, constant(self._source.extents[dim]))
        total = None
        for start in starts:
            held = arith.SubIOp(end, add(left, constant(start))).result
            held = arith.MaxSIOp(arith.MinSIOp(held, constant(span)).result, constant(0)).result
            total = held if total is None else add(total, held)
        assert total is not None
        lacks = arith.SelectOp(equals_zero(left), self._shift, constant(0)).result
        number = arith.IndexCastOp(ir.IntegerType.get_signless(32), arith.SubIOp(total, lacks).result).result
        return arith.SIToFPOp(self._type, number).result

    def _inverse(self, count: ir.Value) -> ir.Value:
        one = arith.ConstantOp(self._type, ir.FloatAttr.get(self._type, 1.0)).result
        return arith.DivFOp(one, arith.MaximumFOp(count, one).result).result


def _inverses(table: Sequence[float]) -> list[float]:
    return [1.0 / max(1.0, count) for count in table]


def _index(number: ir.Value | int) -> ir.Value:
    return constant(number) if isinstance(number, int) else number


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
