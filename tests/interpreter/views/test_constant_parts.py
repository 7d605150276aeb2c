"""Joined arrays of constants, kernels of which read nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf


def test_parts_of_ones() -> None:
    def fn(x: Any) -> Any:
        ones = mf.ones_like(x)
        return ones, mf.stack([ones, ones * 2, ones], axis=2)

    ones, joined = mf.fuse(fn, target="interpret")(np.zeros((2, 1), np.float32))
    np.testing.assert_array_equal(ones, np.ones((2, 1)))
    np.testing.assert_array_equal(joined, np.broadcast_to([1, 2, 1], (2, 1, 3)))
