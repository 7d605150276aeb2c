"""Products of packed weights of which slices are read, against NumPy: each slice by itself, and as is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse import interpreter
from mlirfuse.compiler import pipeline
from mlirfuse.passmanager.manager import run_pipeline
from tests.support.contractions.packed import random_packed
from tests.support.harnesses.compiling import module_at, specs_of
from tests.support.pairwise import some

ALWAYS = "builtin.module(fuse-views,cse,fuse-slice-products{always=true})"


@pytest.mark.parametrize("seed", some(range(120), 24))
def test_each_slice_by_itself(seed: int) -> None:
    case = random_packed(seed, 20)
    module = module_at("linalg", case.function, specs_of(case.arrays()))
    with module.context:
        run_pipeline(module, ALWAYS)
        assert " = tensor.extract_slice %arg" in str(module) or "extract_slice %expanded" in str(module)
        _check(module, case)
        run_pipeline(module, pipeline.named("fuse-gpu-pipeline"))
        _check(module, case)


def _check(module, case) -> None:
    (found,) = interpreter.run(module, "packed", case.arrays())
    np.testing.assert_array_equal(np.asarray(found, np.float64), case.expected())


@pytest.mark.parametrize("seed", some(range(120), 16))
def test_as_chosen(seed: int) -> None:
    case = random_packed(seed)
    found = mf.fuse(case.function, target="interpret")(*case.arrays())
    np.testing.assert_array_equal(np.asarray(found, np.float64), case.expected())


def test_rows_that_a_reshape_copies() -> None:
    """The trial of both forms copies them, as the function does."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((4, 6, 10), (30, 24)))

    def packed(x: Any, w: Any) -> Any:
        h = x.reshape((4, 30)) @ w
        return h[:, :12] * h[:, 12:]

    rows = x[:, :, :5]
    np.testing.assert_array_equal(np.asarray(mf.fuse(packed, target="interpret")(rows, w)), packed(rows, w))
