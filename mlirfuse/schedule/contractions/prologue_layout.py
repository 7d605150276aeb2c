"""The layout in which a block's threads compute an operand's tile: neighbours on neighbouring elements of a row."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS


def prologue_layout(shape: Sequence[int], element_bytes: int, threads: int) -> BlockedLayout:
    """A layout of a tile that is contiguous along its last dimension, with as many rows at once as threads allow.

    Args:
        shape: the tile's extents; those before the last two are 1.
        element_bytes: size of an element.
        threads: of the block.
    """
    *batch, rows, columns = shape
    lead = (1,) * len(batch)
    vector = gcd(columns, max(1, WIDEST_ACCESS // element_bytes))
    lanes = gcd(columns // vector, WARP)
    at_once = threads // lanes
    return BlockedLayout(
        vector=(*lead, 1, vector),
        lanes=(*lead, WARP // lanes, lanes),
        warps=(*lead, threads // WARP, 1),
        repeats=(*lead, -(-rows // at_once), columns // vector // lanes),
        blocks=(*lead, 1, 1),
    )
