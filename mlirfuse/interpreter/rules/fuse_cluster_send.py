"""`fuse.cluster_send`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.dialect.async_load import peers_of
from mlirfuse.interpreter.registry import suspending
from mlirfuse.interpreter.rules.fuse_mbarriers import barrier_of, peer_blocks, peer_memref
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.scheduler import Coroutine
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.machine import Frame
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.rings import AsyncLoad


@suspending("fuse.cluster_send")
def _cluster_send(site: Site) -> Callable[[Frame], Coroutine]:
    """Sends values, each of which arrives as late as possible; checks that no unordered read of its element exists."""
    value, buffer, index, rank, barriers, number = site.operands
    peers = peers_of(site.op)

    def step(frame: Frame) -> Coroutine:
        require_converged(site, frame)
        block, threads = frame.block, frame.block.threads
        values, elements, ranks = (np.broadcast_to(frame.values[slot], (threads,)) for slot in (value, index, rank))
        for target, peer in enumerate(peer_blocks(site, frame, peers)):
            if block.checks and peer is not block and block.seen[peer.index] == 0:
                raise site.error(f"block {peer.index}, whose shared memory it writes, may not have started", frame)
            senders = np.flatnonzero(ranks == target)
            memref = peer_memref(site, frame, frame.values[buffer], peer)
            places = elements[senders] + int(memref.offset)
            if ((elements[senders] < 0) | (elements[senders] >= int(memref.shape[0]))).any():
                raise site.error(f"out-of-bounds access of {memref.text}", frame, int(senders[0]))
            if memref.buffer.shadow is not None:
                violation = memref.buffer.shadow.write(places, memref.dtype.itemsize, senders, block)
                if violation is not None:
                    raise site.error(f"{memref.text}: {violation.kind} with a {violation.earlier}", frame)
            barrier = barrier_of(site, frame, barriers, number, peer)
            for sender, place in zip(senders.tolist(), places.tolist(), strict=True):
                if problem := peer.rings.load(barrier, _landing(memref, place, values[sender]), shared=False):
                    raise site.error(problem, frame, sender)
        released = block.release_all()
        for peer in peer_blocks(site, frame, peers):
            barrier_of(site, frame, barriers, number, peer).sent.append(released)
        yield None

    return step


def _landing(memref: MemRef, place: int, value: np.generic) -> AsyncLoad:
    """The asynchronous load that writes a value to an element of a buffer."""
    size = memref.dtype.itemsize

    def land() -> None:
        memref.buffer.elements(memref.dtype)[place] = value

    return AsyncLoad((id(memref.buffer), place * size), size, land)
