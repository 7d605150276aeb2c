"""`Work`: what a kernel makes a machine do, whatever family its schedule is of; `price`: what that takes; `Device`: the
machine's speeds and its architecture's limits, which the families' files count blocks with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import RESERVED_SHARED
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS, Target

INSTRUCTION_BYTES, INSTRUCTION_CACHE, LARGEST_INSTRUCTION_CACHE = 16, 32 << 10, 128 << 10
"""Bytes of an instruction, and of an SM's caches for them: that of its schedulers, and its largest one (Jia et al.,
"Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 3.5; as large on Hopper,
`benchmarks/results/instruction_cache-h200.json`)."""

UNCACHED_RATE = 0.55
"""Rate of instructions that come from the largest cache, to that of the schedulers, where several warps of each are at
work (`benchmarks/results/instruction_cache-h200.json`)."""

DEPENDENT_CYCLES = 4
"""Cycles from an instruction to another one that needs its result."""

EXCHANGE_BARRIERS = 9
"""Barriers that an exchange between the warps of a block takes as long as: these write, meet, and read, and seldom
arrive together."""

JOINING = 0.5
"""Share of what clusters add to a launch that they add to each wave of blocks too: blocks of one start together."""

LAST_BLOCK_MESSAGES = 2
"""Messages, one after the other, by which the last block of a grid learns that it is: a block's partial results have to
be seen by all before it counts itself, and the count has to be back before the last one reads them
(`benchmarks/results/candidates_survey-h200.json`)."""

RECENT = 64
"""Times that what a kernel moves fits the L2 where the L2 still has its arguments: what other kernels moved since then
is many times as much."""

US = 1e6
"""Microseconds of a second."""

FEW_WAVES, EVEN = 5.0, 0.02
"""Waves of blocks up to which all blocks of one end at about the same time; and the part of a wave that is none."""

UNHIDDEN = 0.6
"""Share of the dependent steps of a last wave's blocks that nothing hides: they begin while the wave before ends."""


@dataclass
class Work:
    """What a kernel makes a machine do.

    Attributes:
        blocks: of the grid.
        cluster: blocks that start together.
        threads: of a block.
        resident: blocks that an SM holds at once.
        sms: SMs that hold such blocks.
        read: bytes read from device memory.
        written: bytes written to it.
        l2_read: bytes of sectors that SMs read from the L2, device memory's included.
        l2_again: bytes of sectors that SMs read once more while others write: halos of stencils.
        l2_written: bytes of sectors that SMs write.
        l1: bytes of lines that threads read of the L1.
        shared: bytes of accesses to shared memory.
        spilled: bytes of those by which values wait there across a reduction: each block writes them before it reduces,
            and reads them when it has, while it loads nothing.
        dsmem: bytes of accesses to other blocks' shared memory.
        instructions: of threads.
        iterations: of a thread over the same code; fewer where a part of the loop has a copy of its own.
        special: special functions of threads.
        double: operations of threads in double precision.
        rounds: loads that one block waits for, one after the other, from device memory.
        l2_rounds: the same from the L2.
        waits: instructions of one thread that wait for one another.
        barriers: of the block, one after the other.
        cluster_barriers: of the cluster.
        releases: of these, how many wait for stores to device memory.
        steps: of one block that loads ahead, one after the other.
        ahead: steps whose loads are under way during the instructions and barriers of one before; 0 where none are.
        grid_barriers: of the grid.
        messages: from one block to another by way of device memory.
        reads: reads of partial results, one after the other, behind the loop.
        serial: bytes of these that the block reads that has the most.
        gathered: bytes of shared memory through which its warps add them up.
        kernels: that are launched.
        streams: whether blocks reduce nothing.
    """

    blocks: int
    cluster: int
    threads: int
    resident: int
    sms: int
    read: float = 0.0
    written: float = 0.0
    l2_read: float = 0.0
    l2_again: float = 0.0
    l2_written: float = 0.0
    l1: float = 0.0
    shared: float = 0.0
    spilled: float = 0.0
    dsmem: float = 0.0
    instructions: float = 0.0
    iterations: float = 1.0
    special: float = 0.0
    double: float = 0.0
    rounds: float = 1.0
    l2_rounds: float = 0.0
    waits: float = 0.0
    barriers: float = 0.0
    cluster_barriers: float = 0.0
    releases: float = 0.0
    steps: int = 1
    ahead: int = 0
    grid_barriers: int = 0
    messages: int = 0
    reads: float = 0.0
    serial: float = 0.0
    gathered: float = 0.0
    kernels: int = 1
    streams: bool = False


def price(work: Work, machine: MachineModel) -> Prediction:
    """The time of each part on a machine."""
    recent = (work.read + work.written) * RECENT < machine.l2_bytes
    slots = work.sms * work.resident
    per_sm = -(-work.blocks // work.sms) if work.blocks <= slots else work.blocks / work.sms
    busiest = per_sm / work.blocks  # its share of the work
    exchange = machine.block_barrier * EXCHANGE_BARRIERS * (work.threads / 256 + 1) / 2
    chain = _chain(work, machine, exchange, machine.l2_latency if recent else machine.dram_latency)
    latency = waves(work.blocks, slots) * chain
    spilled = busiest * work.spilled / machine.shared_bandwidth_per_sm
    first_step = latency / work.steps if work.ahead else 0.0  # nothing is under way yet that could hide it
    written = max(work.l2_written / machine.l2_write_bandwidth, work.l2_again / machine.l2_read_bandwidth)
    l2 = work.l2_read / machine.l2_read_bandwidth + written
    functions = work.special / machine.special_per_sm + work.double / machine.f64_fma_per_sm
    launch = machine.next_launch
    first = machine.graph_launch if work.grid_barriers else launch  # a grid that is resident as a whole waits for it
    prediction = Prediction(
        dram=0.0 if recent else US * (work.read + work.written) / machine.dram_bandwidth,
        l2=US * max(l2, busiest * work.l2_written / machine.dram_bandwidth_per_sm),
        shared=US * busiest * (work.shared + work.l1) / machine.shared_bandwidth_per_sm,
        dsmem=US * busiest * work.dsmem / machine.dsmem_bandwidth_per_sm if work.dsmem else 0.0,
        issue=US * (busiest * _issuing(work, machine) + per_sm * _fetching(work, machine)),
        special=US * busiest * functions,
        latency=US * latency,
        blocks=US * work.blocks * (machine.cluster_start if work.cluster > 1 else machine.block_start),
        synchronisation=US * _combining(work, machine, exchange),
        launch=US * (first + (work.kernels - 1) * launch),
        in_work=max(1.0, min(work.resident, work.blocks / work.sms) / work.cluster) + work.ahead,
        ahead=bool(work.ahead),
        streams=work.streams,
        exposed=US * (spilled + first_step),
    )
    return prediction if work.ahead else _with_last_wave(prediction, work.blocks / slots, US * chain)


def _with_last_wave(prediction: Prediction, count: float, chain: float) -> Prediction:
    """The prediction with what a last wave of few blocks waits for, beyond its share of the work: nothing hides it.

    Args:
        prediction: without it.
        count: waves.
        chain: microseconds of the dependent steps of a block.
    """
    part = count % 1.0
    if not 1.0 < count < FEW_WAVES or part <= EVEN:
        return prediction
    last = UNHIDDEN * chain - prediction.busy_microseconds * part / count
    return replace(prediction, exposed=prediction.exposed + last) if last > 0 else prediction


def _issuing(work: Work, machine: MachineModel) -> float:
    """Seconds of one SM's schedulers for all instructions.

    A loop that does not fit their cache finds nothing there: each instruction drops the one that is needed next.
    """
    missed = min(1.0, max(0.0, 2 * (_code_bytes(work) / INSTRUCTION_CACHE - 1)))
    return work.instructions * (1 + missed * (1 / UNCACHED_RATE - 1)) / machine.issue_per_sm


def _fetching(work: Work, machine: MachineModel) -> float:
    """Seconds in which an SM fetches a block's code from the L2, as far as it outgrows the largest cache.

    Warps of a block share what is fetched; blocks are each at another place.
    """
    code = _code_bytes(work)
    missed = max(0.0, 1 - LARGEST_INSTRUCTION_CACHE / code) if code else 0.0
    return code * max(1.0, work.iterations) * missed / machine.l2_bandwidth_per_sm


def _code_bytes(work: Work) -> float:
    """Of a thread's code, or of the loop that takes most of its time."""
    return INSTRUCTION_BYTES * work.instructions / (work.blocks * work.threads) / max(1.0, work.iterations)


def _chain(work: Work, machine: MachineModel, exchange: float, load: float) -> float:
    """Seconds of the dependent steps of one block; of an exchange between its warps, and of a load, as given.

    Stores of a loop that loads ahead have left when the step after waits for them.
    """
    loads = work.rounds * load + work.l2_rounds * machine.l2_latency
    steps = (
        work.waits * DEPENDENT_CYCLES / machine.clock
        + work.barriers * exchange
        + work.cluster_barriers * (machine.cluster_barrier + exchange)
    )
    chain = max(loads, steps) if work.ahead else loads + steps + work.releases * machine.l2_latency
    return chain + JOINING * machine.cluster_launch if work.cluster > 1 else chain


def _combining(work: Work, machine: MachineModel, exchange: float) -> float:
    """Seconds in which partial results are combined, once the last block has left its own."""
    return (
        work.grid_barriers * machine.grid_barrier
        + work.messages * machine.message_latency
        + work.reads * (machine.l2_latency + exchange)
        + work.serial / machine.l2_bandwidth_per_sm
        + work.gathered / machine.shared_bandwidth_per_sm
    )


def waves(blocks: int, slots: int) -> float:
    """Times that slots are filled with blocks one after the other: a whole number where they are few."""
    count = blocks / slots
    return max(1.0, ceil(count - EVEN)) if count < FEW_WAVES else count


@dataclass(frozen=True)
class Device:
    """What blocks run on.

    Attributes:
        machine: its speeds.
        target: its limits.
    """

    machine: MachineModel
    target: Target

    def work(self, layout: BlockedLayout, clusters: int, resident: int) -> Work:
        """The work of so many clusters of blocks, or of blocks alone, of which an SM holds `resident`; nothing yet."""
        return Work(
            clusters * layout.cluster, layout.cluster, layout.threads, resident, self.machine.sms_with(layout.cluster)
        )

    def asked(self, schedule: Schedule, registers: int | None) -> int:
        """Blocks that an SM holds of those that a schedule asks for, once the registers of a thread are known."""
        resident = max(1, schedule.blocks_per_sm)
        return resident if registers is None else min(resident, self.resident(schedule.layout.threads, registers))

    def resident(self, threads: int, registers: int, shared: int = 0) -> int:
        """Blocks that an SM holds at once.

        Args:
            threads: of a block.
            registers: of a thread.
            shared: bytes of shared memory of a block.
        """
        given = allocated(min(registers, self.target.max_registers_per_thread))
        by_shared = self.target.shared_per_sm // (shared + RESERVED_SHARED)
        return max(1, min(resident_blocks(threads, given, self.target), by_shared))


@lru_cache(maxsize=16)
def device_of(machine: MachineModel) -> Device:
    """The device of a machine model."""
    return Device(machine, TARGETS[machine.chip].with_sms(machine.sms))
