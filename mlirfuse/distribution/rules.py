"""Importing this module registers every distribution rule."""

from mlirfuse.distribution import (
    accumulation,
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
    relayouts,
    semaphores,
    transfers,
    warpgroups,
)

__all__ = [
    "accumulation",
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
    "relayouts",
    "semaphores",
    "transfers",
    "warpgroups",
]
