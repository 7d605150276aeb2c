"""`Device`: a machine's speeds and its architecture's limits, which the families' files count blocks with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.machine import RESERVED_SHARED
from mlirfuse.schedule.model.residency import allocated, resident_blocks
from mlirfuse.schedule.predict.work import Work
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import TARGETS, Target


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
