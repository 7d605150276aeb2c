"""Reshapes of computed values: ops around them run over the factors of both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import some
from tests.support.views.reshaped import KERNELS, reshaped


@pytest.mark.parametrize("seed", some(range(300), 30))
def test_random_reshapes(seed: int) -> None:
    function, rng = reshaped(seed), np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in function.shapes]
    found = np.asarray(mf.fuse(function.__call__, target="interpret")(*arrays))
    want = function.expected(arrays)
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("function", KERNELS, ids=lambda f: f.__name__)
def test_no_value_is_taken_to_memory_to_be_reshaped(function: Callable[..., Any]) -> None:
    compiled = mf.fuse(function).lower(*KERNELS[function]).compile()
    assert len(compiled.binaries) == 1
