"""Reductions over some of a tile's dimensions where a cluster is spread over others too, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.spread_clusters import CASES, Case, chosen

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_blocks_exchange_with_those_that_reduce_the_same(case: Case) -> None:
    """The same bits again, too: what is stored in a wrong block's memory would race with what belongs there."""
    inputs = case.inputs()
    fused, tensors = mf.fuse(case.fn, schedule=case.schedule()), [to_torch(a) for a in inputs]
    first, *others = ([to_numpy(r) for r in fused(*tensors)] for _ in range(10))
    case.check(first, inputs)
    for other in others:
        assert all((a == b).all() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 33, 5, 200), (300, 33, 5, 100)])
def test_a_cluster_that_the_heuristics_spread_over_two_dimensions(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    largest, total = mf.fuse(chosen)(to_torch(x))
    np.testing.assert_array_equal(to_numpy(largest), x.max((1, 2)))
    exact = x.astype(np.float64)
    bound = {"float16": 1e-3, "float32": 1e-6, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(to_numpy(total), exact.sum(), rtol=bound, atol=bound * np.abs(exact).sum())
