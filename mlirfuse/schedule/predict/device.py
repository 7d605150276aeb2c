"""`Device`: a machine's speeds and its architecture's limits, which the families' files count blocks with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.model.machine import RESERVED_SHARED
from mlirfuse.schedule.model.residency import allocated, resident_blocks
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

    def sms(self, cluster: int) -> int:
        """SMs that hold blocks of clusters of so many: a part of the device may hold no whole cluster."""
        limits = {4: self.machine.cluster_sms_4, 8: self.machine.cluster_sms_8}
        return int(limits.get(cluster, 0.0)) or self.machine.sms

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
