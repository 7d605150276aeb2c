"""The scheduling problem of a kernel: what its schedule is chosen for, and what records of tuning are keyed by."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.problem import Problem


def scheduling_problem(
    kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]
) -> Problem | ContractionProblem:
    """The problem of a kernel on tensors, whose iteration space and structures `kernel_space` returns."""
    contraction = contraction_in(space, structures)
    if contraction is None:
        return problem_of(kernel, space, structures)
    return contraction_problem(kernel, space, contraction)
