"""Rows that are reduced in parts, on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

import mlirfuse as mf
from tests.support.gpu.torch_arrays import to_numpy, to_torch
from tests.support.reductions.split_rows import CASES

cupy = pytest.importorskip("cupy")
torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not cupy.is_available(), reason="no GPU")]


@pytest.mark.parametrize("name", CASES)
def test_parts_of_rows(name: str) -> None:
    """The same bits again."""
    case = CASES[name]
    arrays = case.arrays(seed=1)
    fused, tensors = mf.fuse(case.fn), [to_torch(a) for a in arrays]
    first = to_numpy(fused(*tensors))
    case.check(first, arrays)
    for _ in range(10):
        np.testing.assert_array_equal(to_numpy(fused(*tensors)), first)
