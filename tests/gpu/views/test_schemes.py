"""Differences of computed neighbours, stored or computed twice as is predicted to be faster, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.schemes import FUNCTIONS

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("shape", [(9, 64), (1001, 2002), (4096, 4096)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    arrays = [(np.abs(rng.standard_normal(shape)) + 0.5).astype(np.float32) for _ in range(2)]
    found = mf.fuse(lambda p, q: FUNCTIONS[name](mf, p, q))(*map(cupy.asarray, arrays))
    expected = FUNCTIONS[name](np, *(a.astype(np.float64) for a in arrays))
    pairs = zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    )
    for one, right in pairs:
        np.testing.assert_allclose(cupy.asnumpy(one), right, rtol=1e-4, atol=1e-4)
