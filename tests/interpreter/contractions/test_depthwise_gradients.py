"""Gradients of depthwise filters: sums over windows that slide along a thread's run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.analysis.kernels import kernels, symbol
from mlirfuse.analysis.loops.spaces import kernel_space
from mlirfuse.analysis.scheduling.problem import problem_of
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from mlirfuse.schedule.grid.second_stage import second_stages, with_grid_reduction
from mlirfuse.schedule.grid.sliding import sliding_loops
from mlirfuse.schedule.problem import Problem
from mlirfuse.target import TARGETS
from tests.support.convolutions import PASSES, Case, integers, wgrad
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some

SM90 = TARGETS["sm_90a"].with_sms(4)


def of_filters(case: Case, dtype: Any) -> Any:
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


@pytest.mark.parametrize("seed", some(range(60), 10))
def test_any_windows(seed: int) -> None:
    """Any loop that is a candidate, of windows of any sizes, strides, dilations and paddings."""
    rng, rank = np.random.default_rng(seed), (2, 1, 2, 3)[seed % 4]
    taps = tuple(map(int, rng.integers(1, (6, 6, 3)[rank - 1], rank)))
    stride, dilation = (tuple(map(int, rng.integers(1, 3, rank))) for _ in range(2))
    pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (rank, 2)))
    counts = [int(n) for n in rng.choice([3, 4, 6, 7, 8] if rank < 3 else [2, 4], rank)]  # of outputs
    sizes = tuple(
        max(1, (count - 1) * s + (r - 1) * d + 1 - sum(pad))
        for count, s, r, d, pad in zip(counts, stride, taps, dilation, pads, strict=True)
    )
    channels = int(rng.choice([3, 8, 12, 16, 40]))
    case = Case(int(rng.integers(1, 4)), sizes, channels, channels, taps, stride, pads, dilation, channels)
    x, _, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    function = of_filters(case, (None, mf.float32)[seed // 4 % 2])
    name, problem = kernel_of(function, specs_of([x, dy]))
    if problem.persistent_loop is None:
        return
    found = list(sliding_loops(problem, problem.persistent_loop, SM90))
    want = wgrad(case, x.astype(np.int64), dy.astype(np.int64))
    for number in rng.permutation(len(found))[:3]:
        stages = second_stages(found[number], "auto")
        schedule = with_grid_reduction(found[number], stages[number % len(stages)], SM90)
        gpu = module_at("gpu", function, specs_of([x, dy]), {name: schedule})
        (result,) = interpreter.run(gpu, "gradient", [x, dy], order="random", seed=seed)
        assert (result == want).all(), schedule
