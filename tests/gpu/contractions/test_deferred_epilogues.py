"""Reductions of a product's rows in the kernel that needs them, on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.deferred import FUNCTIONS, arguments, reference, traced

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("shape", [(4096, 2048), (1000, 1096), (65, 8192)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str, shape: tuple[int, int]) -> None:
    given = arguments(*shape)
    found = mf.fuse(traced(mf, name))(*map(cupy.asarray, given))
    for one, expected in zip(found, reference(name, given), strict=True):
        np.testing.assert_allclose(cupy.asnumpy(one).astype(np.float64), expected, rtol=4e-3, atol=8e-3)
