"""How a resident grid visits its tiles: for statistics over all of them, and again for what needs the statistics."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.renamed_names import refuses_old_fields

MOST_KEPT = 256
"""Tiles that a block may keep in shared memory: more than there is room for."""

SEMAPHORE_STRIDE = 8
"""Semaphores of 4 bytes from one slice's to the next one's: a sector of the L2, so that slices do not contend."""


@refuses_old_fields
@dataclass(frozen=True)
class GridPersistent:
    """Two visits of all tiles, around one barrier for the blocks of each slice; or one where no tile needs a reduction.

    The dimensions that are kept are divided into slices, the tile's extent each; block b works on slice
    b % slices, as member b / slices of those that do. Member m takes tiles m, m + members, and so on along `dims`. Each
    member stores its partial results, waits for all members of its slice, and combines their partial results itself, in
    their order, so that results are the same bits on every run. Where tiles are visited once, the member that arrives
    last combines them.

    Attributes:
        dims: the dimensions that are reduced.
        kept_tiles: tiles of a block that stay in shared memory between the visits: its first ones. It reads others
            again, the last one first, which the L2 has lost last.
    """

    dims: tuple[int, ...]
    kept_tiles: int = 0

    def slices(self, tile: tuple[int, ...], extents: tuple[int | None, ...]) -> list[int]:
        """The number of slices along each dimension; 1 along those that are reduced."""
        sizes = enumerate(zip(tile, extents, strict=True))
        return [1 if d in self.dims else -(-(extent or 1) // n) for d, (n, extent) in sizes]

    def partial_dim(self, layout: BlockedLayout) -> int:
        """The reduced dimension along which the partial results of members are spread over a block's threads."""
        return max(self.dims, key=lambda d: (layout.lanes[d] * layout.warps[d], -d))

    def combining_tile(self, tile: tuple[int, ...], layout: BlockedLayout) -> tuple[int, ...]:
        """The extents of a tile of partial results: members along `partial_dim`, one fragment a thread, and a slice."""
        first = self.partial_dim(layout)
        members = layout.repeat_stride(first)
        return tuple(members if d == first else 1 if d in self.dims else n for d, n in enumerate(tile))

    def check(
        self, tile: tuple[int, ...], layout: BlockedLayout, extents: tuple[int | None, ...], most_blocks: int
    ) -> str | None:
        """What makes this part illegal, or None.

        Args:
            tile: the tile of the data.
            layout: its layout.
            extents: extents of the iteration space, None where dynamic.
            most_blocks: that are resident at once.
        """
        if not self.dims or any(not 0 <= d < len(tile) for d in self.dims):
            return f"grid_persistent.dims {self.dims} are no dimensions of the tile {tile}"
        if not 0 <= self.kept_tiles <= MOST_KEPT:
            return f"{self.kept_tiles} tiles kept are not 0 to {MOST_KEPT}"
        if layout.cluster > 1 or layout.inner or layout.has_runs or layout.anywhere:
            return "a grid persistent kernel has no clusters, and no runs, shifts or inner repeats in its layout"
        if any(extent is None for d, extent in enumerate(extents) if d not in self.dims):
            return "a grid persistent kernel divides known extents into slices"
        if (count := prod(self.slices(tile, extents))) > most_blocks:
            return f"{count} slices need as many blocks, of which {most_blocks} are resident"
        return None
