"""Time of copies by tensor maps: rows that a step copies of each operand, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from mlirfuse.schedule.model.speeds import (
    MAPPED_BYTES_PER_SM,
    MAPPED_PIECES_BYTES_PER_SM,
    MAPPED_SECTORS_BYTES_PER_SM,
)
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import LINE, SECTOR

SHARED_COPY = {1: 1.0, 2: 0.6, 4: 0.5}
"""Time of copying a row that the blocks of a cluster copy for each other, by their number, to that of one that each
block copies for itself."""

ZEROS = 2.8
"""Time of a row past the end of an operand that copies by tensor maps fill with zeros, to that of a row that they copy.
"""

CLIPPED = 0.12
"""Time of a row past the end that is not copied, to that of a row that is, in the last of several tiles."""


def mapped_copies(schedule: Schedule, problem: ContractionProblem, extents: Sequence[int]) -> list[tuple[float, float]]:
    """Rows of each operand and the bytes that an SM copies a second, as `FamilySchedules.copies` returns them.

    Rows are weighted by what their copies take: of the mean block in persistent loops, else of slow blocks. No rows
    past the end are copied where k is contiguous and the extent is known (`TileOperand.last_rows`).
    """
    contraction = schedule.contraction
    assert contraction is not None
    clips = [k and extent is not None for k, extent in zip(problem.k_contiguous, (problem.m, problem.n), strict=True)]
    rates = [_mapped_bytes(n) for n in contiguous_bytes(problem)]
    if contraction.swapped:
        clips.reverse()
        rates.reverse()
    ends = zip(extents[-2:], schedule.tile[-2:], clips, strict=True)
    first, second = (_rows_of_a_block(*end, is_mean=contraction.persistent) for end in ends)
    return list(zip((first * SHARED_COPY[contraction.cluster], second), rates, strict=True))


def _rows_of_a_block(extent: int, tile: int, clips: bool, *, is_mean: bool) -> float:
    """Weighted rows of one operand by its extent, of the mean block or of slow ones; `clips` where zeros are not
    copied.
    """
    count, over = ceil(extent / tile), -extent % tile
    if clips:
        return extent / count if is_mean or count == 1 else tile + CLIPPED * over
    last = tile + (ZEROS - 1) * over
    mean = (tile * (count - 1) + last) / count
    return mean if is_mean else (mean + last) / 2


def contiguous_bytes(problem: ContractionProblem) -> list[int]:
    """Bytes of a row of each operand, along which its memory is contiguous; of whole lines where that is not known."""
    outer = (problem.m, problem.n)
    extents = [problem.k if k else extent for k, extent in zip(problem.k_contiguous, outer, strict=True)]
    return [(extent or LINE) * problem.element.bytes for extent in extents]


def _mapped_bytes(row_bytes: int) -> float:
    """Bytes per second that tensor maps copy to one SM, of rows of `row_bytes`."""
    if row_bytes % LINE == 0:
        return MAPPED_BYTES_PER_SM
    return MAPPED_PIECES_BYTES_PER_SM if row_bytes % SECTOR else MAPPED_SECTORS_BYTES_PER_SM
