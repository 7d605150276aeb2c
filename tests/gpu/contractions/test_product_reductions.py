"""Reductions of a product's result in the product's kernel, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.contractions.product_reductions import CASES, Case, rows_of_squares
from tests.support.gpu.torch_arrays import to_numpy, to_torch

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


def _run(fn: mf.Fused, tensors) -> list[np.ndarray]:
    results = fn(*tensors)
    return [to_numpy(r) for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_product_reductions(case: Case) -> None:
    inputs = case.inputs()
    fn = mf.fuse(case.fn)
    tensors = [to_torch(a) for a in inputs]
    first, *others = (_run(fn, tensors) for _ in range(5))
    case.check(first, inputs)
    for other in others:
        assert all((a == b).all() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("extents", [(4096, 4096, 512), (1000, 3000, 4104), (64, 8192, 8192)], ids=str)
def test_sums_of_squares_of_many_tiles_are_exact(extents: tuple[int, int, int]) -> None:
    """Small integers, whose squares and their sums single precision holds exactly in any order."""
    m, n, k = extents
    rng = np.random.default_rng(0)
    x = rng.integers(-1, 2, (m, k)).astype(np.float16)
    w = (rng.integers(-1, 2, (n, k)) * (rng.random((n, k)) < 8 / k)).astype(np.float16)
    fn = mf.fuse(rows_of_squares)
    for _ in range(3):
        y, squares = _run(fn, (to_torch(x), to_torch(w)))
        exact = x.astype(np.float32) @ w.astype(np.float32).T
        np.testing.assert_array_equal(y, exact)
        np.testing.assert_array_equal(squares, (exact.astype(np.float64) ** 2).sum(1))
