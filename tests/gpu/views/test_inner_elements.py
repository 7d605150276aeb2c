"""Single elements of inner axes, which are components of one axis, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.inner_elements import CASES

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("batch", [1, 77, 4096])
@pytest.mark.parametrize("name", CASES)
def test_inner_elements(name: str, batch: int) -> None:
    fn, (_, *inner) = CASES[name]
    x = np.random.default_rng(batch).standard_normal((batch + 2, *inner)).astype(np.float32)
    found = mf.fuse(lambda x: fn(mf, x))(cupy.asarray(x))
    np.testing.assert_allclose(cupy.asnumpy(found), fn(np, x.astype(np.float64)), rtol=1e-4, atol=1e-5)
