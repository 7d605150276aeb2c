"""Reductions of what depends on no row that is read, in kernels whose rows could be shifted."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirfuse as mf


def test_a_reduction_of_a_number_comes_before_any_read_of_an_odd_row() -> None:
    def program(x: Any, y: Any, z: Any, number: Any) -> Any:
        ones = mf.full_like(x > -1, True).astype(mf.bfloat16)
        clipped = mf.clip(number / ones, min=-0.5)
        mean = (clipped * clipped).mean(axis=-1, keepdims=True) + 1e-5
        positive = clipped * mf.rsqrt(mean) > 0
        return ones + mean, mf.where(positive, mf.where(positive, z, x - y), 3), mf.sin(mean)

    x, y = (np.random.default_rng(n).standard_normal(257).astype(np.float16) for n in range(2))
    z = np.array([0.5], np.float16)
    specs = [mf.TensorSpec((257,), "float16")] * 2 + [mf.TensorSpec((1,), "float16")]
    assert mf.fuse(program, target="sm_90a").lower(*specs, 2).compile().binaries
    total, chosen, sine = mf.fuse(program, target="interpret")(x, y, z, 2)
    np.testing.assert_array_equal(total.astype(float), np.full(257, 5.0))
    np.testing.assert_array_equal(chosen, np.full(257, 0.5, np.float16))
    np.testing.assert_allclose(sine.astype(float), np.sin(np.full(1, 4.0)), rtol=1e-2)
