"""Shared memory through which the warps and blocks of a cluster exchange partials of reductions."""

from __future__ import annotations

from math import prod

from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.problem import RowReduction

MOST_ALTERNATING = 4096
"""Bytes of an exchange in a loop up to which a second buffer is cheaper than a second barrier."""


def copies_bytes(nbytes: int) -> int:
    """Bytes of an exchange in a loop: a small one has two alternating buffers, for one barrier a step."""
    return nbytes if nbytes > MOST_ALTERNATING else 2 * nbytes


def exchange_bytes(part: RowReduction, layout: BlockedLayout) -> list[int]:
    """Bytes that the warps of a block exchange, and then the blocks of a cluster."""
    places = part.bytes * prod(layout.extents[d] // layout.blocks[d] for d in part.kept)
    senders = (prod(factors[d] for d in part.dims) for factors in (layout.warps, layout.blocks))
    return [places * count for count in senders if count > 1]
