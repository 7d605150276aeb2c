"""Products of few columns and few terms, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.narrow import random_narrow

cupy = pytest.importorskip("cupy")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("seed", range(60))
def test_same_as_numpy(seed: int) -> None:
    narrow, arrays, exact = random_narrow(seed, 5000)
    found = mf.fuse(narrow)(*map(cupy.asarray, arrays))
    np.testing.assert_array_equal(cupy.asnumpy(found).astype(np.float64), exact)


THIN = [(1000, 1000, 16), (4, 8, 4096), (8, 300, 40), (192, 16, 24), (513, 20, 8), (16, 2048, 17), (3, 5, 100000)]
"""Rows, columns and terms of which Hopper's largest instructions would multiply mostly zeros."""


@pytest.mark.parametrize("form", ["mk,kn->mn", "mk,nk->mn", "km,kn->mn", "bmk,bkn->bmn"])
@pytest.mark.parametrize("size", THIN, ids=str)
def test_thin_products_are_exact(size: tuple[int, int, int], form: str) -> None:
    rng, extents = np.random.default_rng(sum(size)), dict(zip("mnkb", (*size, 3), strict=True))
    first, second = (
        rng.integers(-2, 3, [extents[letter] for letter in operand]).astype(np.float16)
        for operand in form.split("->")[0].split(",")
    )
    expected = np.einsum(form, first.astype(np.float64), second.astype(np.float64))
    result = cupy.full(expected.shape, cupy.nan, cupy.float32)
    product = mf.fuse(lambda a, b: mf.einsum(form, a, b, dtype=mf.float32))
    product(cupy.asarray(first), cupy.asarray(second), out=result)
    np.testing.assert_array_equal(cupy.asnumpy(result), expected)


def test_thin_products_take_smaller_instructions() -> None:
    product = mf.fuse(lambda a, b: mf.einsum("ixyz,zl->ixyl", a, b))
    a, b = cupy.ones((16, 32, 32, 32), cupy.float16), cupy.ones((32, 48), cupy.float16)
    np.testing.assert_array_equal(cupy.asnumpy(product(a, b)), np.full((16, 32, 32, 48), 32))
    (compiled,) = product._compiled.values()
    assert {s.contraction.instruction for s in compiled.schedules.values() if s.contraction} == {"mma"}
