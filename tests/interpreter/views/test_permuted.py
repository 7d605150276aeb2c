"""Random functions of arrays in different orders, interpreted, against float64.

MLIRFUSE_FUZZ_GRAPHS sets how many (`make fuzz`); the number in a test's name is the function's seed.
"""

from __future__ import annotations

import os

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
