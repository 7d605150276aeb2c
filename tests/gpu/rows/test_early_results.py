"""Results that passes over chunks write as soon as they can compute them, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.staged import staged, staged_exactly

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("rows", [1, 5, 1000])
@pytest.mark.parametrize("columns", [512, 65536, 100004])
def test_same_as_numpy(rows: int, columns: int) -> None:
    x = np.random.default_rng(columns).integers(-2, 3, (rows, columns)).astype(np.float32)
    layout = mf.BlockedLayout((1, 4), (1, 32), (1, 4), (1, 1), (1, 1))
    forced = mf.fuse(staged, schedule=mf.Schedule((1, 512), layout, "multi_pass"))
    for got, exact in zip(forced(cupy.asarray(x)), staged_exactly(x), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(got), exact)
