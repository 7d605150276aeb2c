"""Padded, shifted and differenced arrays on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.edges import EDGES, SHAPES, drawn, tolerance

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str, dtype: Any) -> None:
    fused = mf.fuse(lambda x: EDGES[name](mf, mf.concat, x))
    for shape in (*SHAPES, (1030, 1028)):
        x = drawn(shape, dtype)
        found = cupy.asnumpy(fused(cupy.asarray(x))).astype(np.float64)
        wanted = EDGES[name](np, np.concatenate, x.astype(np.float64))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance(dtype, wanted))
