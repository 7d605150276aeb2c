"""Tiles that a contraction may have: those of the fastest instruction family that has any, and that fit a block."""

from __future__ import annotations

from collections.abc import Iterator

from mlirfuse.schedule.contractions.family import FamilySchedules, family_schedules
from mlirfuse.schedule.contractions.stages import fits_block
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target
from mlirfuse.target.instructions import FAMILIES


def tiles(problem: ContractionProblem, target: Target) -> Iterator[Schedule]:
    """A schedule for every tile, unsplit and without a persistent loop."""
    for family in _fastest_first(target):
        found = False
        for schedule in family.tiles(problem, target) if family.unsupported(problem) is None else ():
            found = True
            if fits_block(schedule, problem, target):
                yield schedule
        if found:
            return


def _fastest_first(target: Target) -> list[FamilySchedules]:
    """The strategies of the families that the target has."""
    there = [family for family in FAMILIES.values() if family.exists_on(target)]
    return [family_schedules(f.name) for f in sorted(there, key=lambda f: f.flops_per_sm, reverse=True)]
