"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import (
    accumulation,
    contract,
    copies,
    elementwise,
    exp_sums,
    flagged_exchange,
    fragment_copies,
    layout_conversions,
    loops,
    masks,
    moments,
    reductions,
    semaphores,
    shared_spills,
    transfers,
    warpgroups,
)

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
