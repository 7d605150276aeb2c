"""`fuse.mbarrier_init`, `_arrive`, `_expect` and `_wait`, and checks that ops of warpgroups share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlirfuse.dialect.async_load import peers_of
from mlirfuse.dialect.mbarrier_wait import CLUSTER
from mlirfuse.interpreter.registry import rule, suspending
from mlirfuse.interpreter.rules.gpu_sync import require_converged
from mlirfuse.interpreter.scheduler import Coroutine, Wait
from mlirfuse.interpreter.site import Site
from mlirfuse.interpreter.state.lanes import uniform
from mlirfuse.interpreter.state.machine import Frame, ThreadBlock
from mlirfuse.interpreter.state.memory import MemRef
from mlirfuse.interpreter.state.rings import Mbarrier
from mlirfuse.schedule.model.machine import WARPGROUP

Step = Callable[[Frame], Any]


def agreed(site: Site, frame: Frame, slot: int) -> int:
    """An operand's number, equal in all active threads; raises `InterpreterError` if the threads' numbers differ."""
    value = uniform(frame.values[slot], frame)
    if value is None:
        raise site.error("the threads that execute the op have different operands", frame)
    return int(value)


def active_threads(frame: Frame) -> np.ndarray:
    """Numbers of the active threads."""
    return frame.block.lanes if frame.mask is None else np.flatnonzero(frame.mask)


def consumer_group_of(frame: Frame) -> int:
    """The owner of products and stores: a consumer group's number at the tile level, else its first warpgroup's."""
    return frame.consumer_group + int(active_threads(frame)[0]) // WARPGROUP


def warpgroups(site: Site, frame: Frame, expected: int) -> int:
    """Number of warpgroups that execute an op; raises `InterpreterError` unless these are `expected` whole warpgroups.

    At the tile level one logical thread stands for all warpgroups.
    """
    if frame.block.threads == 1:
        return expected
    threads = active_threads(frame)
    counts = np.bincount(threads // WARPGROUP)
    if np.count_nonzero(counts) != expected or np.count_nonzero(counts == WARPGROUP) != expected:
        raise site.error(f"executed by {len(threads)} threads, not by {expected} whole warpgroups", frame)
    return expected


def one_thread(site: Site, frame: Frame) -> None:
    """Raises `InterpreterError` unless exactly one thread is active."""
    if len(active_threads(frame)) != 1:
        raise site.error(f"executed by {len(active_threads(frame))} threads, not by one", frame)


def barrier_of(site: Site, frame: Frame, buffer: int, index: int, block: ThreadBlock | None = None) -> Mbarrier:
    """The mbarrier that two operands name, of `block`, or of the thread's own block.

    Raises `InterpreterError` if the mbarrier is not initialised, or not yet visible.
    """
    block = frame.block if block is None else block
    number, memref = agreed(site, frame, index), peer_memref(site, frame, frame.values[buffer], block)
    barrier = block.rings.barrier(memref.buffer, number, block.clock)
    if isinstance(barrier, str):
        raise site.error(f"mbarrier {number} of block {block.index} {barrier}", frame)
    return barrier


def peer_blocks(site: Site, frame: Frame, peers: int) -> list[ThreadBlock]:
    """The blocks that an op with `peers` addresses: all of the cluster, or the block alone at the tile level."""
    block = frame.block
    if peers == 1 or (block.threads == 1 and block.cluster.size == 1):
        return [block]
    if block.cluster.size != peers:
        raise site.error(f"addresses {peers} blocks of a cluster of {block.cluster.size}", frame)
    if gone := [peer.index for peer in block.cluster.blocks if peer.finished]:
        raise site.error(f"block {gone[0]}, whose shared memory it writes, has ended", frame)
    return block.cluster.blocks


def peer_memref(site: Site, frame: Frame, memref: MemRef, peer: ThreadBlock) -> MemRef:
    """The same buffer of another block; raises `InterpreterError` if the other block has not allocated the buffer."""
    other = memref if peer is frame.block else frame.block.shared_like(memref, peer)
    if other is None:
        raise site.error(f"block {peer.index} has not allocated {memref.text} yet", frame)
    return other


@rule("fuse.mbarrier_init")
def _init(site: Site) -> Step:
    (buffer,), arrivals = site.operands, site.integer("arrivals") or 0

    def step(frame: Frame) -> None:
        require_converged(site, frame)
        memref, block = frame.values[buffer], frame.block
        block.rings.initialise(memref.buffer, memref.shape[0], arrivals, block.clock)

    return step


@suspending("fuse.mbarrier_arrive")
def _arrive(site: Site) -> Step:
    (buffer, index), expected = site.operands, site.integer("warpgroups") or 0
    peers = peers_of(site.op)

    def step(frame: Frame) -> Coroutine:
        count = warpgroups(site, frame, expected)
        blocks = peer_blocks(site, frame, peers)
        for block in blocks:
            # At the tile level a block runs alone, and arrives for its peers too.
            barrier = barrier_of(site, frame, buffer, index, block)
            _count(site, frame, barrier, count * (peers // len(blocks)), block)
        yield None

    return step


@suspending("fuse.mbarrier_expect")
def _expect(site: Site) -> Step:
    (buffer, index), nbytes = site.operands, site.integer("bytes") or 0

    def step(frame: Frame) -> Coroutine:
        one_thread(site, frame)
        barrier = barrier_of(site, frame, buffer, index)
        barrier.expected += nbytes
        _count(site, frame, barrier, 1, frame.block)
        yield None

    return step


@suspending("fuse.mbarrier_wait")
def _wait(site: Site) -> Step:
    buffer, index, parity = site.operands

    def step(frame: Frame) -> Coroutine:
        barrier = barrier_of(site, frame, buffer, index)
        number, wanted = agreed(site, frame, index), agreed(site, frame, parity)

        def ready() -> bool:
            if barrier.phase % 2 == wanted:
                frame.block.rings.complete(barrier)
            return barrier.phase % 2 != wanted

        def what() -> str:
            lacks = f"{barrier.missing} arrivals, {barrier.expected - barrier.counted_bytes} bytes"
            return f"{site.name} at {site.location} (barrier {number} lacks {lacks})"

        yield Wait(what, ready)
        if barrier.released is not None:
            if CLUSTER not in site.op.attributes:
                raise site.error(
                    "does not acquire what other blocks have sent: the attribute cluster is missing", frame
                )
            require_converged(site, frame)
            frame.block.acquire(barrier.released)

    return step


def _count(site: Site, frame: Frame, barrier: Mbarrier, count: int, block: ThreadBlock) -> None:
    if not barrier.arrive(count):
        raise site.error(f"more arrivals than the {barrier.arrivals} of a phase", frame)
    if not barrier.loads and not barrier.expected:
        block.rings.complete(barrier)
