"""Gradients of depthwise filters: their kernel, and the schedules that it may have."""

from __future__ import annotations

from typing import Any

import mlirfuse as mf
from mlirfuse.analysis.kernels import kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.grid.second_stage import with_grid_reduction
from mlirfuse.schedule.grid.sliding import sliding_loops
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target
from tests.support.convolutions import PASSES, Case


def of_filters(case: Case, dtype: Any) -> Any:
    """The function of x and dy that a case's gradient of filters is."""

    def gradient(x: Any, dy: Any) -> Any:
        gradient_of_filters = PASSES[len(case.taps) - 1][1]
        return gradient_of_filters(x, dy, kernel_size=case.taps, dtype=dtype, **case.parameters)

    return gradient


def kernel_of(function: Any, specs: list[Any]) -> tuple[str, Problem]:
    """The kernel of a function's sums, and its scheduling problem."""
    module = mf.fuse(function, target="sm_90a").lower(*specs).module
    with module.context:
        run_pipeline(module, f"builtin.module({pipeline.TO_KERNELS.format(fast='false')})")
        (kernel,) = kernels(module.operation)
        return symbol(kernel), problem_of(kernel, *kernel_space(kernel))


def sliced_loops(problem: Problem, target: Target) -> list[Schedule]:
    """The loops whose blocks have slices of the channels, those first whose last slice is a part of one."""
    assert problem.persistent_loop is not None
    found = [s for s in sliding_loops(problem, problem.persistent_loop, target) if s.persistent_loop]
    inner = problem.vector_dim
    channels = problem.extents[inner] or 1
    sliced = [s for s in found if s.persistent_loop is not None and s.persistent_loop.slices > 1]
    ordered = sorted(sliced, key=lambda s: channels % s.tile[inner] == 0)
    return [with_grid_reduction(s, "second_kernel", target) for s in ordered]
