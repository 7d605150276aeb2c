"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import (
    contract,
    copies,
    elementwise,
    exp_sums,
    fragment_copies,
    loops,
    mailboxes,
    masks,
    moments,
    parking,
    reductions,
    semaphores,
    transfers,
    warpgroups,
)

__all__ = [
    "contract",
    "copies",
    "elementwise",
    "exp_sums",
    "fragment_copies",
    "loops",
    "mailboxes",
    "masks",
    "moments",
    "parking",
    "reductions",
    "semaphores",
    "transfers",
    "warpgroups",
]
