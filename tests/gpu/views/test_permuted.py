"""Random functions of arrays in different orders, on the GPU, against float64.

MLIRFUSE_FUZZ_GRAPHS sets how many; the number in a test's name is the function's seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.views.permuted import permuted

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

FUNCTIONS = int(os.environ.get("MLIRFUSE_FUZZ_GRAPHS", "60"))


@pytest.mark.parametrize("seed", range(FUNCTIONS))
def test_fuzz(seed: int) -> None:
    case = permuted(seed)
    fused, tensors, expected = mf.fuse(case.fn), [to_torch(a) for a in case.arrays], case.expected
    out = fused(*tensors)
    assert tuple(out.shape) == expected.shape, case
    if all(out.untyped_storage().data_ptr() != t.untyped_storage().data_ptr() for t in tensors):  # it is no view
        out.fill_(float("nan") if out.is_floating_point() else 0x7F7F7F7F)
        fused(*tensors, out=out)
    size = max(1.0, float(np.abs(expected).max()))
    result = to_numpy(out).astype(np.float64)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5 * size, err_msg=str(case))
