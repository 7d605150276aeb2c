"""Loads that a thread has under way at once in a loop that only loads and adds up."""

from __future__ import annotations

LOADS_AHEAD = 4
"""Loads of a thread from an array, at least, that should be under way at once: else a loop waits for memory."""

MOST_UNROLLED = 1024
"""Instructions of a loop's body, at most, that it is unrolled to: 16 KB of code."""


def steps_at_once(loads: float, instructions: float) -> int:
    """Steps that `fuse-unroll-loops` makes one of, so that their loads are under way together; a power of two.

    Args:
        loads: of a step from an array in device memory.
        instructions: of a step.
    """
    most = min(LOADS_AHEAD / max(1.0, loads), MOST_UNROLLED / max(1.0, instructions))
    return 1 << int(most).bit_length() - 1 if most >= 1 else 1
