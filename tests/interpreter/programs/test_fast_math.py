"""What `fast_math=True` does not leave out."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf


@pytest.mark.parametrize("fast_math", [False, True])
def test_casts_to_float32_round(fast_math: bool) -> None:
    """Only roundings to half precision may be left out."""
    x = np.random.default_rng(0).normal(size=(3, 100))

    def function(x):
        narrow = x.astype(mf.float32)
        return narrow.astype(mf.float64), mf.maximum(narrow, x), (x * 2).astype(mf.float32).astype(mf.float64)

    rounded = x.astype(np.float32).astype(np.float64)
    results = mf.fuse(function, target="interpret", fast_math=fast_math)(x)
    for got, want in zip(results, (rounded, np.maximum(rounded, x), 2 * rounded), strict=True):
        np.testing.assert_array_equal(got, want)
