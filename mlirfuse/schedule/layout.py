"""Layouts: which thread holds which element of a tile vector.

A blocked layout splits every dimension of a tile, from the outside in, over the blocks of a cluster, repeats of one
thread, warps, lanes, and the contiguous vector that one thread holds:

    index = (((block * repeats + repeat) * warps + warp) * lanes + lane) * vector + element

A layout may cover more than the tile's extent; the rest is padding that no thread reads or writes. Where a tile value
has extent 1 in a dimension (a value that is the same along it), every thread along that dimension holds a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

WARP = 32


@dataclass(frozen=True)
class BlockedLayout:
    """A blocked layout; every field has one entry a tile dimension.

    Attributes:
        vector: contiguous elements a thread holds at each repeat; more than 1 in at most one dimension.
        lanes: lanes of a warp along the dimension; powers of two whose product is 32.
        warps: warps of the block along the dimension; the innermost dimension varies fastest.
        repeats: fragments a thread holds along the dimension.
        blocks: blocks of the cluster along the dimension.
    """

    vector: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    repeats: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.vector)

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return WARP * prod(self.warps)

    @property
    def cluster(self) -> int:
        """Blocks of one cluster."""
        return prod(self.blocks)

    @property
    def vector_dim(self) -> int:
        """The dimension along which a thread's elements are contiguous; the innermost if none is."""
        wide = [d for d, v in enumerate(self.vector) if v > 1]
        return wide[0] if wide else self.rank - 1

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements that the layout covers in each dimension."""
        return tuple(self.repeat_stride(d) * self.repeats[d] * self.blocks[d] for d in range(self.rank))

    @property
    def elements_per_thread(self) -> int:
        return prod(self.repeats) * prod(self.vector)

    def repeat_stride(self, dim: int) -> int:
        """Distance between two repeats of one thread in a dimension, in elements."""
        return self.warps[dim] * self.lanes[dim] * self.vector[dim]

    def check(self, tile: tuple[int, ...]) -> str | None:
        """What makes this layout illegal for a tile of these extents, or None."""
        if any(len(f) != len(tile) for f in (self.vector, self.lanes, self.warps, self.repeats, self.blocks)):
            return f"layout has rank {self.rank}, tile {tile} has rank {len(tile)}"
        if min(self.vector + self.lanes + self.warps + self.repeats + self.blocks) < 1:
            return "every factor of a layout must be at least 1"
        if prod(self.lanes) != WARP or any(n & (n - 1) for n in self.lanes):
            return f"lanes {self.lanes} must be powers of two whose product is {WARP}"
        if sum(v > 1 for v in self.vector) > 1:
            return f"vector {self.vector} is contiguous in more than one dimension"
        for d, (covered, extent) in enumerate(zip(self.extents, tile, strict=True)):
            if covered < extent:
                return f"layout covers {covered} of the tile's {extent} elements in dimension {d}"
            if extent % self.vector[d]:
                return f"vectors of {self.vector[d]} do not divide the tile's {extent} elements in dimension {d}"
        return None
