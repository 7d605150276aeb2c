"""Measures the candidates of a function's kernels in the order of prediction, until the time is up, and keeps the
fastest of each problem. The caller says how a call is compiled and measured, so that tests need no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic

from rich.progress import Progress

from mlirfuse.compiler.compile import Compiled, Lowered
from mlirfuse.compiler.problems import problems_of
from mlirfuse.errors import MlirFuseError
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.predicted import ranked
from mlirfuse.schedule.choice.records import AnyProblem, Record, RecordKey, lookup, on_trial, store
from mlirfuse.schedule.schedule import Schedule

Begin = Callable[[], tuple[Compiled, Callable[[], float]]]
"""Compiles a function anew; returns that, and a function that measures a call of it in microseconds."""


@dataclass(frozen=True)
class Trial:
    """A schedule that was measured.

    Attributes:
        schedule: the schedule.
        microseconds: of a call of the whole function with it.
        predicted: microseconds of the kernel; None for the schedule that the function had before.
    """

    schedule: Schedule
    microseconds: float
    predicted: float | None = None


@dataclass
class Tuned:
    """What was measured for one problem.

    Attributes:
        kernel: the first kernel that has it.
        problem: the scheduling problem.
        candidates: how many there are, measured or not.
        trials: the schedule that the function had before, then others by prediction.
        failures: why some have no time.
    """

    kernel: str
    problem: AnyProblem
    candidates: int
    trials: list[Trial]
    failures: list[str] = field(default_factory=list)

    @property
    def best(self) -> Trial:
        """The fastest, the first of equals."""
        return min(self.trials, key=lambda trial: trial.microseconds)


@dataclass(frozen=True)
class Search:
    """A search over the schedules of one function, for one signature.

    Attributes:
        begin: compiles and measures the function.
        lowered: the function, its target and its device.
        grid_reduction: how the function asks for partials to be combined.
        elements: of the largest argument: what iteration spaces with run-time extents are taken to have.
        seconds: time for all kernels together; no trial begins after it.
    """

    begin: Begin
    lowered: Lowered
    grid_reduction: str
    elements: int
    seconds: float

    def run(self, progress: Progress, *, again: bool) -> Iterator[Tuned]:
        """Tunes one problem after the other, each with the other kernels' schedules as they are by then.

        Args:
            progress: shows how much of the time has passed.
            again: whether problems that have a record are measured too.
        """
        deadline = monotonic() + self.seconds
        problems: dict[str, tuple[RecordKey, str]] = {}
        for kernel, problem in problems_of(self.lowered).items():
            key = RecordKey(problem, self.lowered.target, self.lowered.device, self.grid_reduction)
            if again or lookup(key) is None:
                problems.setdefault(key.text, (key, kernel))
        for number, (key, kernel) in enumerate(problems.values()):
            share = max(0.0, deadline - monotonic()) / (len(problems) - number)
            tuned = self._tune(kernel, key, share, progress)
            store(key, Record(tuned.best.schedule, tuned.best.microseconds))
            yield tuned

    def _tune(self, kernel: str, key: RecordKey, seconds: float, progress: Progress) -> Tuned:
        """Measures what the function has, and then candidates for so many seconds."""
        start = monotonic()
        task = progress.add_task(kernel, total=seconds)
        compiled, measure = self.begin()
        before = Trial(compiled.schedules[kernel], measure())
        machine = machine_of(key.target, key.device)
        found = ranked(key.problem, key.target, machine, self.elements, key.grid_reduction)
        tuned = Tuned(kernel, key.problem, len(found), [before])
        for candidate in found:
            passed = monotonic() - start
            progress.update(task, completed=passed, description=f"{kernel}: {tuned.best.microseconds:.1f} us")
            if passed >= seconds:
                break
            if candidate.schedule == before.schedule:
                continue
            try:
                with on_trial(key, candidate.schedule):
                    microseconds = self.begin()[1]()
            except MlirFuseError as error:
                tuned.failures.append(f"{candidate.schedule.tile}: {error}".partition("\n")[0])
                continue
            tuned.trials.append(Trial(candidate.schedule, microseconds, candidate.microseconds))
        progress.remove_task(task)
        return tuned
