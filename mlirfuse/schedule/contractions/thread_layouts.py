"""Layouts in which a block's threads add up slices of a tile's rows, and compute an operand's tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from mlirfuse.schedule.layout import WARP, BlockedLayout
from mlirfuse.schedule.model.machine import WIDEST_ACCESS
from mlirfuse.schedule.schedule import Schedule

FLAGGED_ROWS = 4
"""Rows that a warp takes out of a flagged buffer at once, if it can: 8 of their columns are a line of 128 bytes in the
buffer."""


def with_slices(schedule: Schedule, reduction: str = "grid_sync") -> Schedule:
    """The schedule with the partials of its splits combined by slices of rows; neighbouring threads take neighbouring
    words.
    """
    *batch, m, n = schedule.tile
    rows = schedule.contraction_part.slice_rows(m)
    threads = schedule.layout.threads
    width = next((w for w in (4, 2) if rows * n >= threads * w), 1)
    # A line of a flagged buffer holds this many rows of 8 columns.
    stacked = min(FLAGGED_ROWS, 1 << rows.bit_length() - 1) if reduction == "flagged" else 1
    lanes = min(WARP // stacked, 1 << (n // width).bit_length() - 1)
    warps_n = min(threads // WARP, max(1, n // (width * lanes)))
    warps_m = threads // WARP // warps_n
    lanes_m = WARP // lanes
    lead = (1,) * len(batch)
    layout = BlockedLayout(
        vector=(*lead, 1, width),
        lanes=(*lead, lanes_m, lanes),
        warps=(*lead, warps_m, warps_n),
        repeats=(*lead, -(-rows // (lanes_m * warps_m)), -(-n // (width * lanes * warps_n))),
        blocks=(*lead, 1, 1),
    )
    contraction = replace(schedule.contraction_part, reduction=reduction, second_stage_layout=layout)
    return replace(schedule, contraction=contraction)


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
