"""The predicted time of a traced function's kernels at any extents, before there is code."""

from __future__ import annotations

from dataclasses import replace

from mlirfuse.compiler.compile import Lowered
from mlirfuse.compiler.predicted import Shapes
from mlirfuse.compiler.problems import KernelProblems
from mlirfuse.machine import machine_of
from mlirfuse.schedule.choice.choice import choose_schedule
from mlirfuse.schedule.choice.contraction_choice import choose_contraction
from mlirfuse.schedule.choice.predicted import prediction_of, with_elements
from mlirfuse.schedule.choice.records import AnyProblem
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.predict.counts.space import ASSUMED_ELEMENTS
from mlirfuse.schedule.schedule import Schedule


class KernelTimes:
    """What the kernels of a function take with the schedules that are chosen for the extents of a call.

    Args:
        lowered: the traced function.
    """

    def __init__(self, lowered: Lowered):
        self._problems = KernelProblems(lowered)
        self._target, self._machine = lowered.target, machine_of(lowered.target, lowered.device)

    @property
    def count(self) -> int:
        """Kernels."""
        return len(self._problems.of())

    def compiled_now(self) -> float:
        """Microseconds of the schedules that the function would be compiled with, for the extents that it expects."""
        schedules, problems = self._problems.schedules(), self._problems.of()
        return sum(self._microseconds(schedules[name], problem) for name, problem in problems.items())

    def best(self, shapes: Shapes, *, alone: bool = False) -> float:
        """Microseconds of the fastest schedules for the extents of a call.

        Args:
            shapes: of the arguments.
            alone: whether products may have schedules that serve these extents only.
        """
        problems = list(self._problems.of(shapes).values())
        if alone:
            problems = [_with_numbers(p) if isinstance(p, ContractionProblem) else p for p in problems]
        return sum(self._microseconds(self._chosen(problem), problem) for problem in problems)

    def _chosen(self, problem: AnyProblem) -> Schedule:
        if isinstance(problem, ContractionProblem):
            return choose_contraction(problem, self._target, self._machine)
        return choose_schedule(problem, self._target, machine=self._machine)

    def _microseconds(self, schedule: Schedule, problem: AnyProblem) -> float:
        return prediction_of(schedule, with_elements(problem, ASSUMED_ELEMENTS), self._machine).microseconds


def _with_numbers(problem: ContractionProblem) -> ContractionProblem:
    """The problem with numbers for the extents that are expected."""
    *batch, m, n = problem.expected
    return replace(problem, batch=tuple(batch), m=m, n=n, hints=())
