"""Schedules of a family that multiplies float32, or what a kernel computes, in tiles of 32 x 32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlirfuse.schedule.contractions.families.fma import FmaSchedules, fma_schedule
from mlirfuse.schedule.layout import BlockedLayout
from mlirfuse.schedule.parts.contraction import ContractionSchedule
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


class ToyFmaSchedules(FmaSchedules):
    """The layouts of `fma`, with a limit of its own on tiles."""

    def unsupported(self, problem: ContractionProblem) -> str | None:
        name = problem.element.name
        return None if name == "float32" else f"toy_fma does not multiply {name}"

    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        schedule = fma_schedule(problem, 32, 32)
        assert schedule.contraction is not None
        yield replace(schedule, contraction=replace(schedule.contraction, instruction="toy_fma"))

    def check(self, contraction: ContractionSchedule, layout: BlockedLayout, problem: ContractionProblem) -> str | None:
        return None if layout.extents[-2:] == (32, 32) else "toy_fma has tiles of 32 x 32 alone"


STRATEGY = ToyFmaSchedules()
