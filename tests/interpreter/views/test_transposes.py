"""Functions of transposed arrays, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.transposes import CASES, ROWS, in_order, turned


@pytest.mark.parametrize("name", [*CASES, *ROWS])
def test_transposed_arrays(name: str) -> None:
    case = (CASES | ROWS)[name]
    arrays = case.arrays()
    case.check(np.asarray(mf.fuse(case.fn, target="interpret")(*arrays)), arrays)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float32, np.float64])
def test_a_transposition_that_is_flattened(dtype: type) -> None:
    """The columns of an array of Fortran order become rows, which are read beside it."""
    x = (np.random.default_rng(0).random((3, 5140)).T > 0.5).astype(dtype)

    def function(x: mf.Tensor) -> tuple[mf.Tensor, mf.Tensor]:
        return mf.reshape(mf.matrix_transpose(x), (-1,)), mf.maximum(x, x) if dtype != np.bool_ else mf.logical_or(x, x)

    flat, same = mf.fuse(function, target="interpret")(x)
    np.testing.assert_array_equal(flat, x.T.reshape(-1))
    np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize("order", [(), (0, 1), (1, 0)])
def test_blocks_in_any_order(order: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((70, 150)).astype(np.float32)
    fused = mf.fuse(turned, target="interpret", schedule=in_order(order))
    np.testing.assert_array_equal(fused(x), x.T + 1)
