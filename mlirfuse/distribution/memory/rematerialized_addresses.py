"""Addresses of results, computed again after the reductions so that no register holds them meanwhile."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.distribution.access import Access
from mlirfuse.distribution.distributor import Distributor
from mlirfuse.distribution.threads.scalars import opaque_index
from mlirfuse.distribution.threads.threads import Threads


def rematerialized_address(d: Distributor, access: Access) -> tuple[Threads, Access]:
    """The thread's coordinates and the transfer, both made to depend on the last exchange so that they are computed
    after it.

    Without `rematerialize_addresses` or an earlier exchange, the current coordinates and the given transfer.
    """
    if not d.rematerialize_addresses or d.after_exchange is None:
        return d.threads, access
    threads = Threads(d.layout, d.first_thread, d.after_exchange)
    return threads, replace(access, offsets=[opaque_index(offset, d.after_exchange) for offset in access.offsets])
