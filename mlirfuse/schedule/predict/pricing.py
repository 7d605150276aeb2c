"""`price`: what a machine takes for `Work`, whatever family it is of."""

from __future__ import annotations

from math import ceil

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.predict.facts import DEPENDENT_CYCLES, RECENT
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.work import Work

US = 1e6


def price(work: Work, machine: MachineModel) -> Prediction:
    """The time of each part on a machine."""
    recent = (work.read + work.written) * RECENT < machine.l2_bytes
    slots = work.sms * work.resident
    per_sm = -(-work.blocks // work.sms) if work.blocks <= slots else work.blocks / work.sms
    busiest = per_sm / work.blocks  # its share of the work
    barrier = machine.block_barrier * (0.5 + work.threads / 512)
    loads = work.rounds * (machine.l2_latency if recent else machine.dram_latency) + work.l2_rounds * machine.l2_latency
    steps = (
        work.waits * DEPENDENT_CYCLES / machine.clock
        + work.barriers * barrier
        + work.cluster_barriers * (machine.cluster_barrier + barrier)
        + work.releases * machine.message_latency
    )
    chain = machine.block_launch + (max(loads, steps) if work.ahead else loads + steps)
    if work.cluster > 1:
        chain += machine.cluster_launch
    start = machine.cluster_start if work.cluster > 1 else machine.block_start
    l2 = work.l2_read / machine.l2_read_bandwidth + work.l2_written / machine.l2_write_bandwidth
    own = busiest * (work.l2_read / machine.l1_bandwidth_per_sm + work.l2_written / machine.store_bandwidth_per_sm)
    functions = work.special / machine.special_per_sm + work.double / machine.f64_fma_per_sm
    combining = (
        work.grid_barriers * machine.grid_barrier
        + work.messages * machine.message_latency
        + work.reads * (machine.l2_latency + barrier)
        + work.serial / machine.dram_bandwidth_per_sm
        + work.gathered / machine.shared_bandwidth_per_sm
    )
    return Prediction(
        dram=0.0 if recent else US * (work.read + work.written) / machine.dram_bandwidth,
        l2=US * max(l2, own),
        shared=US * busiest * (work.shared + work.l1) / machine.shared_bandwidth_per_sm,
        dsmem=US * busiest * work.dsmem / machine.dsmem_bandwidth_per_sm if work.dsmem else 0.0,
        issue=US * busiest * work.instructions / machine.issue_per_sm,
        special=US * busiest * functions,
        latency=US * (waves(work.blocks, slots) * chain - machine.block_launch),
        blocks=US * work.blocks * start,
        synchronisation=US * combining,
        launch=US * machine.dependent_launch * work.kernels,
    )


def waves(blocks: int, slots: int) -> float:
    """Times that slots are filled with blocks one after the other: a whole number where they are few."""
    count = blocks / slots
    return max(1.0, ceil(count - 0.02)) if count < 4 else count
