"""Where results go, computed anew behind the reductions, so that no register keeps it across them."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.distribution.access import Access
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.scalars import opaque_index
from mlirfuse.distribution.threads.threads import Threads


def rematerialized_place(d: Distributor, access: Access) -> tuple[Threads, Access]:
    """The thread's coordinates and a transfer at the tile's place, both unknown before the last exchange is over; those
    at hand, where the schedule has nothing late or nothing was exchanged.
    """
    if not d.rematerialize_addresses or d.known is None:
        return d.threads, access
    threads = Threads(d.layout, d.first_thread, d.known)
    return threads, replace(access, offsets=[opaque_index(offset, d.known) for offset in access.offsets])
