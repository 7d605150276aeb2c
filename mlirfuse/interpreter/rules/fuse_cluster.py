"""`fuse.cluster_barrier`, `fuse.cluster_store` and `fuse.cluster_view`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirfuse.interpreter.access import Access
from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.rules.fuse_mbarriers import agreed, peer_memref, warpgroups
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.scheduler import Coroutine, Wait
from mlirfuse.interpreter.site import Site, gather
from mlirfuse.interpreter.state.machine import Frame


@suspending("fuse.cluster_barrier")
def _cluster_barrier(site: Site) -> Callable[[Frame], Coroutine]:
    """A barrier of all threads, or of some warpgroups; the other warpgroups must not execute later waits."""
    groups = site.integer("warpgroups")

    def step(frame: Frame) -> Coroutine:
        if groups is None:
            require_converged(site, frame)
        else:
            warpgroups(site, frame, groups)
        block, cluster = frame.block, frame.block.cluster
        ticket = cluster.arrive(block)
        yield Wait(
            lambda: f"{site.name} at {site.location} ({cluster.arrived} of {cluster.size} blocks arrived)",
            lambda: cluster.passed(ticket),
        )
        cluster.depart(block, ticket)

    return step


@rule("fuse.cluster_store")
def _cluster_store(site: Site) -> Callable[[Frame], None]:
    """A store into the shared memory of a peer, which must have started and must not have ended."""
    value, buffer, index, rank = site.operands

    def step(frame: Frame) -> None:
        values, block, saved = frame.values, frame.block, frame.mask
        cluster = block.cluster
        ranks = np.broadcast_to(values[rank], (block.threads,))
        active = np.ones(block.threads, bool) if saved is None else saved
        for target in np.unique(ranks[active]).tolist():
            frame.mask = active & (ranks == target)
            lane = int(np.argmax(frame.mask))
            if not 0 <= target < cluster.size:
                raise site.error(f"rank {target} in a cluster of {cluster.size} blocks", frame, lane)
            peer = cluster.blocks[target]
            if peer.finished:
                raise site.error(f"block {peer.index}, whose shared memory it writes, has ended", frame, lane)
            if block.checks and peer is not block and block.seen[peer.index] == 0:
                raise site.error(
                    f"block {peer.index}, whose shared memory it writes, may not have started: a fuse.cluster_barrier "
                    "must come first",
                    frame,
                    lane,
                )
            memref = values[buffer] if peer is block else block.shared_like(values[buffer], peer)
            if memref is None:
                raise site.error(f"block {peer.index} has not allocated {values[buffer].text} yet", frame, lane)
            Access(site, frame, memref, gather(values, [index])).store(values[value])
        frame.mask = saved

    return step


@rule("fuse.cluster_view")
def _cluster_view(site: Site) -> Callable[[Frame], None]:
    """A view of another block's buffer, whose shadow checks that reads are ordered."""
    buffer, rank = site.operands
    (out,) = site.results

    def step(frame: Frame) -> None:
        cluster, number = frame.block.cluster, agreed(site, frame, rank)
        if not 0 <= number < cluster.size:
            raise site.error(f"rank {number} in a cluster of {cluster.size} blocks", frame)
        peer = cluster.blocks[number]
        if peer.finished:
            raise site.error(f"block {peer.index}, whose shared memory it reads, has ended", frame)
        frame.values[out] = peer_memref(site, frame, frame.values[buffer], peer)

    return step
