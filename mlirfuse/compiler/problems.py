"""The scheduling problems of a traced function's kernels, for tuning."""

from __future__ import annotations

from mlirfuse.analysis.kernels import is_tile_program, kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.scheduling_problem import scheduling_problem
from mlirfuse.compiler.compile import Lowered
from mlirfuse.compiler.pipeline import TO_KERNELS, stage
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.choice.records import AnyProblem


def problems_of(lowered: Lowered, *, given: bool = False) -> dict[str, AnyProblem]:
    """The problem of each kernel on tensors, by the kernel's name before it is tiled.

    Args:
        lowered: the traced function.
        given: whether to include kernels whose schedules are given.
    """
    module = lowered.module_with({})
    with module.context:
        run_pipeline(module, stage(TO_KERNELS, fast_math=lowered.fast_math))
        return {
            symbol(kernel): scheduling_problem(kernel, *kernel_space(kernel))
            for kernel in kernels(module.operation)
            if (given or SCHEDULE not in kernel.attributes) and not is_tile_program(kernel)
        }
