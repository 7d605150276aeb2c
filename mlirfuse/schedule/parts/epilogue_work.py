"""What follows a contraction in its kernel, for each element of the product: bytes and instructions, no IR."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EpilogueWork:
    """What follows a contraction, for each element of the product; of several products the mean.

    Attributes:
        written: bytes of the results that have a row for each m and a column for each n.
        read: bytes of the arguments that have so too, in the mean over batch dimensions that an argument lacks.
        arguments: how many of these there are.
        instructions: of a thread, beside conversions and accesses to memory.
        special: special functions.
    """

    written: float
    read: float = 0.0
    arguments: float = 0.0
    instructions: float = 0.0
    special: float = 0.0
