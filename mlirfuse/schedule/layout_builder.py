"""Filling a blocked layout: lanes, warps, blocks and repeats, one dimension after another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from mlirfuse.schedule.layout import WARP, BlockedLayout


class LayoutBuilder:
    """A layout of a space with these extents, None where dynamic, that is being filled from the inside out."""

    def __init__(self, extents: Sequence[int | None], vector_dim: int, vector: int):
        self.extents = extents
        rank = len(extents)
        self.vector = [1] * rank
        self.vector[vector_dim] = vector
        self.lanes, self.warps, self.repeats, self.blocks = ([1] * rank for _ in range(4))
        self.lanes_left = WARP

    def copy(self) -> LayoutBuilder:
        """The same layout, to be filled in another way from here on."""
        other = LayoutBuilder.__new__(LayoutBuilder)
        other.extents, other.lanes_left = self.extents, self.lanes_left
        other.vector, other.lanes, other.warps = self.vector.copy(), self.lanes.copy(), self.warps.copy()
        other.repeats, other.blocks = self.repeats.copy(), self.blocks.copy()
        return other

    def left(self, dim: int) -> int:
        """Fragments along a dimension that nothing covers yet; a large number where the extent is dynamic."""
        extent = self.extents[dim]
        if extent is None:
            return 1 << 30
        held = self.vector[dim] * self.lanes[dim] * self.warps[dim] * self.repeats[dim] * self.blocks[dim]
        return -(-extent // held)

    def add_lanes(self, dim: int, most: int = WARP) -> None:
        left = self.left(dim) if self.lanes_left > 1 else 1  # halved as often as the lanes are doubled
        while self.lanes_left > 1 and left > 1 and self.lanes[dim] < most:
            self.lanes[dim] *= 2
            self.lanes_left //= 2
            left = -(-left // 2)

    def rest_of_lanes(self, dim: int) -> None:
        self.lanes[dim] *= self.lanes_left
        self.lanes_left = 1

    def add_warps(self, dim: int, most: int) -> None:
        room = max(1, most // prod(self.warps))
        self.warps[dim] *= min(room, self.left(dim))

    def add_blocks(self, dim: int, most: int) -> None:
        room = most // prod(self.blocks)
        self.blocks[dim] *= min(room, self.left(dim))

    def rest_in_repeats(self, dim: int) -> None:
        self.repeats[dim] *= self.left(dim)

    def layout(self) -> BlockedLayout:
        parts = (self.vector, self.lanes, self.warps, self.repeats, self.blocks)
        return BlockedLayout(*(tuple(part) for part in parts))
