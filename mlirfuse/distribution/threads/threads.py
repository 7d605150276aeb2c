"""A thread's lane, warp and block coordinates along each dimension of a layout."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Literal

from mlir import ir
from mlir.dialects import arith, gpu

from mlirfuse.distribution.threads.scalars import add, constant, divide, equals_zero, multiply, opaque_index, remainder
from mlirfuse.schedule.layout import WARP, BlockedLayout

Among = Literal["warp", "block", "cluster"]


class Threads:
    """Coordinates of the current thread, emitted once at the kernel's top, or where a consumer group's code begins.

    Coordinates that are always 0 are None. The layout covers the block's threads from number `first` on. Indices
    derived from the coordinates are not computed before `after`, if given.
    """

    def __init__(self, layout: BlockedLayout, first: int = 0, after: ir.Value | None = None):
        self.layout = layout
        thread = gpu.ThreadIdOp(gpu.Dimension.x).result
        if first:
            thread = arith.SubIOp(thread, constant(first)).result
        if after is not None:
            thread = opaque_index(thread, after)
        self.number = thread
        self.lane = _split(remainder(thread, WARP), layout.lanes)
        self.warp = _split(divide(thread, WARP), layout.warps)
        rank = gpu.ClusterBlockIdOp(gpu.Dimension.x).result if layout.cluster > 1 else None
        self.block = _split(rank, layout.blocks) if rank is not None else [None] * layout.rank
        self.own = [self._own(d) for d in range(layout.rank)]
        self.base = [self._base(d) for d in range(layout.rank)]

    def _own(self, dim: int) -> ir.Value | None:
        """Index in the block's slice of the tile of the thread's first element along `dim`."""
        layout = self.layout
        return _sum(
            (self.warp[dim], layout.within(dim) * layout.span(dim)),
            (self.lane[dim], layout.step(dim)),
        )

    def _base(self, dim: int) -> ir.Value | None:
        """Index in the tile of the thread's first element along `dim`."""
        if self.block[dim] is None:
            return self.own[dim]
        return _sum((self.block[dim], self.layout.repeats[dim] * self.layout.repeat_stride(dim)), (self.own[dim], 1))

    def index(self, dim: int, fragment: int, *, in_block: bool = False) -> ir.Value:
        """Index of the first element of a fragment along `dim`, in the tile or in the block's slice of the tile."""
        offset = self.layout.offset(dim, fragment)
        base = self.own[dim] if in_block else self.base[dim]
        if base is None:
            return constant(offset)
        return add(base, constant(offset)) if offset else base

    def slot_index(self, dim: int, fragment: int, *, varies: bool) -> ir.Value:
        """Index along `dim` of the thread's fragment in the block's slice of a tile; for a tile that does not vary
        along `dim`, the index of the thread's own copy.
        """
        if varies:
            return self.index(dim, fragment, in_block=True)
        number = _sum((self.warp[dim], self.layout.lanes[dim]), (self.lane[dim], 1))
        return constant(0) if number is None else number

    def is_first(self, dims: Iterable[int], among: Among = "cluster") -> ir.Value | None:
        """Whether the thread's coordinates along `dims`, in its warp, block or cluster, are all 0; None if always."""
        dims = tuple(dims)
        levels = {"warp": (self.lane,), "block": (self.lane, self.warp), "cluster": (self.lane, self.warp, self.block)}
        condition = None
        for coordinate in (level[d] for d in dims for level in levels[among]):
            if coordinate is not None:
                zero = equals_zero(coordinate)
                condition = zero if condition is None else arith.AndIOp(condition, zero).result
        return condition

    def linear(
        self, coordinates: list[ir.Value | None], sizes: tuple[int, ...], dims: Iterable[int]
    ) -> ir.Value | None:
        """The linear number of the coordinates along `dims`, the last dimension fastest; None if it is always 0."""
        total, step = None, 1
        for d in sorted(dims, reverse=True):
            coordinate = coordinates[d]
            if coordinate is not None:
                term = multiply(coordinate, step)
                total = term if total is None else add(term, total)
            step *= sizes[d]
        return total

    def peer(self, number: ir.Value, dims: Iterable[int]) -> ir.Value:
        """The rank in the cluster of a block, by the block's number along `dims`, the last dimension fastest.

        The block's other coordinates are those of the current thread's block. If `dims` has all dimensions with blocks,
        the rank is the number itself.
        """
        sizes, dims = self.layout.blocks, set(dims)
        if prod(sizes[d] for d in dims) == self.layout.cluster:
            return number
        rank, step = constant(0), 1
        for d in reversed(range(self.layout.rank)):
            coordinate = self.block[d]
            if coordinate is not None and d in dims:
                coordinate = remainder(divide(number, step), sizes[d])
                step *= sizes[d]
            if coordinate is not None:
                rank = add(rank, multiply(coordinate, prod(sizes[d + 1 :])))
        return rank


def _sum(*terms: tuple[ir.Value | None, int]) -> ir.Value | None:
    """The sum of coordinates times steps; None where all coordinates are."""
    total = None
    for coordinate, step in terms:
        if coordinate is not None:
            term = multiply(coordinate, step)
            total = term if total is None else add(total, term)
    return total


def _split(number: ir.Value, sizes: tuple[int, ...]) -> list[ir.Value | None]:
    """The digits of `number` in the mixed radix `sizes`, the last fastest; None where the size is 1."""
    digits: list[ir.Value | None] = []
    for d, size in enumerate(sizes):
        inner, outer = prod(sizes[d + 1 :]), prod(sizes[:d])
        if size == 1:
            digits.append(None)
            continue
        digit = divide(number, inner)
        digits.append(remainder(digit, size) if outer > 1 else digit)
    return digits
