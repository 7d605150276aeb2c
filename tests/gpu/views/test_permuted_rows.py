"""Rows that are returned in another order, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.permuted_rows import ORDERS, arrays, turned

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("rows", [9, 12000])  # one kernel, and two
@pytest.mark.parametrize("order", ORDERS)
def test_permuted_rows(order: tuple[int, ...], rows: int) -> None:
    fn, expected = turned(order)
    given = arrays(rows)
    fused = mf.fuse(fn)
    for found, want in zip(fused(*map(cupy.asarray, given)), expected(*given), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(found), want)
