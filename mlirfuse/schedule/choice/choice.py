"""Choosing the schedule of a kernel without contractions: the proposal that is predicted to take the least time.

Every family proposes what is legal, and `predict` says what each of them takes: no family comes before another one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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


def fastest_thin(
    problem: Problem, target: Target, elements: int, machine: MachineModel | None = None
) -> Schedule | None:
    """The fastest proposal without a persistent loop whose threads have at most so many elements; None without any."""
    predictions = _Predictions(with_extents(problem), machine or machine_of(target))
    thin = [p.schedule for p in block_proposals(problem, target) if p.schedule.layout.elements_per_thread <= elements]
    return predictions.fastest(thin)


def clearly_faster(
    problem: Problem,
    target: Target,
    chosen: Schedule,
    fits: Callable[[Schedule], bool],
    machine: MachineModel | None = None,
) -> Schedule | None:
    """The fastest proposal of those that fit, if it is clearly faster than a schedule that was chosen (`CLEARLY`)."""
    return _faster(problem, target, chosen, fits, machine, by=CLEARLY)


def faster_of_another_kind(
    problem: Problem, target: Target, chosen: Schedule, kinds: Collection[Kind], machine: MachineModel | None = None
) -> Schedule | None:
    """The fastest proposal of none of these kinds (`kind_of`), if it is faster than a schedule that was chosen."""
    return _faster(problem, target, chosen, lambda schedule: kind_of(schedule) not in kinds, machine)


def _faster(
    problem: Problem,
    target: Target,
    chosen: Schedule,
    fits: Callable[[Schedule], bool],
    machine: MachineModel | None,
    *,
    by: float = 1.0,
) -> Schedule | None:
    """The fastest proposal of those that fit, if the chosen schedule takes more than so many times as long."""
    predictions = _Predictions(with_extents(problem), machine or machine_of(target))
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


def kind_of(schedule: Schedule) -> Kind:
    """What schedules have in common of which one tells how far the register estimates of the others are off."""
    loops = schedule.persistent_loop is not None, schedule.grid_persistent is not None
    return schedule.persistence, schedule.order, schedule.shared_spill > 0, *loops


@lru_cache(maxsize=256)  # passes that compare kernels ask before the schedule is assigned
def _chosen(problem: Problem, target: Target, grid_reduction: str, machine: MachineModel) -> Schedule:
    sized, equals = with_extents(problem), _Equals()
    predictions = _Predictions(sized, machine)
    if grid_reduction == "auto":
        for proposal in block_proposals(problem, target):
            equals.add(proposal.schedule, predictions.of(proposal.schedule))
    for loop in loops(problem, target):
        for schedule in combined(loop, problem, target, grid_reduction):
            prediction = predictions.of(schedule)
            equals.add(schedule, prediction)
            if prediction.loop_microseconds > equals.most:  # no second stage makes this loop one of the fastest
                break
    if equals.found:
        if any(problem.hints):
            equals.keep_fastest(_Predictions(with_extents(replace(problem, hints=())), machine))
        return equals.least(sized)
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

    def fastest(self, schedules: Sequence[Schedule]) -> Schedule | None:
        """The schedule that is predicted to take the least time, the first of equals; None of none."""
        return min(schedules, key=lambda schedule: self.of(schedule).microseconds, default=None)


@lru_cache(maxsize=4)
def _known_predictions(problem: Problem, machine: MachineModel) -> dict[Schedule, Prediction]:
    """The predictions for a problem so far."""
    return {}


class _Equals:
    """Schedules that are predicted to take as long as the fastest one, `RESOLUTION` apart at most."""

    def __init__(self) -> None:
        self.most = inf
        self.found: list[tuple[float, Schedule, Prediction]] = []

    def add(self, schedule: Schedule, prediction: Prediction) -> None:
        microseconds = prediction.microseconds
        if microseconds > self.most:
            return
        if microseconds * RESOLUTION < self.most:
            self.most = microseconds * RESOLUTION
            self.found = [each for each in self.found if each[0] <= self.most]
        self.found.append((microseconds, schedule, prediction))

    def keep_fastest(self, predictions: _Predictions) -> None:
        """Leaves those that are equals for other extents too: few rows tell little of what serves any number."""
        others, found = _Equals(), {each[1]: each for each in self.found}
        for schedule in found:
            others.add(schedule, predictions.of(schedule))
        self.found = [found[schedule] for _, schedule, _ in others.found]

    def least(self, problem: Problem) -> Schedule:
        """Without clusters if there is one, the schedule that moves the least through the L2, to a tenth of a
        microsecond, and then holds the least.

        What waits in shared memory is held too: schedules that keep all in registers come first.
        """

        def demands(each: tuple[float, Schedule, Prediction]) -> tuple[bool, float, bool, int, float]:
            microseconds, schedule, prediction = each
            clusters, spills = schedule.layout.cluster > 1, schedule.shared_spill > 0
            return clusters, round(prediction.l2, 1), spills, held_registers(schedule, problem), microseconds

        return min(self.found, key=demands)[1]


def too_wide(problem: Problem, target: Target) -> str:
    """Why no family has a schedule."""
    looped = problem.persistent_loop.dims if problem.persistent_loop else ()
    elements = 1
    for d, extent in enumerate(problem.extents):
        elements *= 1 if d in looped else extent or 1
    return f"no cluster of {target.max_cluster} holds a row of {elements} elements with its accumulators"
