"""Every candidate of a problem with the time that it is predicted to take, the fastest first: the order of tuning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlirfuse.machine import MachineModel
from mlirfuse.schedule.choice.contraction_choice import fastest_first
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.predict import predict
from mlirfuse.schedule.predict.counts.space import with_extents
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target


@dataclass(frozen=True)
class Ranked:
    """A candidate, and the microseconds that it is predicted to take."""

    schedule: Schedule
    microseconds: float


def ranked(
    problem: AnyProblem, target: Target, machine: MachineModel, elements: int, grid_reduction: str
) -> list[Ranked]:
    """The distinct candidates of all families, the fastest by prediction first.

    Args:
        problem: the scheduling problem of a kernel.
        target: the architecture that schedules must be legal for.
        machine: the speeds of the device.
        elements: of the iteration space of a kernel without contractions, where its extents are known at run time.
        grid_reduction: how partials are to be combined; `auto` is all ways but atomic additions.
    """
    found: Iterable[Ranked]
    if isinstance(problem, Problem):
        sized = with_extents(problem, elements)
        schedules = (proposal.schedule for proposal in proposals(problem, target, grid_reduction))
        asked = (s for s in schedules if _combines(s, grid_reduction))
        found = (Ranked(s, predict(s, sized, machine).microseconds) for s in asked)
    else:
        found = (Ranked(*pair) for pair in fastest_first(problem, target, machine))
    return sorted(found, key=lambda candidate: candidate.microseconds)


def _combines(schedule: Schedule, grid_reduction: str) -> bool:
    """Whether a schedule combines partials as was asked, if it has any."""
    loop = schedule.persistent_loop
    return loop is None or grid_reduction in ("auto", loop.grid_reduction)
