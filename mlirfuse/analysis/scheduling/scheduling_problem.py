"""The scheduling problem of a kernel: what its schedule is chosen for, and what records of tuning are keyed by."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

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


def scheduling_problem(
    kernel: ir.Operation, space: IterationSpace, structures: Sequence[OpStructure]
) -> Problem | ContractionProblem:
    """The problem of a kernel on tensors, whose iteration space and structures `kernel_space` returns."""
    contraction = contraction_in(space, structures)
    if contraction is None:
        return problem_of(kernel, space, structures)
    return contraction_problem(kernel, space, contraction)


MOST_KNOWN = 64
"""Kernels whose problems are kept: those that the passes of a few functions compare."""

_known: OrderedDict[bytes, Problem | ContractionProblem] = OrderedDict()


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
    arguments = zip(kernel.regions[0].blocks[0].arguments, argument_attributes(kernel), strict=False)
    if any(GATHER in known or is_component(value, known) for value, known in arguments):  # calls say what these share
        return scheduling_problem(kernel, *(loops or kernel_space(kernel)))
    key = content(kernel)
    problem = _known.pop(key, None)
    if problem is None:
        problem = scheduling_problem(kernel, *(loops or kernel_space(kernel)))
    _known[key] = problem
    while len(_known) > MOST_KNOWN:
        _known.popitem(last=False)
    return problem


def forget_problems() -> None:
    """Forgets the problems of all kernels, as benchmarks of first calls need it."""
    _known.clear()
