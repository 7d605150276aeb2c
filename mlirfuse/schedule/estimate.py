"""Registers that ptxas will use, estimated before there is any code."""

from __future__ import annotations

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import Problem

BASE = 24
"""Addresses, coordinates and the temporaries of one fragment's arithmetic."""


def registers_per_thread(problem: Problem, layout: BlockedLayout) -> int:
    """Registers of a thread of a persistent kernel: what lives across reductions, and a fragment in single precision."""
    live = layout.elements_per_thread * problem.live_bytes / 4
    working = max(layout.vector) * 1.5
    return round(BASE + live + working)
