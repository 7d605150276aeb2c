"""Ops that read from several kernels of a function whose leading extents are known at run time alone."""

from __future__ import annotations

import numpy as np

import mlirfuse as mf


def test_an_op_joins_the_last_kernel_that_it_reads_from() -> None:
    """What only it shares with an earlier one stays apart: the two would have no loops in common."""

    def function(x: mf.Tensor, y: mf.Tensor) -> mf.Tensor:
        scaled = x / 1.5
        centred = y - mf.mean(y, axis=(0, 1, 2, 3), keepdims=True)
        scale = mf.rsqrt(mf.mean(centred**2, axis=(0, 1, 2, 3), keepdims=True) + 1e-5)
        return mf.where(mf.isinf(centred * scale), centred, scaled)

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((129, 3, 127, 1)).astype(np.float32) for _ in range(2))
    y[3, 1, 5] = np.inf
    with np.errstate(invalid="ignore"):
        centred = y - np.mean(y)
        expected = np.where(np.isinf(centred / np.sqrt(np.mean(centred**2) + 1e-5)), centred, x / np.float32(1.5))
    got = mf.fuse(function, target="interpret")(x, y)
    np.testing.assert_array_equal(got, expected)


def test_an_op_that_reads_a_later_view_joins_no_earlier_kernels() -> None:
    """The view is in memory after its kernel alone, so that the op cannot be in what would become one for it."""

    def function(x: mf.Tensor, y: mf.Tensor, z: mf.Tensor) -> mf.Tensor:
        negative, double = -x, y * 2
        return mf.where((z * z > 1).reshape(32, 64), negative, double)

    rng = np.random.default_rng(0)
    x, y, z = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 64), (32, 64), (2048,)))
    got = mf.fuse(function, target="interpret")(x, y, z)
    np.testing.assert_array_equal(got, np.where((z * z > 1).reshape(32, 64), -x, y * 2))
