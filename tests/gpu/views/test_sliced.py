"""Slices of computed values and of arguments on the GPU, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.sliced import Sliced, random_reduced, random_sliced

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("make", [random_sliced, random_reduced])
@pytest.mark.parametrize("seed", range(100))
def test_same_as_numpy(seed: int, make: Callable[[int], Sliced]) -> None:
    case = make(seed)
    found = mf.fuse(case.function)(*map(cupy.asarray, case.arrays()))
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(value).astype(np.float64), exact)
