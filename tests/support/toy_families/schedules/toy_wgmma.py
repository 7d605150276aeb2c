"""Schedules of an asynchronous family: those of `wgmma`, by another name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlirfuse.schedule.contractions.families.wgmma import WgmmaSchedules
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


class ToyWgmmaSchedules(WgmmaSchedules):
    """Tiles of `wgmma`."""

    def tiles(self, problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
        for schedule in super().tiles(problem, target):
            assert schedule.contraction is not None
            yield replace(schedule, contraction=replace(schedule.contraction, instruction="toy_wgmma"))


STRATEGY = ToyWgmmaSchedules()
