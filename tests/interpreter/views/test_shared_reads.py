"""Elementwise results that read the same data are one kernel, with NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.views.shared_reads import SHARED_READS


@pytest.mark.parametrize("shape", [(5, 512), (1, 7), (3, 4, 33), (0, 16)], ids=str)
@pytest.mark.parametrize("name", SHARED_READS)
def test_results(name: str, shape: tuple[int, ...]) -> None:
    case = SHARED_READS[name]
    inputs = case.inputs(*shape)
    for result, expected in zip(mf.fuse(case.fn, target="interpret")(*inputs), case.fn(*inputs), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", SHARED_READS)
def test_kernels(name: str) -> None:
    case = SHARED_READS[name]
    compiled = mf.fuse(case.fn, target="sm_90a").lower(*[mf.TensorSpec((None, 512), mf.float32)] * case.arguments)
    assert compiled.as_text("tile").count("scf.forall") == case.kernels


def test_results_that_lie_in_different_orders_stay_apart() -> None:
    """One kernel would write one of them across rows."""
    fused = mf.fuse(lambda a, b, x: (a * 2 + x, b * 4 - mf.permute_dims(x, (1, 0))), target="sm_90a")
    compiled = fused.lower(*[mf.TensorSpec((64, 64), mf.float32)] * 3)
    assert compiled.as_text("tile").count("scf.forall") == 2
