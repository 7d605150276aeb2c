"""`price`: what a machine takes for `Work`, whatever family it is of."""

from __future__ import annotations

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.predict.facts import DEPENDENT_CYCLES
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.predict.space import waves
from mlirfuse.schedule.predict.work import Work

US = 1e6


def price(work: Work, machine: MachineModel) -> Prediction:
    """The time of each part on a machine."""
    sms = machine.sms
    blocks = work.blocks
    slots = sms * work.resident
    busiest = (-(-blocks // sms) if blocks <= slots else blocks / sms) / blocks  # the busiest SM's share of the work
    chain = (
        machine.block_launch
        + work.rounds * machine.dram_latency
        + work.l2_rounds * machine.l2_latency
        + work.cycles * DEPENDENT_CYCLES / machine.clock
        + work.barriers * machine.block_barrier
        + work.cluster_barriers * machine.cluster_barrier
        + (machine.cluster_launch if work.cluster > 1 else 0.0)
    )
    start = machine.cluster_start if work.cluster > 1 else machine.block_start
    l2 = work.l2_read / machine.l2_read_bandwidth + work.l2_written / machine.l2_write_bandwidth
    own = busiest * max(work.l2_read / machine.l1_bandwidth_per_sm, work.l2_written / machine.store_bandwidth_per_sm)
    return Prediction(
        dram=US * (work.read + work.written) / machine.dram_bandwidth,
        l2=US * max(l2, own),
        shared=US * busiest * work.shared / machine.shared_bandwidth_per_sm,
        dsmem=US * busiest * work.dsmem / machine.dsmem_bandwidth_per_sm if work.dsmem else 0.0,
        issue=US * busiest * work.instructions / machine.issue_per_sm,
        special=US * busiest * (work.special / machine.special_per_sm + work.double / machine.f64_fma_per_sm),
        latency=US * waves(blocks, slots) * chain,
        blocks=US * blocks * start,
        synchronisation=US
        * (
            work.grid_barriers * machine.grid_barrier
            + work.messages * machine.message_latency
            + work.reads * machine.partial_latency
            + work.serial / machine.dram_bandwidth_per_sm
        ),
        launch=US * (machine.dependent_launch * work.kernels),
    )
