"""Random functions that change the order of memory, by chosen schedules and by every candidate, on the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.choice.records import RecordKey, on_trial
from mlirfuse.schedule.problem import Problem
from tests.support.views.random_layouts import KINDS, RandomLayout


def of_arrays(case: RandomLayout) -> Callable[..., Any]:
    """The function with as many parameters as there are arrays."""
    if len(case.arrays()) == 1:
        return lambda x: case.function(x)
    return lambda x, y: case.function(x, y)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_random_orders_of_memory(seed: int, kind: str) -> None:
    case = RandomLayout(seed, kind, most=3000)
    arrays = case.arrays()
    case.check(mf.fuse(of_arrays(case), target="interpret")(*arrays), arrays)


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[int, ...], str]] = {
    "three channels last": (lambda x: mf.permute_dims(x, (0, 2, 3, 1)) + 1, (2, 3, 5, 64), "float16"),
    "three channels first": (lambda x: mf.permute_dims(x, (0, 3, 1, 2)) + 1, (2, 5, 64, 3), "int8"),
    "pixels shuffled": (lambda x: mf.permute_dims(x, (0, 3, 1, 4, 2)) + 1, (2, 2, 2, 6, 64), "float16"),
    "patches put back": (lambda x: mf.permute_dims(x, (0, 5, 1, 3, 2, 4)) * 2, (1, 4, 8, 2, 2, 16), "float32"),
    "heads": (lambda x: mf.permute_dims(x, (0, 2, 1, 3)) + 1, (2, 9, 4, 32), "float16"),
    "windows of rows": (lambda x: mf.max(x, axis=(2, 4)), (3, 5, 2, 12, 2), "float16"),
    "windows of colours": (lambda x: mf.sum(x, axis=(1, 3)), (5, 4, 14, 4, 3), "float32"),
    "colours": (lambda x: mf.sum(x, axis=-1), (1037, 3), "float32"),
    "few columns": (lambda x: x + 1, (37, 49), "float16"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_candidates_agree(name: str) -> None:
    """A sample of the candidates of each program, whatever is predicted of them."""
    fn, shape, dtype = FUNCTIONS[name]
    x = np.random.default_rng(1).integers(-4, 5, shape).astype(dtype)
    wanted = np.asarray(mf.fuse(fn, target="interpret", fusion="off")(x))
    fused = mf.fuse(fn, target="interpret")
    np.testing.assert_array_equal(np.asarray(fused(x)), wanted)
    (compiled,) = fused._compiled.values()
    (problem,) = problems_of(compiled.lowered).values()
    assert isinstance(problem, Problem)
    target = compiled.lowered.target
    found = [p for p in proposals(problem, target) if p.family in ("elementwise", "transposed", "windows")]
    assert found
    for proposal in found[:: max(1, len(found) // 6)]:
        with on_trial(RecordKey(problem, target, None), proposal.schedule):
            result = mf.fuse(fn, target="interpret")(x)
        np.testing.assert_array_equal(np.asarray(result), wanted, err_msg=str(proposal.schedule))
