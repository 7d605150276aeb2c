"""The interface through which contractions' schedules ask an instruction family: tiles, checks, registers, times."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from mlirfuse.schedule.contractions.grid import ContractionGrid
from mlirfuse.schedule.contractions.step_times import StepTimes
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.model.registers import accumulator_registers
from mlirfuse.schedule.model.residency import registers_left
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.support.strategies import strategy_of
from mlirfuse.target import Target

PACKAGE = "mlirfuse.schedule.contractions.families"


class FamilySchedules(ABC):
    """What differs between instruction families in the schedules of contractions; numbers alone are in `FAMILIES`."""

    @abstractmethod
    def unsupported(self, problem: ContractionProblem) -> str | None:
        """Why the instruction cannot multiply the operands, or None."""

    @abstractmethod
    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        """Schedules of the tiles that are worth estimating, unsplit and without a persistent loop.

        Tiles whose rings do not fit a block are left out by the caller. None where the schedules of another family
        should be estimated.
        """

    @abstractmethod
    def check(self, contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
        """What makes the steps along k, or the accumulators' layout, illegal for the instruction, or None."""

    def check_registers(
        self, contraction: ContractionSchedule, layout: BlockedLayout, blocks_per_sm: int, target: Target
    ) -> str | None:
        """Why threads cannot have the registers that one instruction needs, or None.

        Args:
            contraction: how the k-loop runs.
            layout: of the accumulators.
            blocks_per_sm: blocks that share an SM's registers; 0 is one.
            target: the architecture.
        """
        return None

    def spare_registers(self, schedule: Schedule, problem: ContractionProblem, target: Target) -> int:
        """Registers that a thread has beside its accumulators."""
        sums = accumulator_registers(schedule.layout, problem.accumulator.bytes)
        return registers_left(schedule.layout.threads, 1, target) - sums

    def is_for_one_wave(self, schedule: Schedule) -> bool:
        """Whether the tile is worth estimating only where each block has one."""
        return False

    def may_split(self, schedule: Schedule) -> bool:
        """Whether schedules that split the tile's steps along k over blocks are worth estimating."""
        return True

    def may_promote(self, schedule: Schedule) -> bool:
        """Whether threads have registers to add up long sums outside of the tensor cores' accumulators."""
        return False

    @abstractmethod
    def step_times(self, grid: ContractionGrid) -> StepTimes:
        """What one step along k of a tile takes of an SM of `grid.machine`."""


def family_schedules(family: str) -> FamilySchedules:
    """The strategy of a family that is in `FAMILIES`; a family without one has no schedules, which is an error in
    mlirfuse.
    """
    found: FamilySchedules | None = strategy_of(PACKAGE, family)
    assert found is not None, f"{PACKAGE} has no module {family}"
    return found
