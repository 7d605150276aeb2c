"""A function with some of the schedules that a family proposes for its only kernel, on the GPU."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.errors import ScheduleError
from mlirfuse.schedule.choice.records import RecordKey, on_trial
from mlirfuse.schedule.problem import Problem
from mlirfuse.schedule.schedule import Schedule
from mlirfuse.target import Target

TRIALS = 3


def check_schedules(
    fn: Callable[..., Any],
    arrays: Sequence[Any],
    expected: Sequence[np.ndarray],
    proposed: Callable[[Problem, Target], Iterable[Schedule]],
    seed: int,
) -> None:
    """Compares the results as chosen, and of some proposed schedules, with the exact ones; those that spill are left
    out, and functions of several kernels run as chosen alone.

    Args:
        fn: the function.
        arrays: CuPy arrays.
        expected: its results.
        proposed: the schedules of a family.
        seed: of the sample.
    """
    chosen = mf.fuse(fn)
    _check(chosen(*arrays), expected)
    (compiled,) = chosen._compiled.values()
    lowered = compiled.lowered
    problems = problems_of(lowered)
    if len(problems) != 1:
        return
    (problem,) = problems.values()
    schedules = list(proposed(problem, lowered.target))
    for schedule in random.Random(seed).sample(schedules, min(TRIALS, len(schedules))):
        with on_trial(RecordKey(problem, lowered.target, lowered.device, "auto"), schedule):
            try:
                results = mf.fuse(fn)(*arrays)
            except ScheduleError as error:
                if "spills" not in str(error):
                    raise
            else:
                _check(results, expected)


def _check(results: object, expected: Sequence[np.ndarray]) -> None:
    found = results if isinstance(results, tuple) else (results,)
    for value, exact in zip(found, expected, strict=True):
        np.testing.assert_array_equal(value.get(), exact.astype(value.dtype))
