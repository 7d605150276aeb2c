"""Products of few columns and few terms, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.narrow import random_narrow

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_same_as_numpy(seed: int) -> None:
    narrow, arrays, exact = random_narrow(seed, 5000)
    found = mf.fuse(narrow)(*map(cupy.asarray, arrays))
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), exact)
