"""Runs pending exchanges together: one step between warps, and one between blocks where a cluster shares a tile.

An exchange is delayed until its result is needed, so that independent reductions share one barrier. Each exchange has
shared memory of its own, so no barrier is needed before the next one writes. In a loop, small exchanges have two copies
of that memory and alternate: the step in between orders the reads of a copy before its next writes. Each level
alternates separately, because a block barrier orders nothing between blocks. Rows that use whole warps of their own
have barriers of their own.

In a loop, a cluster uses mbarriers in place of a cluster barrier, which would also wait for all of the threads' writes
to global memory. Every warp sends its partial results to every block, and an mbarrier of each block counts the bytes.
Two mbarriers alternate from step to step. A warp sends in step n + 2 after it has received what every warp sent in step
n + 1; by then every warp has read the data of step n, whose memory and mbarrier step n + 2 reuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from mlir import ir
from mlir.dialects import arith, gpu, scf

from mlirfuse.dialect.cluster_barrier import cluster_barrier
from mlirfuse.dialect.cluster_send import SENDABLE_BYTES
from mlirfuse.dialect.mbarrier_expect import mbarrier_expect
from mlirfuse.dialect.mbarrier_wait import mbarrier_wait
from mlirfuse.distribution.exchange.exchange import Exchange, Site, Values, slot_bytes, vector_elements
from mlirfuse.distribution.exchange.recursive_halving import HalvingShuffle, allocate_ranges, combine_over_lanes
from mlirfuse.distribution.exchange.slots import MOST_LISTED_ELEMENTS, Slots
from mlirfuse.distribution.exchange.warp_barriers import independent_warps
from mlirfuse.distribution.threads.scalars import add, constant, divide, equals_zero, remainder
from mlirfuse.schedule.model.shared_memory import MOST_ALTERNATING
from mlirfuse.support.dtypes import from_mlir

CLUSTER = "cluster"
"""The level of a step between all warps of a cluster."""

STEPS = {"warps": 2, "blocks": 2, CLUSTER: 4}
"""Steps after which each level's state repeats: two copies of memory, or two phases of each of two mbarriers."""


def run_exchanges(d: Site, exchanges: Sequence[Exchange]) -> ir.Value:
    """Runs exchanges together and delivers their results; returns a scalar that depends on all of them."""
    merged: list[Values] = [
        {key: tuple(p.at(key) for p in e.partials) for key in e.partials[0].keys()} for e in exchanges
    ]
    shuffles = combine_over_lanes(d, exchanges, merged)
    sent = [i for i, e in enumerate(exchanges) if _can_send(d, e)]
    for i, values in zip(sent, _sent_step(d, [exchanges[i] for i in sent], [merged[i] for i in sent]), strict=True):
        merged[i] = values
    others = [i for i in range(len(exchanges)) if i not in sent]
    for level in ("warps", "blocks"):
        _stored_step(d, exchanges, merged, others, level, shuffles if level == "warps" else [])
    for exchange, values in zip(exchanges, merged, strict=True):
        for key, value in values.items():
            exchange.deliver(key, value)
    return next(iter(merged[-1].values()))[-1]


def _stored_step(
    d: Site,
    exchanges: Sequence[Exchange],
    values: list[Values],
    participants: Sequence[int],
    level: str,
    shuffles: list[HalvingShuffle],
) -> None:
    """Runs one step between the warps of a block (`level` is "warps") or the blocks of a cluster ("blocks").

    Args:
        d: the kernel.
        exchanges: all exchanges.
        values: the fragments of each exchange, replaced by the merged ones.
        participants: the numbers of the exchanges that take part.
        level: "warps" or "blocks".
        shuffles: values that were combined over lanes together, of which each lane holds one.
    """
    senders = {i: exchanges[i].warps if level == "warps" else exchanges[i].blocks for i in participants}
    active = [i for i, count in senders.items() if count > 1]
    if not active:
        return
    warps = independent_warps(exchanges[i] for i in active) if d.in_loop else None
    phase = d.phases.get(level)
    if sum(slot_bytes(exchanges[i], senders[i]) for i in active) > MOST_ALTERNATING:
        phase = None
    local = d.barrier if warps is phase is None else partial(d.loop_barrier, warps)
    barrier = local if level == "warps" else cluster_barrier
    shared = allocate_ranges(d, exchanges, shuffles, 1 if phase is None else 2)
    looped = sum(senders[i] * vector_elements(exchanges[i]) for i in active) > MOST_LISTED_ELEMENTS
    slots = {i: Slots(d, exchanges[i], senders[i], phase, shared.get(i), looped) for i in active}
    halved = {member for j in shuffles for member in j.members}
    for i in active:
        own = {key: value for key, value in values[i].items() if (i, key) not in halved}
        if own:
            (slots[i].store_local if level == "warps" else slots[i].store_remote)(own)
    for j in shuffles:
        j.store(d, slots)
    barrier()
    for i in active:
        receivers = exchanges[i].receivers
        keys = list(values[i]) if receivers is None else receivers.tile.keys()
        values[i] = {key: exchanges[i].merge(slots[i].load(key), level) for key in keys}
    if phase is not None:
        d.phases[level] = arith.SubIOp(constant(1), phase).result
    elif d.in_loop:
        barrier()


def _can_send(d: Site, exchange: Exchange) -> bool:
    """Whether all warps of a cluster can send their partials in one step.

    Every warp has to send, because its arrival is what tells the others that it has read the previous data. Each
    receiving block needs a lane that sends to it, and every block of the cluster has to receive.
    """
    model = exchange.partials[0]
    layout, dims = model.layout, exchange.dims
    copies = [n for n in range(layout.rank) if n not in dims and not model.varies(n)]
    return (
        CLUSTER in d.phases
        and exchange.blocks > 1
        and exchange.blocks == layout.cluster
        and prod(layout.lanes[n] for n in dims) >= exchange.blocks
        and all(layout.warps[n] == layout.lanes[n] == 1 for n in copies)
        and all(p.width == 1 and from_mlir(p.element_type).bytes in SENDABLE_BYTES for p in exchange.partials)
        and slot_bytes(exchange, exchange.warps * exchange.blocks) <= MOST_ALTERNATING
    )


def _sent_step(d: Site, exchanges: Sequence[Exchange], values: Sequence[Values]) -> list[Values]:
    """Runs one step between all warps of a cluster, in a loop."""
    if not exchanges:
        return []
    steps = d.phases[CLUSTER]
    barriers, number, parity = d.mbarriers(), remainder(steps, 2), divide(steps, 2)
    slots = [Slots(d, e, e.warps * e.blocks, number) for e in exchanges]
    first = scf.IfOp(equals_zero(gpu.ThreadIdOp(gpu.Dimension.x).result))
    with ir.InsertionPoint(first.then_block):
        mbarrier_expect(barriers, number, sum(own.sent_bytes(v) for own, v in zip(slots, values, strict=True)))
        scf.YieldOp([])
    for own, fragments in zip(slots, values, strict=True):
        own.send(fragments, barriers, number)
    i32 = ir.IntegerType.get_signless(32)
    mbarrier_wait(barriers, number, arith.IndexCastOp(i32, parity).result, cluster=True)
    d.phases[CLUSTER] = remainder(add(steps, constant(1)), STEPS[CLUSTER])
    return [
        {key: exchange.merge(own.load(key), CLUSTER) for key in fragments}
        for exchange, own, fragments in zip(exchanges, slots, values, strict=True)
    ]
