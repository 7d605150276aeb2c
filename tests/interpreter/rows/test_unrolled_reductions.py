"""Reductions of a few elements that others need, against NumPy: unrolled, and as is chosen."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some
from tests.support.reductions.nested import Nested, random_nested

ALWAYS = "builtin.module(fuse-views,cse,fuse-unroll-reductions{always=true})"


@pytest.mark.parametrize("points", ["static", "dynamic"])
@pytest.mark.parametrize("seed", some(range(120), 24))
def test_unrolled(seed: int, points: str) -> None:
    case = random_nested(seed)
    module = module_at("linalg", case.function, _specs(case, points))
    with module.context:
        before = str(module).count('"reduction"')
        run_pipeline(module, ALWAYS)
        assert str(module).count('"reduction"') < before
        _check(module, case)
        run_pipeline(module, pipeline.named("fuse-gpu-pipeline"))
        _check(module, case)


def _specs(case: Nested, points: str) -> list[mf.TensorSpec]:
    """Of arrays of which the number of points that have results is known, or is not."""
    specs = specs_of(case.arrays())
    if points == "dynamic":
        number, axis = case.kept
        shape = [None if d == axis else n for d, n in enumerate(case.shapes[number])]
        specs[number] = mf.TensorSpec(shape, case.dtype)
    return specs


def _check(module: object, case: Nested) -> None:
    (found,) = interpreter.run(module, "nested", case.arrays())
    np.testing.assert_array_equal(np.asarray(found, np.float64), case.expected())


@pytest.mark.parametrize("seed", some(range(120), 16))
def test_as_chosen(seed: int) -> None:
    case = random_nested(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    np.testing.assert_array_equal(np.asarray(found, np.float64), case.expected())
