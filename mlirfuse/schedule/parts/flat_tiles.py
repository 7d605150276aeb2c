"""The part of a schedule for rows that are no whole vectors: tiles of several rows, accessed as one run of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.support.renamed_names import refuses_old_fields


@refuses_old_fields
@dataclass(frozen=True)
class FlatTiles:
    """How arrays are accessed whose tiles are contiguous: elements in the order of memory, whatever their rows.

    Attributes:
        layout: of a tile's elements, all of them along the last dimension, which it may reach past; tiles go between it
            and the schedule's layout through shared memory.
    """

    layout: BlockedLayout

    def check(self, layout: BlockedLayout, tile: tuple[int, ...], extents: Sequence[int | None]) -> str | None:
        """What makes it illegal beside the schedule's layout and tile in an iteration space, or None."""
        if problem := self.layout.check(flat_shape(tile)):
            return f"layout of flat tiles: {problem}"
        if any(n != 1 for n in self.layout.extents[:-1]):
            return f"the layout of flat tiles has extents along the last dimension only, not {self.layout.extents}"
        for name, each in (("flat", self.layout), ("the schedule's", layout)):
            if each.inner or each.has_runs or any(each.anywhere) or each.cluster > 1:
                return f"tiles go between plain layouts of one block ({name})"
        if layout.extents != tile:
            return f"flat tiles have a layout that covers {tile} exactly, not {layout.extents}"
        if self.layout.threads != layout.threads:
            return f"flat tiles are accessed by {self.layout.threads} threads, the others by {layout.threads}"
        if not is_contiguous(tile, extents):
            return f"a tile of {tile} is no contiguous part of a space of {tuple(extents)}"
        return None


def flat_shape(tile: Sequence[int]) -> tuple[int, ...]:
    """The shape of a tile whose elements all lie along the last dimension."""
    return (*(1 for _ in tile[:-1]), prod(tile))


def is_contiguous(tile: Sequence[int], extents: Sequence[int | None]) -> bool:
    """Whether a tile is one run of a row-major array over the whole space: whole inside of one dimension, 1 outside."""
    whole = True
    for side, extent in zip(reversed(tile), reversed(extents), strict=True):
        if not whole and side != 1:
            return False
        whole = whole and side == extent
    return True
