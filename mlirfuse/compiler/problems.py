"""The scheduling problems of a traced function's kernels, for tuning."""

from __future__ import annotations

from mlirfuse.analysis.kernels import is_tile_program, kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling_problem import scheduling_problem
from mlirfuse.compiler.compile import Lowered
from mlirfuse.compiler.pipeline import TO_KERNELS, stage
from mlirfuse.dialect.attributes import SCHEDULE
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.records import AnyProblem


def problems_of(lowered: Lowered) -> dict[str, AnyProblem]:
    """The problem of each kernel whose schedule is not given, by the kernel's name before it is tiled."""
    module = lowered.module_with({})
    with module.context:
        run_pipeline(module, stage(TO_KERNELS, fast_math=lowered.fast_math))
        return {
            symbol(kernel): scheduling_problem(kernel, *kernel_space(kernel))
            for kernel in kernels(module.operation)
            if SCHEDULE not in kernel.attributes and not is_tile_program(kernel)
        }
