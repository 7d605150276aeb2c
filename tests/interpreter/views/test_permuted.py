"""Random functions of arrays in different orders, interpreted, against float64.

MLIRFUSE_FUZZ_GRAPHS sets how many (`make fuzz`); the number in a test's name is the function's seed.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.pairwise import FULL
from tests.support.views.permuted import permuted

FUNCTIONS = int(os.environ.get("MLIRFUSE_FUZZ_GRAPHS", "200" if FULL else "30"))


@pytest.mark.parametrize("seed", range(FUNCTIONS))
def test_fuzz(seed: int) -> None:
    case = permuted(seed)
    try:
        result = np.asarray(mf.fuse(case.fn, target="interpret")(*case.arrays))
    except mf.MlirFuseError as error:
        pytest.fail(f"{error}{case}")
    expected = case.expected
    assert result.shape == expected.shape, case
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=1e-4, atol=1e-5 * size, err_msg=str(case))


def test_extents_of_reshapes_that_are_not_made() -> None:
    """Elements are scaled before a reshape that would need a copy, of which the extent alone is asked for."""
    x = np.random.default_rng(0).standard_normal((4, 6, 5)).astype(np.float32)

    def scaled(xp: Any, x: Any) -> Any:
        rows, n, columns = x.shape
        pairs = xp.reshape(x, (rows * columns, n // 2, 2))
        return xp.reshape(xp.permute_dims(pairs, (2, 1, 0)), (n, columns * rows)) * 2

    found = mf.fuse(lambda x: scaled(mf, x), target="interpret", dynamic_reductions=True)(x)
    np.testing.assert_array_equal(found, scaled(np, x))
