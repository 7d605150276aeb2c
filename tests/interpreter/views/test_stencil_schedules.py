"""Stencils and components of odd sizes, with layouts whose vectors reach past the ends of rows."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.compiler.problems import problems_of
from mlirfuse.schedule.choice.proposals import proposals
from mlirfuse.schedule.choice.records import RecordKey, on_trial
from mlirfuse.schedule.problem import Problem


def cross(x: Any) -> Any:
    around = x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1]
    return around - x[1:-1, 1:-1] * 4.0


def average(x: Any) -> Any:
    return x[:, 3:] + x[:, 2:-1] + x[:, 1:-2] + x[:, :-3]


def pairs(x: Any) -> Any:
    a, b = x[..., 0::2], x[..., 1::2]
    return a * 2.0 + b, b - a


def pixels(x: Any) -> Any:
    return x[..., 0] + x[..., 1] * 2.0 + x[..., 2] * 3.0 + x[..., 3] * 4.0


def corners(x: Any) -> Any:
    return x[:, 2:] - x[:, :2], x[:, 2:] * x[:, :2]


def parts(x: Any) -> Any:
    return x[:, 3:6] * 2.0 - x[:, :3]


CASES = {
    "cross": (cross, (13, 264), "float32"),
    "odd cross": (cross, (10, 131), "float16"),
    "average": (average, (5, 512), "bfloat16"),
    "pairs": (pairs, (3, 5, 64), "bfloat16"),
    "pixels": (pixels, (3, 65, 4), "float32"),
    "corners": (corners, (77, 4), "float32"),
    "corners with others": (corners, (77, 4), "float16"),
    "parts": (parts, (65, 8), "float16"),
}


@pytest.mark.parametrize("name", CASES)
def test_windows_and_components_are_loaded_right(name: str) -> None:
    """With each of some proposals, those of the widest vectors among them."""
    function, shape, dtype = CASES[name]
    numpy_dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.random.default_rng(0).integers(-4, 5, shape).astype(numpy_dtype)
    expected = function(array.astype(np.float64))
    lowered = mf.fuse(function, target="sm_90a").lower(mf.TensorSpec(shape, dtype))
    (problem,) = problems_of(lowered).values()
    assert isinstance(problem, Problem)
    found = [proposal.schedule for proposal in proposals(problem, lowered.target)]
    found.sort(key=lambda schedule: -max(schedule.layout.vector))
    for schedule in (*found[:3], *random.Random(0).sample(found, 3)):
        fused = mf.fuse(function, target="interpret")
        with on_trial(RecordKey(problem, lowered.target, lowered.device), schedule):
            results = fused(array)
        both = zip(*((each if isinstance(each, tuple) else (each,)) for each in (results, expected)), strict=True)
        for result, right in both:
            np.testing.assert_allclose(result.astype(np.float64), right, atol=0.5, err_msg=str(schedule))
