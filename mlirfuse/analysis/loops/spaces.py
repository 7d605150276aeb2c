"""The iteration space of a kernel function."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from mlirfuse.analysis.kernels import body, stored_values
from mlirfuse.analysis.loops.iteration_space import Conflict, IterationSpace, space_of_structures
from mlirfuse.analysis.loops.structure import OpStructure, structure_of
from mlirfuse.errors import ScheduleError


def kernel_space(kernel: ir.Operation) -> tuple[IterationSpace, Sequence[OpStructure]]:
    """The iteration space of a tensor kernel, and its ops' structures; raises `ScheduleError` if the ops share none."""
    structures = [s for op in body(kernel) if (s := structure_of(op)) is not None]
    space = space_of_structures(structures)
    if isinstance(space, Conflict):
        raise ScheduleError(f"the kernel's ops share no iteration space: {space.reason}", where=space.op)
    check_results(kernel, space)
    return space, structures


def check_results(kernel: ir.Operation, space: IterationSpace) -> None:
    """Raises `ScheduleError` if a result of a kernel is not computed in the kernel's iteration space."""
    for number, value in enumerate(stored_values(kernel)):
        if value not in space.value_axes:
            reason = f"result {number} is not computed by an op with loops"
            raise ScheduleError(f"the kernel has no schedule: {reason}", where=kernel)
