"""Views of what is computed, and what is computed of these, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.mixed_chains import MixedChain

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(150))
def test_random_chains(seed: int) -> None:
    chain = MixedChain(seed)
    expected = chain(np, *[array.astype(np.float64) for array in chain.arrays])
    found = mf.fuse(lambda *arrays: chain(mf, *arrays))(*map(cupy.asarray, chain.arrays))
    for own, other in zip(found, expected, strict=True):
        scale = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(cupy.asnumpy(own), other, rtol=0, atol=2e-4 * scale)
