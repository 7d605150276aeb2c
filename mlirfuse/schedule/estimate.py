"""Registers that ptxas will use, estimated before there is any code; fitted to what ptxas reports on sm_90a."""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem

BREADTH_BASE = 12
"""Registers besides the elements: addresses, coordinates and row values."""

BREADTH_ELEMENT, BREADTH_READ = 0.75, 0.5
"""Registers an element, and for each byte of it that is read: its single-precision value, and what is loading."""

DEPTH_BASE, DEPTH_READ = 6, 5
"""Registers besides the elements, and for each byte that is read of one: addresses, and what is loading."""

DEPTH_SCALAR = 2.0
"""Registers an element where threads hold single elements instead of vectors."""

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
    # Every element is in single precision at some point, and ptxas has most of them so at once.
    live = held * max(1.0, problem.live_bytes / 4, DEPTH_SCALAR if width == 1 else 1.0)
    columns = max(width, SCALAR_LOADS) * problem.column_bytes / 4 * COLUMN_SHARE
    return round(DEPTH_BASE + DEPTH_READ * problem.read_bytes + live + columns) + extra
