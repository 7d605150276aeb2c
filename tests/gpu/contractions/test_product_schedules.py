"""Random schedules of products, on the GPU: exact on integers, and the same bits again.

MLIRFUSE_FUZZ_GRAPHS sets how many; the number in a test's name is the product's seed.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.errors import PassError, ScheduleError
from tests.support.contractions.product_schedules import scheduled_product
from tests.support.gpu.torch_arrays import to_numpy, to_torch

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0), reason="no Hopper GPU"
    ),
]

PRODUCTS = int(os.environ.get("MLIRFUSE_FUZZ_GRAPHS", "60"))


@pytest.mark.parametrize("seed", range(PRODUCTS))
def test_fuzz(seed: int) -> None:
    """The first product from a seed on whose schedule suits it."""
    for attempt in range(seed * 100, seed * 100 + 100):
        case = scheduled_product(attempt)
        fused, tensors = mf.fuse(case.fn, schedule=case.schedule), [to_torch(a) for a in case.inputs]
        try:
            fused(*tensors)
        except (PassError, ScheduleError):
            continue
        for _ in range(3):  # what the first call leaves in the workspace, and in memory that results get, is found
            results = fused(*tensors)
            for result, expected in zip(
                results if isinstance(results, tuple) else (results,), case.expected, strict=True
            ):
                np.testing.assert_array_equal(to_numpy(result).astype(np.float64), expected, err_msg=str(case))
        return
    raise AssertionError(f"no schedule of a hundred from {seed * 100} on suits its product")
