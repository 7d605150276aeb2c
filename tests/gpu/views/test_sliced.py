"""Slices of computed values and of arguments on the GPU, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.sliced import Sliced, random_flipped, random_reduced, random_sliced

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("make", [random_sliced, random_reduced, random_flipped])
@pytest.mark.parametrize("seed", range(100))
def test_same_as_numpy(seed: int, make: Callable[[int], Sliced]) -> None:
    case = make(seed)
    found = mf.fuse(case.function)(*map(cupy.asarray, case.arrays()))
    for value, exact in zip(found, case.expected(), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(value).astype(np.float64), exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("parts", "columns"), [(2, 4), (3, 6), (2, 6), (3, 8), (1, 4)])
def test_parts_of_short_rows(parts: int, columns: int, dtype: type) -> None:
    """The corners of boxes, such as a call's rows have them, and rows that leave elements of theirs unread."""
    fused = mf.fuse(lambda x: (x[:, parts : 2 * parts] - x[:, :parts], x[:, parts : 2 * parts] * x[:, :parts]))
    for rows in (1, 1000, 4099):
        x = cupy.random.default_rng(0).integers(-9, 9, (rows, columns)).astype(dtype)
        out = tuple(cupy.full((rows, parts), np.nan, dtype) for _ in range(2))
        fused(x, out=out)
        cupy.testing.assert_array_equal(out[0], x[:, parts : 2 * parts] - x[:, :parts])
        cupy.testing.assert_array_equal(out[1], x[:, parts : 2 * parts] * x[:, :parts])
