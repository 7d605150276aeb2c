"""Rows that are returned in another order, by one kernel or two, on the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from mlirfuse.passes.splitting import permute_results
from tests.support.views.permuted_rows import ORDERS, arrays, turned


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_permuted_rows(order: tuple[int, ...], apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if apart:  # whatever is predicted
        monkeypatch.setattr(permute_results.FusePermuteResults, "_loss", lambda *_: None)
    fn, expected = turned(order)
    given = arrays(9)
    fused = mf.fuse(fn, target="interpret")
    for found, want in zip(fused(*given), expected(*given), strict=True):
        np.testing.assert_array_equal(found, want)
    (compiled,) = fused._compiled.values()
    assert not apart or ("permutes a result of" in compiled.explain(verbose=True)) == (order[-1] != 2)
