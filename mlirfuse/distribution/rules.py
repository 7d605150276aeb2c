"""Registers every distribution rule, when this module is imported."""

from mlirfuse.distribution import elementwise, loops, masks
from mlirfuse.distribution.memory import (
    accumulation,
    copies,
    flagged_exchange,
    fragment_copies,
    layout_conversions,
    semaphores,
    shared_spills,
    transfers,
)
from mlirfuse.distribution.mma import contract, warpgroups
from mlirfuse.distribution.reduce import exp_sums, moments, reductions

__all__ = [
    "accumulation",
    "contract",
    "copies",
    "elementwise",
    "exp_sums",
    "flagged_exchange",
    "fragment_copies",
    "layout_conversions",
    "loops",
    "masks",
    "moments",
    "reductions",
    "semaphores",
    "shared_spills",
    "transfers",
    "warpgroups",
]
