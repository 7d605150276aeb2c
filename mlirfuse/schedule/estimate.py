"""Registers that ptxas will use, estimated before there is any code.

`tests/unit/test_register_estimate.py` holds the estimates to what ptxas reports over the whole range of sizes.
"""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem

BREADTH_BASE = 12
"""Registers besides the elements: addresses, coordinates and row values."""

BREADTH_ELEMENT, BREADTH_READ = 0.75, 0.5
"""Registers an element, and for each byte of it that is read: its single-precision value, and what is loading."""

DEPTH_BASE = 16
"""Registers besides what lives across a reduction: addresses, and one fragment's arithmetic in single precision."""

DEPTH_LIVE = 2.0
"""Registers for each that lives across a reduction: ptxas has some fragments cast ahead of their use."""

COLUMN_SHARE = 1 / 2
"""Share of the column operands' (weights', biases') fragments that are loaded at once."""

SCALAR_LOADS = 8
"""Elements of column operands under way at once, at least: single loads are hoisted further than vectors."""

RAGGED = 4
"""Registers for the masks of a row that does not fill its threads' fragments."""

CLUSTER = 8
"""Registers for the addresses of other blocks' shared memory."""


def registers_per_thread(problem: Problem, layout: BlockedLayout, order: str) -> int:
    """Estimated registers of a thread of a persistent kernel; see `Schedule` for the orders."""
    held = layout.elements_per_thread
    width = max(layout.vector)
    extra = CLUSTER if layout.cluster > 1 else 0
    if any(layout.extents[d] != problem.extents[d] for d in problem.reduced):
        extra += RAGGED
    if order == "breadth":
        return round(BREADTH_BASE + held * (BREADTH_ELEMENT + BREADTH_READ * problem.read_bytes)) + extra
    # A fragment takes whole registers: a single half-precision value takes one too.
    live = held // width * -(-width * problem.live_bytes // 4)
    columns = max(width, SCALAR_LOADS) * problem.column_bytes / 4 * COLUMN_SHARE
    return round(DEPTH_BASE + live * DEPTH_LIVE + columns) + extra
