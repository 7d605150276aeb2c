"""Gradients of depthwise filters: sums over windows that slide along a thread's run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.schedule.grid.second_stage import second_stages, with_grid_reduction
from mlirfuse.schedule.grid.sliding import sliding_loops
from mlirfuse.target import TARGETS
from tests.support.contractions.depthwise import kernel_of, of_filters, sliced_loops
from tests.support.convolutions import Case, integers, wgrad
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some

SM90 = TARGETS["sm_90a"].with_sms(4)


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


@pytest.mark.parametrize(("channels", "taps", "stride"), [(40, 3, 1), (88, 3, 2), (96, 5, 1)])
def test_slices_of_channels(channels: int, taps: int, stride: int) -> None:
    """Blocks with a slice of the channels, of which the last one may be a part."""
    rng, edge = np.random.default_rng(channels), (taps // 2, taps // 2)
    case = Case(2, (8, 8), channels, channels, (taps, taps), (stride, stride), (edge, edge), (1, 1), channels)
    x, _, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    function = of_filters(case, None if taps == 5 else mf.float32)
    name, problem = kernel_of(function, specs_of([x, dy]))
    want = wgrad(case, x.astype(np.int64), dy.astype(np.int64))
    found = sliced_loops(problem, SM90)
    for number in (0, len(found) // 3, len(found) - 1):
        gpu = module_at("gpu", function, specs_of([x, dy]), {name: found[number]})
        (result,) = interpreter.run(gpu, "gradient", [x, dy], order="random", seed=number)
        assert (result == want).all(), found[number]


@pytest.mark.parametrize("channels", [40, 64])
def test_slices_with_a_bias_gradient(channels: int) -> None:
    """A sum of the same tiles that keeps the channels alone, beside one that keeps the taps too."""
    rng = np.random.default_rng(channels)
    case = Case(2, (8, 8), channels, channels, (3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), channels)
    x, _, dy = (integers(rng, shape, np.float16) // 2 for shape in case.shapes)
    of_filter = of_filters(case, None)

    def gradients(x: Any, dy: Any) -> Any:
        return of_filter(x, dy), mf.sum(dy, axis=(0, 1, 2))

    name, problem = kernel_of(gradients, specs_of([x, dy]))
    found = sliced_loops(problem, SM90)
    for number in (0, len(found) // 2, len(found) - 1):
        gpu = module_at("gpu", gradients, specs_of([x, dy]), {name: found[number]})
        filters, bias = interpreter.run(gpu, "gradients", [x, dy], order="random", seed=number)
        assert (filters == wgrad(case, x.astype(np.int64), dy.astype(np.int64))).all(), found[number]
        assert (bias == dy.astype(np.int64).sum((0, 1, 2))).all(), found[number]
