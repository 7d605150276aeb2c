"""The part of a schedule that transposed arrays add: the layout in which a tile of theirs is accessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.renamed_names import refuses_old_fields

MOST_TRANSPOSED = 48 << 10
"""Bytes of a block's transposed tiles in shared memory, at most, so that four blocks fit an SM of sm_90."""


@refuses_old_fields
@dataclass(frozen=True)
class TransposedTiles:
    """How arrays are accessed that are contiguous along another dimension than the schedule's layout.

    Attributes:
        dim: the dimension along which they are.
        layout: of their reads and writes, from or to which tiles go through shared memory.
        mirrored: whether the tiles at (i, j) and (j, i) of the last two dimensions are neighbours in the grid's order,
            because they read the same parts of an array: one of them finds these in the L2.
        then: the dimensions that follow `dim` in memory, outwards, among those that a tile extends along; empty where
            `dim` alone tells these arrays from others.
    """

    dim: int
    layout: BlockedLayout
    mirrored: bool = False
    then: tuple[int, ...] = ()

    def takes(self, order: Sequence[int], tile: Sequence[int]) -> bool:
        """Whether arrays of a memory order, the innermost dimension first, are among these."""
        inner = tuple(d for d in order if tile[d] > 1)
        return inner[:1] == (self.dim,) and inner[1 : 1 + len(self.then)] == self.then

    def check(self, layout: BlockedLayout, tile: tuple[int, ...], extents: Sequence[int | None]) -> str | None:
        """What makes it illegal beside the schedule's layout and tile in an iteration space, or None."""
        if not 0 <= self.dim < len(tile):
            return f"dimension {self.dim} is transposed, of a tile {tile}"
        if problem := self.layout.check(tile):
            return f"layout of transposed arrays: {problem}"
        for name, each in (("transposed", self.layout), ("the schedule's", layout)):
            if each.inner or each.has_runs:
                return f"tiles go between layouts of plain repeats, with no `inner` and no `run` ({name})"
            if each.extents != tile or any(each.anywhere) or each.cluster > 1:
                return f"tiles go between layouts that cover them exactly, not {each.extents} of {tile} ({name})"
        if self.layout.threads != layout.threads:
            return f"transposed arrays are accessed by {self.layout.threads} threads, the others by {layout.threads}"
        return self.check_mirrored(tile, extents)

    def check_mirrored(self, tile: tuple[int, ...], extents: Sequence[int | None]) -> str | None:
        """Why tiles do not mirror each other, or None: they and the iteration space are squares of a known size."""
        if not self.mirrored:
            return None
        if len(tile) < 2 or tile[-1] != tile[-2]:
            return f"tiles that mirror each other are squares in the last two dimensions, not {tile}"
        if extents[-1] is None or extents[-1] != extents[-2]:
            return f"tiles that mirror each other make up a square of a known size, not {tuple(extents[-2:])}"
        return None
