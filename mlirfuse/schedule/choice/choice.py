"""Choosing the schedule of a kernel without contractions: the proposal that is predicted to take the least time.

Every family proposes what is legal, and `predict` says what each of them takes: no family comes before another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf

from mlirfuse.errors import ScheduleError
from mlirfuse.machine.lookup import machine_of
from mlirfuse.machine.model import MachineModel
from mlirfuse.schedule.choice.proposals import block_proposals, combined, loops, proposals
from mlirfuse.schedule.predict.counts.space import held_registers, with_extents
from mlirfuse.schedule.predict.predict import predict
from mlirfuse.schedule.predict.prediction import Prediction
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

Kind = tuple[object, ...]

CONTRADICTED = 1.1
"""Ratio of what a schedule takes with the registers of its code, to what another one is predicted to take, from which
the other one is tried."""

CLEARLY = 1.5
"""Ratio of predicted times from which on a schedule that may spill is tried before one that is known not to."""

RESOLUTION = 1.02
"""Ratio of predicted times up to which they are equal: of equals a schedule is taken without clusters, whose blocks
wait for one another, then the one that moves the least through the L2, then one that keeps all in registers, and then
the one whose threads hold the least, which is the last to spill and lets the most blocks take turns."""


def choose_schedule(
    problem: Problem, target: Target, grid_reduction: str = "auto", machine: MachineModel | None = None
) -> Schedule:
    """The proposal of the least predicted time; of those within `RESOLUTION` of it, the one that demands the least.

    Args:
        problem: the problem; dynamic extents are taken to be as `space.with_extents` says. Of schedules that are equal
            for the expected extents those come first that are the fastest for large ones, too.
        target: the architecture that schedules must be legal for.
        grid_reduction: how the partials of a persistent loop are combined, one of `persistent_loop.GRID_REDUCTIONS`;
            `auto` for the fastest of those that give the same bits on every run. Where another one is asked for, a
            schedule without a persistent loop is taken only if there is none with one.
        machine: the speeds of the device; by default the target's.

    Raises:
        ScheduleError: no family has a schedule.
    """
    return _chosen(problem, target, grid_reduction, machine or machine_of(target))


def fastest_thin(problem: Problem, target: Target, elements: int) -> Schedule | None:
    """The fastest proposal without a persistent loop whose threads have at most so many elements; None without any."""
    predictions = _Predictions(with_extents(problem), machine_of(target))
    thin = [p.schedule for p in block_proposals(problem, target) if p.schedule.layout.elements_per_thread <= elements]
    return predictions.fastest(thin)


def faster(
    problem: Problem, target: Target, chosen: Schedule, fits: Callable[[Schedule], bool], *, by: float = 1.0
) -> Schedule | None:
    """The fastest proposal of those that fit, if the chosen schedule takes more than so many times as long."""
    predictions = _Predictions(with_extents(problem), machine_of(target))
    best = predictions.fastest([p.schedule for p in proposals(problem, target) if fits(p.schedule)])
    if best is None or by * predictions.of(best).microseconds >= predictions.of(chosen).microseconds:
        return None
    return best


def fastest_with_known_registers(
    problem: Problem,
    target: Target,
    registers: Mapping[Schedule, int],
    legal: Callable[[Schedule], bool] | None,
    machine: MachineModel | None = None,
) -> Schedule:
    """The fastest schedule where some have code, whose registers say how many blocks an SM really holds.

    Of the others, the fastest legal one is taken if it is predicted to be faster than all of these (`CONTRADICTED`).
    None is where no array varies along the whole space: threads use all registers for their results there, whatever is
    estimated, and few blocks suffice.

    Args:
        problem: the problem.
        target: the architecture.
        registers: of a thread, by schedule.
        legal: whether a schedule is legal for the kernel; None where no other one is to be tried.
        machine: the speeds of the device; by default the target's.
    """
    machine, sized = machine or machine_of(target), with_extents(problem)
    known = {s: predict(s, sized, machine, registers=count).microseconds for s, count in registers.items()}
    best = min(known, key=known.__getitem__)
    if legal is None or problem.shares_reads:
        return best
    predictions = _Predictions(sized, machine)
    times = {p.schedule: predictions.of(p.schedule).microseconds for p in proposals(problem, target)}
    for schedule in sorted(times, key=times.__getitem__):
        if CONTRADICTED * times[schedule] >= known[best]:
            break
        if schedule not in known and legal(schedule):
            return schedule
    return best


def fastest_spilling(
    problem: Problem, target: Target, lacking: Mapping[Schedule, float], machine: MachineModel | None = None
) -> Schedule:
    """The schedule that is predicted to take the least time of those that all spill: as many times longer as threads
    lack registers.

    Args:
        problem: the problem.
        target: the architecture.
        lacking: registers that a thread wanted to those that it had, by schedule.
        machine: the speeds of the device; by default the target's.
    """
    predictions = _Predictions(with_extents(problem), machine or machine_of(target))
    return min(lacking, key=lambda schedule: lacking[schedule] * predictions.of(schedule).microseconds)


def kind_of(schedule: Schedule) -> Kind:
    """What schedules have in common of which one tells how far the register estimates of the others are off."""
    loops = schedule.persistent_loop is not None, schedule.grid_persistent is not None
    return schedule.persistence, schedule.order, schedule.shared_spill > 0, *loops


@lru_cache(maxsize=256)  # passes that compare kernels ask before the schedule is assigned
def _chosen(problem: Problem, target: Target, grid_reduction: str, machine: MachineModel) -> Schedule:
    sized = with_extents(problem)
    predictions = _Predictions(sized, machine)
    found = [p.schedule for p in block_proposals(problem, target)] if grid_reduction == "auto" else []
    least = min((predictions.of(schedule).microseconds for schedule in found), default=inf)
    for loop in loops(problem, target):
        for schedule in combined(loop, problem, target, grid_reduction):
            found.append(schedule)
            prediction = predictions.of(schedule)
            least = min(least, prediction.microseconds)
            if prediction.loop_microseconds > RESOLUTION * least:  # no second stage makes this one of the fastest
                break
    if found:
        found = predictions.equals(found)
        if any(problem.hints):  # few rows tell little of what serves any number
            found = _Predictions(with_extents(replace(problem, hints=())), machine).equals(found)
        return _least_demanding([(predictions.of(schedule), schedule) for schedule in found], sized)
    if grid_reduction != "auto":
        return _chosen(problem, target, "auto", machine)
    raise ScheduleError(too_wide(problem, target), hint="reduce the rows in a function of its own")


class _Predictions:
    """Predictions for one problem; those that an earlier choice for the same problem has asked for are known.

    Where a kernel spills, choices are made again and again with other estimates of registers, which predictions do not
    depend on.
    """

    def __init__(self, problem: Problem, machine: MachineModel):
        self._problem, self._machine = problem, machine
        self._known = _known_predictions(replace(problem, register_scale=1.0), machine)

    def of(self, schedule: Schedule) -> Prediction:
        """What the schedule is predicted to take."""
        found = self._known.get(schedule)
        if found is None:
            found = self._known[schedule] = predict(schedule, self._problem, self._machine)
        return found

    def equals(self, schedules: Sequence[Schedule]) -> list[Schedule]:
        """Those that are predicted to take as long as the fastest one, within `RESOLUTION`."""
        most = RESOLUTION * min(self.of(schedule).microseconds for schedule in schedules)
        return [schedule for schedule in schedules if self.of(schedule).microseconds <= most]

    def fastest(self, schedules: Sequence[Schedule]) -> Schedule | None:
        """The schedule that is predicted to take the least time, the first of equals; None of none."""
        return min(schedules, key=lambda schedule: self.of(schedule).microseconds, default=None)


@lru_cache(maxsize=4)
def _known_predictions(problem: Problem, machine: MachineModel) -> dict[Schedule, Prediction]:
    """The predictions for a problem so far."""
    return {}


def _least_demanding(found: Iterable[tuple[Prediction, Schedule]], problem: Problem) -> Schedule:
    """Of equals the schedule without clusters if there is one, that moves the least through the L2, to a tenth of a
    microsecond, and then holds the least.

    What waits in shared memory is held too: schedules that keep all in registers come first.
    """

    def demands(each: tuple[Prediction, Schedule]) -> tuple[bool, float, bool, int, float]:
        prediction, schedule = each
        clusters, spills = schedule.layout.cluster > 1, schedule.shared_spill > 0
        held = held_registers(schedule, problem)
        return clusters, round(prediction.l2, 1), spills, held, prediction.microseconds

    return min(found, key=demands)[1]


def too_wide(problem: Problem, target: Target) -> str:
    """Why no family has a schedule."""
    looped = problem.persistent_loop.dims if problem.persistent_loop else ()
    elements = 1
    for d, extent in enumerate(problem.extents):
        elements *= 1 if d in looped else extent or 1
    return f"no cluster of {target.max_cluster} holds a row of {elements} elements with its accumulators"
