"""The scheduling problem of a kernel: what its schedule is chosen for, and what records of tuning are keyed by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlir import ir

from mlirfuse.analysis.contractions.contraction import contraction_in
from mlirfuse.analysis.contractions.problem import contraction_problem
from mlirfuse.analysis.kernels import argument_attributes, content
from mlirfuse.analysis.loops.iteration_space import IterationSpace
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.loops.structure import OpStructure
from mlirfuse.analysis.scheduling.array_views import is_component
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.dialect.gather_attribute import GATHER
from mlirfuse.schedule.parts.contraction_problem import ContractionProblem
from mlirfuse.schedule.problem import Problem
from mlirfuse.support.recent import Recent


def scheduling_problem(
    kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]
) -> Problem | ContractionProblem:
    """The problem of a kernel on tensors, whose iteration space and structures `kernel_space` returns."""
    contraction = contraction_in(space, structures)
    if contraction is None:
        return problem_of(kernel, space, structures)
    return contraction_problem(kernel, space, contraction)


_known: Recent[bytes, Problem | ContractionProblem] = Recent(1024)


Loops = tuple[IterationSpace, Sequence[OpStructure]]
"""What `kernel_space` returns."""


def kernel_problem(kernel: ir.Operation, loops: Loops | None = None) -> Problem | ContractionProblem:
    """The problem of a kernel on tensors, which is computed once for kernels of the same IR.

    Passes compare a kernel with several others, and each of them asks for what earlier ones have left as it was.

    Args:
        kernel: the kernel.
        loops: its iteration space and structures, where these are known.

    Raises:
        ScheduleError: the kernel's ops share no iteration space.
    """
    compute = partial(_problem, kernel, loops)
    return compute() if depends_on_calls(kernel) else _known.of(content(kernel), compute)


def depends_on_calls(kernel: ir.Operation) -> bool:
    """Whether a kernel's problem follows from its launches too, which say what views of one array share."""
    arguments = zip(kernel.regions[0].blocks[0].arguments, argument_attributes(kernel), strict=False)
    return any(GATHER in known or is_component(value, known) for value, known in arguments)


def _problem(kernel: ir.Operation, loops: Loops | None) -> Problem | ContractionProblem:
    return scheduling_problem(kernel, *(loops or kernel_space(kernel)))
