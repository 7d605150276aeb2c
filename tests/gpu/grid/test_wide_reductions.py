"""Reductions over rows too wide for a cluster, on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.numerics import DTYPES
from tests.support.reductions.wide import WIDE, batch_norm, check, column_sums, sums_of_everything

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("fn", [column_sums, batch_norm, sums_of_everything])
@pytest.mark.parametrize(("columns", "dtype"), [(WIDE, "float16"), (WIDE + 1, "bfloat16"), (131072, "float32")])
def test_rows_that_fit_no_cluster(fn: Callable[..., Any], columns: int, dtype: str) -> None:
    """One kernel serves every number of rows, and gives the same bits again."""
    fused = mf.fuse(fn)
    for rows in (0, 1, 33, 1100):
        rng = np.random.default_rng(rows)
        x = rng.standard_normal((rows, columns)).astype(DTYPES[dtype])
        w = rng.standard_normal(columns).astype(np.float32)
        first, second = ([to_numpy(r) for r in fused(to_torch(x), to_torch(w))] for _ in range(2))
        check(fn, first, x, w)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))


def test_long_sums_are_as_good_as_pairwise_ones() -> None:
    """Chunks are added up in groups: sums of 20,000 rows lose no more than twice what PyTorch's do."""
    x = torch.randn(20_000, 67_584, device="cuda").abs_()  # so many columns that blocks reduce them alone
    exact = x.sum(0, dtype=torch.float64)
    ours = (mf.fuse(lambda x: mf.sum(x, axis=0))(x).double() - exact).abs().max()
    theirs = (x.sum(0).double() - exact).abs().max()
    assert ours <= 2 * theirs
