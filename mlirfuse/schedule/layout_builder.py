"""Filling a blocked layout: lanes, warps, blocks and repeats, one dimension after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout


def halves(number: int) -> Iterator[int]:
    """A number, and half of it, again and again; nothing of 0."""
    while number:
        yield number
        number //= 2


class LayoutBuilder:
    """A layout of a space with these extents, None where dynamic, that is being filled from the inside out.

    What is added goes along the first of some dimensions as far as that has work, then along the next ones.
    """

    def __init__(self, extents: Sequence[int | None], vector_dim: int, vector: int):
        self.extents = extents
        rank = len(extents)
        self.vector = [1] * rank
        self.vector[vector_dim] = vector
        self.lanes, self.warps, self.repeats, self.blocks, self.run = ([1] * rank for _ in range(5))
        self.lanes_left = WARP

    def copy(self) -> LayoutBuilder:
        """The same layout, to be filled in another way from here on."""
        other = LayoutBuilder(self.extents, 0, 1)
        other.lanes_left = self.lanes_left
        for name in ("vector", "lanes", "warps", "repeats", "blocks", "run"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def covered(self, dim: int) -> int:
        """Elements along a dimension that the layout covers."""
        own = self.vector[dim] * self.run[dim] * self.repeats[dim]
        return own * self.lanes[dim] * self.warps[dim] * self.blocks[dim]

    def span(self, dim: int) -> int:
        """Elements along a dimension that the lanes of a warp cover with one run each."""
        return self.vector[dim] * self.run[dim] * self.lanes[dim]

    def left(self, dim: int) -> int:
        """Fragments along a dimension that nothing covers yet; a large number where the extent is dynamic."""
        extent = self.extents[dim]
        return 1 << 30 if extent is None else -(-extent // self.covered(dim))

    def add_lanes(self, *dims: int, most: int = WARP) -> None:
        """Lanes along dimensions, along each of which there are `most` then."""
        for dim in dims:
            left = self.left(dim) if self.lanes_left > 1 else 1  # halved as often as the lanes are doubled
            while self.lanes_left > 1 and left > 1 and self.lanes[dim] < most:
                self.lanes[dim] *= 2
                self.lanes_left //= 2
                left = -(-left // 2)

    def rest_of_lanes(self, dim: int) -> None:
        """The lanes that are left along a dimension, whether it has work for them or not."""
        self.lanes[dim] *= self.lanes_left
        self.lanes_left = 1

    def add_warps(self, *dims: int, most: int, even: bool = False) -> None:
        """Warps along dimensions, up to `most` of a block; `even` takes no more than tiles need that are as many."""
        for dim in dims:
            left = self.left(dim)
            room = min(max(1, most // prod(self.warps)), left)
            self.warps[dim] *= -(-left // -(-left // room)) if even else room

    def divide_lanes(self, *dims: int, most: int = WARP) -> None:
        """Lanes along dimensions, as far as they divide what is left, along each of which there are `most` then; a
        dynamic extent takes any.
        """
        for dim in dims:
            while self.lanes_left > 1 and self.lanes[dim] < most and self._is_even(dim):
                self.lanes[dim] *= 2
                self.lanes_left //= 2

    def divide_warps(self, *dims: int, most: int) -> None:
        """The same of warps, up to `most` of a block."""
        for dim in dims:
            while 2 * prod(self.warps) <= most and self._is_even(dim):
                self.warps[dim] *= 2

    def _is_even(self, dim: int) -> bool:
        extent = self.extents[dim]
        return extent is None or extent % (2 * self.covered(dim)) == 0

    def add_blocks(self, *dims: int, most: int) -> None:
        """Blocks along dimensions, up to `most` of a cluster."""
        for dim in dims:
            self.blocks[dim] *= min(most // prod(self.blocks), self.left(dim))

    def add_repeats(self, *dims: int, most: int) -> None:
        """Fragments of a thread along dimensions, `most` more times those that it has."""
        for dim in dims:
            here = max(1, min(most, self.left(dim)))
            self.repeats[dim] *= here
            most //= here

    def rest_in_repeats(self, *dims: int) -> None:
        """All that is left along dimensions to each thread."""
        for dim in dims:
            self.repeats[dim] *= self.left(dim)

    def deal_lanes(self, dims: Sequence[int]) -> None:
        """Doubles the lanes along each of some dimensions in turn, as far as these have work."""
        while self.lanes_left > 1 and (working := [d for d in dims if self.left(d) > 1]):
            for d in working:
                self.add_lanes(d, most=2 * self.lanes[d])

    def deal_warps(self, dims: Sequence[int], *, most: int) -> None:
        """The same of a block's warps."""
        while prod(self.warps) < most and (working := [d for d in dims if self.left(d) > 1]):
            for d in working:
                self.warps[d] *= 2 if prod(self.warps) < most else 1

    def layout(self) -> BlockedLayout:
        """The layout as it is."""
        vector, lanes, warps, repeats, blocks = map(
            tuple, (self.vector, self.lanes, self.warps, self.repeats, self.blocks)
        )
        run = tuple(self.run) if max(self.run) > 1 else ()
        return BlockedLayout(vector, lanes, warps, repeats, blocks, run=run)
