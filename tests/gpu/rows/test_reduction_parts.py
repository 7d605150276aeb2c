"""Reductions of real sizes over random axes, in parts where that is predicted faster, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.reductions.parts import PartsCase, log_sum_exp, random_parts_case, several, variance, with_gradient

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]

LARGE = (8, 31, 96, 128, 200, 512, 1024)


@pytest.mark.parametrize("seed", range(24))
def test_same_as_numpy(seed: int) -> None:
    case = random_parts_case(seed, LARGE)
    if np.prod(case.shape) <= 1 << 25:
        _check(case)


@pytest.mark.parametrize("form", [log_sum_exp, variance, several, with_gradient])
@pytest.mark.parametrize("shape", [(65536, 128), (4, 16384, 64)])
def test_few_results_of_much_data(form: object, shape: tuple[int, ...]) -> None:
    _check(PartsCase(form, shape, (len(shape) - 2,), form is log_sum_exp))


def _check(case: PartsCase) -> None:
    """The same as in double precision, and the same bits again."""
    x = case.array()
    fused, array = mf.fuse(case.function()), cupy.asarray(x)
    first = _results(fused(array))
    for found, exact in zip(first, case.expected(x), strict=True):
        np.testing.assert_allclose(found, exact, rtol=3e-5, atol=1e-5)
    for found, again in zip(first, _results(fused(array)), strict=True):
        np.testing.assert_array_equal(found, again)


def _results(results: object) -> list[np.ndarray]:
    return [value.get() for value in (results if isinstance(results, tuple) else (results,))]
