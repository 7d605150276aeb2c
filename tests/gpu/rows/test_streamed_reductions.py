"""Reductions over random axes in random memory orders, by schedules that stream what is reduced, on the GPU."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.schedule.records import RecordKey, on_trial
from mlirfuse.schedule.rows.streamed import streamed_schedules
from tests.support.reductions.streamed import random_case

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(30))
def test_same_as_numpy(seed: int) -> None:
    case = random_case(seed, largest=1 << 22)
    fn, array = case.function(), cupy.asarray(case.array(), order="K")
    assert array.strides == case.array().strides
    chosen = mf.fuse(fn)
    _check(chosen(array), case)
    (compiled,) = chosen._compiled.values()
    lowered = compiled.lowered
    problems = problems_of(lowered)
    if len(problems) != 1:
        return
    (problem,) = problems.values()
    schedules = list(streamed_schedules(problem, lowered.target))
    for schedule in random.Random(seed).sample(schedules, min(3, len(schedules))):
        with on_trial(RecordKey(problem, lowered.target, lowered.device, "auto"), schedule):
            _check(mf.fuse(fn)(array), case)


def _check(results: object, case: object) -> None:
    found = results if isinstance(results, tuple) else (results,)
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(value.get(), exact.astype(value.dtype))
