"""Reductions over pairs of rows on the GPU: as chosen, and with register tiles of results."""

from __future__ import annotations

import random

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.choice.records import RecordKey, on_trial
from mlirfuse.schedule.rows.register_tiles import register_tile_schedules
from tests.support.reductions.pairs import Pairs, random_pairs

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(30))
def test_same_as_numpy(seed: int) -> None:
    case = random_pairs(seed, (2, 3, 16, 33, 64, 100, 130))
    fn, arrays = case.function, [cupy.asarray(array) for array in case.arrays()]
    chosen = mf.fuse(fn)
    _check(chosen(*arrays), case)
    (compiled,) = chosen._compiled.values()
    lowered = compiled.lowered
    problems = problems_of(lowered)
    if len(problems) != 1:
        return
    (problem,) = problems.values()
    schedules = list(register_tile_schedules(problem, lowered.target))
    for schedule in random.Random(seed).sample(schedules, min(3, len(schedules))):
        with on_trial(RecordKey(problem, lowered.target, lowered.device, "auto"), schedule):
            try:
                results = mf.fuse(fn)(*arrays)
            except ScheduleError as error:
                if "spills" not in str(error):
                    raise
            else:
                _check(results, case)


def _check(results: object, case: Pairs) -> None:
    found = results if isinstance(results, tuple) else (results,)
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(value.get(), exact.astype(value.dtype))
