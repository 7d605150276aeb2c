"""Products of int8 in int32 on the GPU: exact, and the same on every run."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.int8_products import CASES, Case, requantised, scaled, widened

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

LARGE = [Case(scaled, 2048, 4096, 4096), Case(widened, 256, 256, 65536), Case(requantised, 1000, 4096, 1024)]


@pytest.mark.parametrize("case", [*CASES, *LARGE], ids=str)
def test_products_of_int8_are_exact(case: Case) -> None:
    inputs = case.inputs(1)
    arrays = [cupy.asarray(a) for a in inputs]
    fn = mf.fuse(case.fn)
    first, *others = (cupy.asnumpy(fn(*arrays)) for _ in range(3))
    np.testing.assert_array_equal(first, case.expected(inputs))
    assert all((other == first).all() for other in others)
