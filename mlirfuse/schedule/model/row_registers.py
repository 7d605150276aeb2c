"""Registers that ptxas will use for rows in registers, estimated before there is code; fitted to ptxas for sm_90a.

The fit is over LayerNorms, RMSNorms and softmaxes in three types, rows of 512 to 65536 elements split in many ways.
`tests/unit/schedule/test_register_estimate.py` compares it with ptxas.
"""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import REGISTER_BYTES
from mlirfuse.schedule.problem import Problem

BREADTH_BASE, DEPTH_BASE = 14, 18
"""Registers besides the elements: addresses, coordinates and row values."""

BREADTH_ELEMENT, BREADTH_COLUMN_ELEMENT = 1.2, 0.4
"""Registers an element: its value and what is being made of it; and more where column operands meet it."""

FREE_COLUMN_BYTES, WIDE_COLUMN = 8, 1.5
"""Bytes of column operands at an element that the above includes, and registers for each byte beyond."""

DEPTH_ELEMENT, DEPTH_LIVE, DEPTH_COLUMN = 0.25, 0.25, 0.025
"""Registers an element, for each byte of it that lives across a reduction, and for each byte of column operands."""

AHEAD = 2
"""Fragments spilled to shared memory that are being loaded while one is worked on."""

SPILLED_SHIFTED = 8
"""Registers for the ends of an unaligned row, where fragments are spilled to shared memory."""

RAGGED = 0.25
"""Registers an element of a fragment for the masks of a row that does not fill its threads' fragments."""

CLUSTER = 5
"""Registers for the addresses of other blocks' shared memory."""

SHIFTED, SHIFTED_COLUMN = 5, 2
"""Registers for the places and the ends of a row that is shifted; and for each byte of what is shifted into place."""

LINES = 4
"""Registers for the places and the masks of a row of whole vectors that is shifted."""

REALIGNED = 8
"""Registers for the places of the windows that rows are realigned from and to."""

SINGLE_WARP = 7
"""Registers of a row that one warp holds: no barrier keeps what is loaded for later behind the reduction."""

KEPT_COLUMN, SUMMED_COLUMN = 8, 4
"""Registers for each column beside the first of which a thread has elements, where several warps reduce columns
breadth-first: where elements wait for the result, and where none does."""


def registers_per_thread(problem: Problem, layout: BlockedLayout, order: str, shared_spill: int = 0) -> int:
    """Estimated registers of a thread of a persistent kernel; see `Schedule` for the orders and for `shared_spill`."""
    return round(problem.register_scale * _uncorrected(problem, layout, order, shared_spill))


def _uncorrected(problem: Problem, layout: BlockedLayout, order: str, shared_spill: int) -> int:
    """The estimate before the assembler's reports correct it."""
    width = max(layout.vector)
    held = layout.elements_per_thread - shared_spill * width
    extra = CLUSTER if layout.cluster > 1 else 0
    if layout.is_shifted_to_lines:
        extra += LINES
    elif layout.is_shifted:
        extra += SHIFTED + SHIFTED_COLUMN * problem.column_bytes + (SPILLED_SHIFTED if shared_spill else 0)
    elif layout.is_realigned:
        extra += REALIGNED + round(RAGGED * width)
    elif any(layout.extents[d] != problem.extents[d] for d in problem.reduced):
        extra += round(RAGGED * width)
    if all(layout.warps[d] * layout.blocks[d] == 1 for d in problem.reduced):
        extra += SINGLE_WARP
    if order == "breadth":
        element = BREADTH_ELEMENT + (BREADTH_COLUMN_ELEMENT if problem.column_bytes else 0.0)
        wide = WIDE_COLUMN * max(0, problem.column_bytes - FREE_COLUMN_BYTES)
        kept = prod(n * layout.repeats[d] for d, n in enumerate(layout.vector) if d not in problem.reduced)
        exchanges = any(layout.warps[d] > 1 for d in problem.reduced)
        columns = (KEPT_COLUMN if problem.live_bytes else SUMMED_COLUMN) * (kept - 1) if exchanges else 0
        return round(BREADTH_BASE + held * element + wide) + columns + extra
    # What no reduction's result meets again is still read twice inside of a joint reduction.
    live = max(problem.live_bytes, problem.read_bytes / 2)
    live = max(live, REGISTER_BYTES / width) if problem.live_bytes else live  # a fragment takes whole registers
    element = DEPTH_ELEMENT + DEPTH_LIVE * live + DEPTH_COLUMN * problem.column_bytes
    loading = AHEAD * width * problem.read_bytes / 4 + problem.column_bytes / 4 if shared_spill else 0
    return round(DEPTH_BASE + held * element + loading) + extra
